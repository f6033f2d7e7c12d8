// What Apache Kafka itself makes of messages and record batches: reads one question a line from the file that is its
// argument, writes one answer a line. An answer is "ok", with what was asked for, or "error".
//
//   errors                                              code=NAME=retriable for every error code
//   apis                                                id=Name=oldest=latest stable=latest=broker=controller for every API,
//                                                       then the header versions of request and response, each version
//   uuid <32 hex digits>                                the text of the identifier
//   default <message> <version>                         the encoding of the defaults
//   recode <message> <from version> <to version> <hex>  decoded in one version, encoded in another
//   read <hex>                                          the records of a batch
//   write <codec> <producer id> <epoch> <sequence> <transactional> <record>...
//                                                       a batch of records <timestamp>/<key>/<value>[/<name>=<value>]...
//   marker <commit|abort> <producer id> <epoch> <timestamp> <coordinator epoch>
//
// Bytes are hexadecimal, null is "-".

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.ApiMessageType.ListenerType;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;

public class Oracle {
    private static final String[] PACKAGES = {
        "org.apache.kafka.common.message.",
        "org.apache.kafka.common.metadata.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.share.generated.",
        "org.apache.kafka.coordinator.transaction.generated.",
    };

    public static void main(String[] arguments) throws Exception {
        try (PrintStream out = new PrintStream(System.out, false)) {
            for (String line : Files.readAllLines(Path.of(arguments[0]))) {
                String answer;
                try {
                    answer = "ok " + answer(line.split(" "));
                } catch (ClassNotFoundException e) {
                    throw e;
                } catch (Exception e) {
                    answer = "error " + e.getClass().getSimpleName();
                }
                out.println(answer);
            }
        }
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "errors":
                return errors();
            case "apis":
                return apis();
            case "uuid":
                ByteBuffer id = ByteBuffer.wrap(HexFormat.of().parseHex(words[1]));
                return new Uuid(id.getLong(), id.getLong()).toString();
            case "default":
                return encoded(message(words[1]), Short.parseShort(words[2]));
            case "recode":
                Message message = message(words[1]);
                ByteBuffer encoding = bytes(words.length > 4 ? words[4] : "");
                message.read(new ByteBufferAccessor(encoding), Short.parseShort(words[2]));
                if (encoding.hasRemaining()) {
                    throw new IllegalStateException("bytes behind the message");
                }
                return encoded(message, Short.parseShort(words[3]));
            case "read":
                return read(MemoryRecords.readableRecords(bytes(words[1])));
            case "write":
                return hex(write(words).buffer());
            case "marker":
                ControlRecordType type = ControlRecordType.valueOf(words[1].toUpperCase());
                return hex(MemoryRecords.withEndTransactionMarker(0, Long.parseLong(words[4]), -1,
                    Long.parseLong(words[2]), Short.parseShort(words[3]),
                    new EndTransactionMarker(type, Integer.parseInt(words[5]))).buffer());
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static String errors() {
        List<String> codes = new ArrayList<>();
        for (Errors error : Errors.values()) {
            codes.add(error.code() + "=" + error.name() + "=" + (error.exception() instanceof RetriableException));
        }
        return String.join(" ", codes);
    }

    private static String apis() {
        List<String> apis = new ArrayList<>();
        for (ApiKeys key : ApiKeys.values()) {
            if (!key.hasValidVersion()) {
                continue;
            }
            StringBuilder api = new StringBuilder();
            api.append(String.format("%d=%s=%d=%d=%d=%s=%s", key.id, key.name, key.oldestVersion(),
                key.latestVersion(false), key.latestVersion(true), key.inScope(ListenerType.BROKER),
                key.inScope(ListenerType.CONTROLLER)));
            for (short version : key.allVersions()) {
                api.append("=").append(key.requestHeaderVersion(version)).append(key.responseHeaderVersion(version));
            }
            apis.add(api.toString());
        }
        return String.join(" ", apis);
    }

    private static Message message(String name) throws Exception {
        String suffix = name.endsWith("Request") || name.endsWith("Response") ? "Data" : "";
        for (String prefix : PACKAGES) {
            try {
                return (Message) Class.forName(prefix + name + suffix).getDeclaredConstructor().newInstance();
            } catch (ClassNotFoundException e) {
                // In another package, then.
            }
        }
        throw new ClassNotFoundException(name);
    }

    private static String encoded(Message message, short version) {
        return hex(MessageUtil.toByteBufferAccessor(message, version).buffer());
    }

    private static String read(MemoryRecords records) {
        StringBuilder text = new StringBuilder();
        for (RecordBatch batch : records.batches()) {
            batch.ensureValid();
            text.append(String.format("batch %d %d %d %d %d %d %d %d %d %s %s %s %s", batch.baseOffset(), batch.lastOffset(),
                batch.sizeInBytes(), batch.partitionLeaderEpoch(), batch.maxTimestamp(), batch.producerId(),
                batch.producerEpoch(), batch.baseSequence(), batch.lastSequence(), batch.compressionType().name,
                batch.isTransactional(), batch.isControlBatch(), batch.timestampType() == TimestampType.LOG_APPEND_TIME));
            for (Record record : batch) {
                text.append(String.format(" record %d %d %s %s", record.offset(), record.timestamp(),
                    hex(record.key()), hex(record.value())));
                for (Header header : record.headers()) {
                    ByteBuffer value = header.value() == null ? null : ByteBuffer.wrap(header.value());
                    text.append(" header ").append(hex(ByteBuffer.wrap(header.key().getBytes(UTF_8)))).append(" ").append(hex(value));
                }
            }
        }
        return text.toString();
    }

    private static MemoryRecords write(String[] words) {
        List<SimpleRecord> records = new ArrayList<>();
        for (int at = 6; at < words.length; at++) {
            String[] parts = words[at].split("/", -1);
            Header[] headers = new Header[parts.length - 3];
            for (int header = 0; header < headers.length; header++) {
                String[] pair = parts[3 + header].split("=", -1);
                headers[header] = new RecordHeader(new String(array(pair[0]), UTF_8),
                    array(pair[1]));
            }
            records.add(new SimpleRecord(Long.parseLong(parts[0]), array(parts[1]), array(parts[2]), headers));
        }
        return MemoryRecords.withRecords(RecordBatch.MAGIC_VALUE_V2, 0, Compression.of(words[1]).build(),
            TimestampType.CREATE_TIME, Long.parseLong(words[2]), Short.parseShort(words[3]), Integer.parseInt(words[4]),
            -1, Boolean.parseBoolean(words[5]), records.toArray(new SimpleRecord[0]));
    }

    private static ByteBuffer bytes(String hex) {
        return ByteBuffer.wrap(HexFormat.of().parseHex(hex));
    }

    private static byte[] array(String hex) {
        return hex.equals("-") ? null : HexFormat.of().parseHex(hex);
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return "-";
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
