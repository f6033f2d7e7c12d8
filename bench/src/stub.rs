//! A broker in miniature for the tests: one topic in memory, any number of listeners that each lead a part of its
//! partitions, and the faults that a load generator must not hide.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use protocol::frame::{self, RequestHeader};
use protocol::messages::api_versions_response::ApiVersion;
use protocol::messages::create_topics_response::CreatableTopicResult;
use protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use protocol::messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use protocol::messages::{
    ApiVersionsResponse, CreateTopicsRequest, CreateTopicsResponse, FetchRequest, FetchResponse,
    InitProducerIdResponse, ListOffsetsRequest, ListOffsetsResponse, Message, MetadataRequest,
    MetadataResponse, ProduceRequest, ProduceResponse,
};
use protocol::record::{BatchHeader, set_base_offset};
use protocol::wire::Decoder;
use protocol::{ApiKey, ErrorCode, Records, Str, Uuid};
use runtime::net::{ReadHalf, TcpListener, TcpStream, WriteHalf};
use runtime::sync::Event;
use runtime::{task, time};

/// How the stub behaves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    /// Where it listens; listener `i` is broker `i` and leads the partitions `p` with `p mod listeners = i`.
    pub(crate) listeners: Vec<SocketAddr>,
    /// Partitions of a topic that is there already.
    pub(crate) partitions: Option<i32>,
    /// Between these times since the first Produce, no request is answered.
    pub(crate) stall: Option<Range<Duration>>,
    /// The connection is closed instead of answering this Produce request and later ones.
    pub(crate) close_at: Option<u64>,
    /// Error of a partition's Produce.
    pub(crate) refuse: Option<(i32, ErrorCode)>,
    /// A partition that Produce answers leave out.
    pub(crate) omit: Option<i32>,
    /// Times that a producer id is refused for now.
    pub(crate) producer_id_refusals: u32,
    /// Times that Metadata names no leader.
    pub(crate) leaderless: u32,
}

struct Stub {
    script: Script,
    logs: RefCell<Vec<Vec<(i64, Bytes)>>>,
    appended: Event,
    first_produce: Cell<Option<time::Instant>>,
    produces: Cell<u64>,
    refusals: Cell<u32>,
    leaderless: Cell<u32>,
}

const TOPIC_ID: Uuid = Uuid::from_bytes([7; 16]);

/// Serves for ever.
pub(crate) async fn serve(script: Script) {
    let partitions = script.partitions.unwrap_or(0) as usize;
    let stub = Rc::new(Stub {
        logs: RefCell::new(vec![Vec::new(); partitions]),
        appended: Event::new(),
        first_produce: Cell::new(None),
        produces: Cell::new(0),
        refusals: Cell::new(script.producer_id_refusals),
        leaderless: Cell::new(script.leaderless),
        script,
    });
    let accepting = stub.script.listeners.iter().map(|address| {
        let (listener, stub) = (TcpListener::bind(*address).unwrap(), Rc::clone(&stub));
        task::spawn(async move {
            loop {
                let stream = listener.accept().await.unwrap();
                drop(task::spawn(Rc::clone(&stub).connection(stream)));
            }
        })
    });
    futures::future::join_all(accepting.collect::<Vec<_>>()).await;
}

impl Stub {
    async fn connection(self: Rc<Self>, stream: TcpStream) {
        let (mut read, mut write) = stream.into_split();
        let mut buffer = BytesMut::new();
        while let Some(frame) = next_frame(&mut read, &mut buffer).await {
            let mut decoder = Decoder::new(frame);
            let header = frame::decode_request_header(&mut decoder).unwrap();
            if self.answer(header, &mut decoder, &mut write).await.is_none() {
                return;
            }
        }
    }

