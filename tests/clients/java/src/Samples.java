import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;

/**
 * The records that the checks write, and the check that one which was read is the one that was written.
 *
 * A record is known by its lot (a name) and its number; everything else in it follows from these two.
 */
final class Samples {
    static final int PARTITIONS = 4;

    private Samples() {}

    /** Every tenth record has no key. */
    static byte[] key(String lot, int number) {
        return number % 10 == 0 ? null : bytes("key-" + lot + "-" + number);
    }

    /** Every twenty-fifth record is a tombstone; the others have between 20 and 1 500 bytes. */
    static byte[] value(String lot, int number) {
        if (number % 25 == 24) {
            return null;
        }
        char[] filler = new char[number * 37 % 1480];
        Arrays.fill(filler, (char) ('a' + number % 26));
        return bytes("value-" + lot + "-" + number + "-" + new String(filler));
    }

    static ProducerRecord<byte[], byte[]> record(String topic, String lot, int number) {
        ProducerRecord<byte[], byte[]> record =
            new ProducerRecord<>(topic, number % PARTITIONS, key(lot, number), value(lot, number));
        record.headers().add("id", bytes(lot + ":" + number));
        return record;
    }

    /** Fails unless the record is exactly the one that its `id` header names; returns that name. */
    static String check(ConsumerRecord<byte[], byte[]> record) {
        String where = record.topic() + "-" + record.partition() + "@" + record.offset();
        Header header = record.headers().lastHeader("id");
        Checks.that(header != null, where + " has no id header");
        String id = new String(header.value(), StandardCharsets.UTF_8);
        int colon = id.lastIndexOf(':');
        String lot = id.substring(0, colon);
        int number = Integer.parseInt(id.substring(colon + 1));
        Checks.equal(number % PARTITIONS, record.partition(), where + " " + id + ": partition");
        Checks.that(Arrays.equals(key(lot, number), record.key()), where + " " + id + ": key differs");
        Checks.that(Arrays.equals(value(lot, number), record.value()), where + " " + id + ": value differs");
        return id;
    }

    private static byte[] bytes(String text) {
        return Objects.requireNonNull(text).getBytes(StandardCharsets.UTF_8);
    }
}
