"""kafka-python as an adapter of the scenario: `kafka_python_client.py BOOTSTRAP PREFIX`."""

from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.structs import OffsetAndMetadata

import scenario
from samples import PARTITIONS, Record


class Adapter:
    codecs = ["none", "gzip", "snappy", "lz4", "zstd"]

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap

    def create_topic(self, name):
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        admin.create_topics([NewTopic(name, PARTITIONS, 1)])
        admin.close()
        # Leaders alone list offsets: once they answer, an idempotent producer may start.
        consumer = KafkaConsumer(bootstrap_servers=self.bootstrap)
        consumer.end_offsets([TopicPartition(name, p) for p in range(PARTITIONS)])
        consumer.close()

    def produce(self, topic, codec, records):
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if codec == "none" else codec,
            acks="all",
            enable_idempotence=True,
            linger_ms=5,
        )
        sent = [
            producer.send(topic, value=value, key=key, headers=headers, partition=partition)
            for partition, key, value, headers in records
        ]
        producer.flush(60)
        answers = [future.get(60) for future in sent]
        producer.close()
        return [(answer.partition, answer.offset) for answer in answers]

    def reader(self, topic):
        consumer = Membership(self.bootstrap, None, topic, None)
        partitions = [TopicPartition(topic, p) for p in range(PARTITIONS)]
        consumer.inner.assign(partitions)
        consumer.inner.seek_to_beginning(*partitions)
        return consumer

    def member(self, group, topic, on_revoked):
        return Membership(self.bootstrap, group, topic, on_revoked)


class Listener(ConsumerRebalanceListener):
    """Runs on the client's own event loop, which must not block: a commit is only begun.

    It is on its way before the request to join again, on the same connection.
    """

    def __init__(self, begin_commit, on_revoked):
        self.begin_commit, self.on_revoked = begin_commit, on_revoked

    def on_partitions_revoked(self, revoked):
        self.on_revoked([p.partition for p in revoked], self.begin_commit)

    def on_partitions_assigned(self, assigned):
        pass


class Membership:
    """One consumer; it joins the group only when it is told what to do with revoked partitions."""

    def __init__(self, bootstrap, group, topic, on_revoked):
        self.topic = topic
        self.inner = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=30000,
            heartbeat_interval_ms=300,
            max_poll_records=20,
        )
        if on_revoked is not None:
            self.inner.subscribe([topic], listener=Listener(self.begin_commit, on_revoked))

    def poll(self):
        polled = self.inner.poll(timeout_ms=100)
        return [
            Record(got.partition, got.offset, got.key, got.value, got.headers)
            for records in polled.values()
            for got in records
        ]

    def assignment(self):
        return {p.partition for p in self.inner.assignment()}

    def positions(self, offsets):
        return {TopicPartition(self.topic, p): OffsetAndMetadata(offset, "", -1) for p, offset in offsets.items()}

    def commit(self, offsets):
        self.inner.commit(self.positions(offsets))

    def begin_commit(self, offsets):
        self.inner.commit_async(self.positions(offsets))

    def committed(self):
        return {p: self.inner.committed(TopicPartition(self.topic, p)) for p in range(PARTITIONS)}

    def close(self):
        self.inner.close(autocommit=False)


scenario.main(Adapter)