    /// Answers one request; `None` closes the connection.
    async fn answer(&self, header: RequestHeader, d: &mut Decoder, write: &mut WriteHalf) -> Option<()> {
        let key = ApiKey::from_i16(header.api_key).unwrap();
        let reply = match key {
            ApiKey::ApiVersions => encode(&header, &self.api_versions()),
            ApiKey::Metadata => encode(&header, &self.metadata(&decode(d, &header))),
            ApiKey::CreateTopics => encode(&header, &self.create(&decode(d, &header))),
            ApiKey::ListOffsets => encode(&header, &self.list_offsets(&decode(d, &header))),
            ApiKey::InitProducerId => encode(&header, &self.init_producer_id()),
            ApiKey::Fetch => encode(&header, &self.fetch(decode(d, &header)).await),
            ApiKey::Produce => {
                let request: ProduceRequest = decode(d, &header);
                let answered = request.acks != 0;
                let response = self.produce(request).await?;
                if !answered {
                    return Some(());
                }
                encode(&header, &response)
            }
            other => panic!("the stub does not know {other}"),
        };
        write.write_all(reply).await.ok()
    }

    fn api_versions(&self) -> ApiVersionsResponse {
        let known = [
            ApiKey::ApiVersions,
            ApiKey::Metadata,
            ApiKey::CreateTopics,
            ApiKey::ListOffsets,
            ApiKey::InitProducerId,
            ApiKey::Fetch,
            ApiKey::Produce,
        ];
        let api_keys = known.into_iter().map(|key| {
            let (min_version, max_version) = key.versions();
            ApiVersion { api_key: key as i16, min_version, max_version }
        });
        ApiVersionsResponse { api_keys: api_keys.collect(), ..Default::default() }
    }

    fn metadata(&self, request: &MetadataRequest) -> MetadataResponse {
        let leaderless = self.leaderless.get();
        self.leaderless.set(leaderless.saturating_sub(1));
        let listeners = &self.script.listeners;
        let brokers = listeners.iter().zip(0..).map(|(address, node_id)| MetadataResponseBroker {
            node_id,
            host: Str::from(address.ip().to_string()),
            port: i32::from(address.port()),
            ..Default::default()
        });
        let partitions =
            (0..self.logs.borrow().len() as i32).map(|partition_index| MetadataResponsePartition {
                partition_index,
                leader_id: if leaderless > 0 { -1 } else { partition_index % listeners.len() as i32 },
                error_code: if leaderless > 0 { ErrorCode::LeaderNotAvailable.code() } else { 0 },
                ..Default::default()
            });
        let partitions: Vec<_> = partitions.collect();
        let unknown = partitions.is_empty();
        let topic = MetadataResponseTopic {
            error_code: if unknown { ErrorCode::UnknownTopicOrPartition.code() } else { 0 },
            name: request.topics.as_ref().and_then(|topics| topics[0].name.clone()),
            topic_id: TOPIC_ID,
            partitions,
            ..Default::default()
        };
        MetadataResponse { brokers: brokers.collect(), topics: vec![topic], ..Default::default() }
    }

    fn create(&self, request: &CreateTopicsRequest) -> CreateTopicsResponse {
        self.logs.borrow_mut().resize(request.topics[0].num_partitions as usize, Vec::new());
        let topic = CreatableTopicResult { name: request.topics[0].name.clone(), ..Default::default() };
        CreateTopicsResponse { topics: vec![topic], ..Default::default() }
    }

    fn init_producer_id(&self) -> InitProducerIdResponse {
        let refusals = self.refusals.get();
        self.refusals.set(refusals.saturating_sub(1));
        let error_code = if refusals > 0 { ErrorCode::CoordinatorLoadInProgress.code() } else { 0 };
        InitProducerIdResponse { error_code, producer_id: 5, producer_epoch: 0, ..Default::default() }
    }

    fn end_offset(&self, partition: i32) -> i64 {
        let logs = self.logs.borrow();
        let last = logs[partition as usize].last();
        last.map_or(0, |(base, batch)| base + i64::from(BatchHeader::read(batch).unwrap().record_count))
    }

    fn list_offsets(&self, request: &ListOffsetsRequest) -> ListOffsetsResponse {
        let partition = |asked: &protocol::messages::list_offsets_request::ListOffsetsPartition| {
            ListOffsetsPartitionResponse {
                partition_index: asked.partition_index,
                offset: if asked.timestamp == -2 { 0 } else { self.end_offset(asked.partition_index) },
                ..Default::default()
            }
        };
        let topics = request.topics.iter().map(|topic| ListOffsetsTopicResponse {
            name: topic.name.clone(),
            partitions: topic.partitions.iter().map(partition).collect(),
        });
        ListOffsetsResponse { topics: topics.collect(), ..Default::default() }
    }

