"""confluent-kafka (librdkafka) as an adapter of the scenario: `confluent_client.py BOOTSTRAP PREFIX`."""

import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

import scenario
from samples import PARTITIONS, Record


class Adapter:
    codecs = ["none", "gzip", "snappy", "lz4", "zstd"]

    def __init__(self, bootstrap):
        self.common = {"bootstrap.servers": bootstrap, "socket.timeout.ms": 20000}
        self.admin = AdminClient(self.common)

    def create_topic(self, name):
        self.admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(30)
        # Leaders alone list offsets: once they answer, an idempotent producer may start.
        every = {TopicPartition(name, p): OffsetSpec.latest() for p in range(PARTITIONS)}
        with scenario.Deadline(30, f"leaders of {name}") as deadline:
            while not self.listed(every):
                deadline.check("no offsets yet")

    def listed(self, every):
        try:
            for future in self.admin.list_offsets(every).values():
                future.result(30)
        except KafkaException as failure:
            if failure.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:
                raise
            time.sleep(0.05)
            return False
        return True

    def produce(self, topic, codec, records):
        settings = {"compression.type": codec, "enable.idempotence": True, "linger.ms": 5}
        producer = Producer(self.common | settings)
        answers = [None] * len(records)

        def delivered(number):
            def callback(error, message):
                if error is None:
                    answers[number] = (message.partition(), message.offset())

            return callback

        for number, (partition, key, value, headers) in enumerate(records):
            producer.produce(topic, value, key, partition, delivered(number), headers=headers)
            producer.poll(0)
        producer.flush(60)
        return [answer for answer in answers if answer is not None]

    def reader(self, topic):
        consumer = Membership(self.common, f"{topic}-reader", topic, None)
        consumer.inner.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
        return consumer

    def member(self, group, topic, on_revoked):
        return Membership(self.common, group, topic, on_revoked)


class Membership:
    """One consumer; it joins the group only when it is told what to do with revoked partitions."""

    def __init__(self, common, group, topic, on_revoked):
        self.topic = topic
        self.inner = Consumer(
            common
            | {
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 30000,
                "heartbeat.interval.ms": 300,
            }
        )
        if on_revoked is not None:

            def revoked(_, partitions):
                on_revoked([p.partition for p in partitions], self.commit)

            self.inner.subscribe([topic], on_revoke=revoked)

    def poll(self):
        read = []
        for message in self.inner.consume(20, 0.1):
            if message.error() is not None:
                raise KafkaException(message.error())
            read.append(
                Record(message.partition(), message.offset(), message.key(), message.value(), message.headers())
            )
        return read

    def assignment(self):
        return {p.partition for p in self.inner.assignment()}

    def commit(self, offsets):
        positions = [TopicPartition(self.topic, p, offset) for p, offset in offsets.items()]
        for answer in self.inner.commit(offsets=positions, asynchronous=False):
            if answer.error is not None:
                raise KafkaException(answer.error)

    def committed(self):
        every = [TopicPartition(self.topic, p) for p in range(PARTITIONS)]
        return {p.partition: p.offset for p in self.inner.committed(every, timeout=20)}

    def close(self):
        self.inner.close()


scenario.main(Adapter)
