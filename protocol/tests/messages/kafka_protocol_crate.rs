//! Byte for byte against the `kafka-protocol` crate, for every message and version that both have, but for
//! LeaderChangeMessage and VotersRecord, which it does not read as Kafka writes them.
//!
//! The crate is given valid encodings only: its decoder allocates what a length claims, and aborts on a hostile one.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::{Decodable, Encodable, Message};

use crate::support::generated::{CODECS, SCHEMA};
use crate::support::random::Random;
use crate::support::sample::{Content, encoding};
use crate::support::{Codec, hex, schema};

fn ours(name: &str) -> &'static Codec {
    CODECS.iter().find(|codec| codec.name == name).expect("a message of ours")
}

/// A message of that crate, as functions over bytes; `None` for a version that it does not have.
struct Theirs {
    name: &'static str,
    recode: fn(Bytes, i16) -> Option<Result<Bytes, String>>,
    default: fn(i16) -> Option<Result<Bytes, String>>,
}

fn encode<M: Encodable>(message: &M, version: i16) -> Result<Bytes, String> {
    let mut out = BytesMut::new();
    message.encode(&mut out, version).map_err(|error| error.to_string())?;
    Ok(out.freeze())
}

fn recode<M: Message + Encodable + Decodable>(
    mut bytes: Bytes,
    version: i16,
) -> Option<Result<Bytes, String>> {
    if !has::<M>(version) {
        return None;
    }
    Some(M::decode(&mut bytes, version).map_err(|error| error.to_string()).and_then(|message| {
        assert!(bytes.is_empty(), "{} bytes behind the message", bytes.len());
        encode(&message, version)
    }))
}

fn default<M: Message + Encodable + Default>(version: i16) -> Option<Result<Bytes, String>> {
    has::<M>(version).then(|| encode(&M::default(), version))
}

fn has<M: Message>(version: i16) -> bool {
    (M::VERSIONS.min..=M::VERSIONS.max).contains(&version)
}

macro_rules! messages {
    ($($name:ident,)*) => {
        const THEIRS: &[Theirs] = &[$(Theirs {
            name: stringify!($name),
            recode: recode::<theirs::$name>,
            default: default::<theirs::$name>,
        },)*];
    };
}

messages! {
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    CreateAclsRequest,
    CreateAclsResponse,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DefaultPrincipalData,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    EndTxnMarker,
    EndTxnRequest,
    EndTxnResponse,
    EnvelopeRequest,
    EnvelopeResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    KRaftVersionRecord,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    SyncGroupRequest,
    SyncGroupResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    VoteRequest,
    VoteResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
}

#[test]
fn valid_encodings_of_every_shared_message_are_read_and_written_alike() {
    let schema = schema::parse(SCHEMA);
    let mut compared = 0;
    for theirs in THEIRS {
        let ours = ours(theirs.name);
        for version in ours.versions() {
            let mut random = Random::new(version as u64);
            for content in [Content::Default].into_iter().chain([Content::Random, Content::Extreme].repeat(6))
            {
                let bytes = Bytes::from(encoding(&schema[theirs.name], version, content, &mut random));
                let what = format!("{} {version}: {}", theirs.name, hex(&bytes));
                let Some(recoded) = (theirs.recode)(bytes.clone(), version) else { continue };
                assert_eq!(recoded.as_ref(), Ok(&bytes), "theirs, {what}");
                assert_eq!(
                    (ours.transcode)(bytes.clone(), version, version).as_ref(),
                    Ok(&bytes),
                    "ours, {what}"
                );
                compared += 1;
            }
        }
    }
    // So that a mistake above cannot leave nothing to compare.
    assert!(compared > 7_000, "{compared} encodings compared");
}

#[test]
fn defaults_of_every_shared_message_are_alike() {
    let mut compared = 0;
    for theirs in THEIRS {
        let ours = ours(theirs.name);
        for version in ours.versions() {
            let Some(expected) = (theirs.default)(version) else { continue };
            let got = (ours.default)(version).map_err(|error| error.to_string());
            assert_eq!(got, expected, "{} {version}", theirs.name);
            compared += 1;
        }
    }
    assert!(compared > 550, "{compared} defaults compared");
}