    async fn produce(&self, request: ProduceRequest) -> Option<ProduceResponse> {
        let count = self.produces.get();
        self.produces.set(count + 1);
        if self.script.close_at.is_some_and(|at| count >= at) {
            return None;
        }
        let first = self.first_produce.get().unwrap_or_else(time::now);
        self.first_produce.set(Some(first));
        if let Some(stall) = &self.script.stall
            && stall.contains(&first.elapsed())
        {
            time::sleep_until(first + stall.end).await;
        }
        let mut responses = Vec::new();
        for topic in request.topic_data {
            let answers = topic.partition_data.into_iter().filter_map(|data| {
                let index = data.index;
                let refused = self.script.refuse.filter(|(partition, _)| *partition == index);
                if refused.is_none() {
                    self.append(index, data.records.unwrap_or_default());
                }
                let error_code = refused.map_or(0, |(_, code)| code.code());
                let answer = PartitionProduceResponse { index, error_code, ..Default::default() };
                (self.script.omit != Some(index)).then_some(answer)
            });
            responses.push(TopicProduceResponse {
                topic_id: topic.topic_id,
                partition_responses: answers.collect(),
                ..Default::default()
            });
        }
        Some(ProduceResponse { responses, ..Default::default() })
    }

    fn append(&self, partition: i32, records: Records) {
        let base = self.end_offset(partition);
        let mut batch = BytesMut::from(records.into_bytes());
        set_base_offset(&mut batch, base);
        self.logs.borrow_mut()[partition as usize].push((base, batch.freeze()));
        self.appended.notify_all();
    }

    async fn fetch(&self, request: FetchRequest) -> FetchResponse {
        let deadline = time::now() + Duration::from_millis(request.max_wait_ms as u64);
        loop {
            let appended = self.appended.listen();
            let (response, bytes) = self.read(&request);
            let left = deadline.duration_since(time::now());
            if bytes > 0 || left.is_zero() || time::timeout(left, appended).await.is_err() {
                return response;
            }
        }
    }

    fn read(&self, request: &FetchRequest) -> (FetchResponse, usize) {
        let mut bytes = 0;
        let mut responses = Vec::new();
        for topic in &request.topics {
            let partitions = topic.partitions.iter().map(|asked| {
                let logs = self.logs.borrow();
                let log = &logs[asked.partition as usize];
                // Whole batches from the one that holds the offset on, as a broker sends them.
                let from = log.partition_point(|(base, _)| *base <= asked.fetch_offset).saturating_sub(1);
                let at_end = asked.fetch_offset >= self.end_offset(asked.partition);
                let batches =
                    log.iter().skip(if at_end { log.len() } else { from }).map(|(_, batch)| batch.clone());
                let batches: Vec<Bytes> = batches.take(3).collect();
                bytes += batches.iter().map(Bytes::len).sum::<usize>();
                PartitionData {
                    partition_index: asked.partition,
                    records: Some(Records::from(batches)),
                    ..Default::default()
                }
            });
            responses.push(FetchableTopicResponse {
                topic_id: topic.topic_id,
                partitions: partitions.collect(),
                ..Default::default()
            });
        }
        (FetchResponse { responses, ..Default::default() }, bytes)
    }
}

fn decode<M: Message>(d: &mut Decoder, header: &RequestHeader) -> M {
    M::decode(d, header.api_version).unwrap()
}

fn encode<M: Message>(header: &RequestHeader, response: &M) -> Vec<Bytes> {
    let key = ApiKey::from_i16(header.api_key).unwrap();
    frame::encode_response(header.correlation_id, key, header.api_version, response).unwrap()
}

async fn next_frame(read: &mut ReadHalf, buffer: &mut BytesMut) -> Option<Bytes> {
    let mut wanted = 4;
    loop {
        if buffer.len() >= 4 {
            wanted = 4 + buffer.clone().get_i32() as usize;
            if buffer.len() >= wanted {
                buffer.advance(4);
                return Some(buffer.split_to(wanted - 4).freeze());
            }
        }
        buffer.reserve(wanted);
        if read.read(buffer).await.ok()? == 0 {
            return None;
        }
    }
}
