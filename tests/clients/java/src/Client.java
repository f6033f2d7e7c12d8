import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * One run of Apache Kafka's Java client against a broker: `Client BOOTSTRAP PREFIX`.
 *
 * Creates topics, produces with every codec, reads back, consumes as a group with a rebalance, commits
 * and resumes, and asks what an administrator asks. Exits with 0 only if every answer was right.
 */
public final class Client {
    static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");
    static final int LOT = 400;

    final String bootstrap;
    final String prefix;

    private Client(String bootstrap, String prefix) {
        this.bootstrap = bootstrap;
        this.prefix = prefix;
    }

    public static void main(String[] arguments) throws Exception {
        try {
            Client client = new Client(arguments[0], arguments[1]);
            try (Admin admin = Admin.create(client.common())) {
                new AdminChecks(client, admin).beforeData();
                client.produceEveryCodec();
                client.readBack();
                new AdminChecks(client, admin).withData();
                for (String assignor : List.of("RangeAssignor", "CooperativeStickyAssignor")) {
                    new GroupChecks(client, admin, assignor).run();
                }
                new GroupChecks(client, admin, "RangeAssignor").staticMembership();
                new AdminChecks(client, admin).cleanUp();
            }
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
        System.out.println("passed");
        System.exit(0);
    }

    String topic() {
        return prefix + "-main";
    }

    static List<TopicPartition> partitions(String topic) {
        return IntStream.range(0, Samples.PARTITIONS).mapToObj(p -> new TopicPartition(topic, p))
            .collect(Collectors.toList());
    }

    Properties common() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("request.timeout.ms", "20000");
        return properties;
    }

    Producer<byte[], byte[]> producer(String codec) {
        Properties properties = common();
        properties.put("acks", "all");
        properties.put("enable.idempotence", "true");
        properties.put("compression.type", codec);
        properties.put("linger.ms", "5");
        return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    }

    Consumer<byte[], byte[]> consumer(Map<String, String> more) {
        Properties properties = common();
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        properties.putAll(more);
        return new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** Produces one lot and checks that each partition's offsets go on from `next` without a gap. */
    void produce(String topic, String codec, String lot, int count, long[] next) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (Producer<byte[], byte[]> producer = producer(codec)) {
            for (int number = 0; number < count; number++) {
                sent.add(producer.send(Samples.record(topic, lot, number)));
            }
            producer.flush();
            for (int number = 0; number < count; number++) {
                RecordMetadata metadata = sent.get(number).get();
                int partition = number % Samples.PARTITIONS;
                Checks.equal(partition, metadata.partition(), lot + ":" + number + " went to partition");
                Checks.equal(next[partition]++, metadata.offset(), lot + ":" + number + " got offset");
            }
        }
    }

    private void produceEveryCodec() throws Exception {
        long[] next = new long[Samples.PARTITIONS];
        for (String codec : CODECS) {
            produce(topic(), codec, codec, LOT, next);
        }
    }

    private void readBack() {
        Map<Integer, List<String>> read = new HashMap<>();
        int expected = LOT * CODECS.size();
        try (Consumer<byte[], byte[]> consumer = consumer(Map.of())) {
            List<TopicPartition> partitions = partitions(topic());
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Checks.Deadline deadline = new Checks.Deadline(60, "reading all records back");
            int count = 0;
            while (count < expected) {
                deadline.check(count + " of " + expected);
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    List<String> partition = read.computeIfAbsent(record.partition(), p -> new ArrayList<>());
                    Checks.equal((long) partition.size(), record.offset(), "next offset of " + record.partition());
                    partition.add(Samples.check(record));
                    count++;
                }
            }
        }
        for (int partition = 0; partition < Samples.PARTITIONS; partition++) {
            List<String> order = new ArrayList<>();
            for (String codec : CODECS) {
                for (int number = partition; number < LOT; number += Samples.PARTITIONS) {
                    order.add(codec + ":" + number);
                }
            }
            Checks.equal(order, read.get(partition), "records of partition " + partition);
        }
    }

    /** All names `lot:number` of the given lots. */
    static Set<String> names(List<String> lots, int count) {
        Set<String> names = new HashSet<>();
        lots.forEach(lot -> IntStream.range(0, count).forEach(number -> names.add(lot + ":" + number)));
        return names;
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
