import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Consumer groups: two members with a rebalance each way, offset commits, resuming, static members. */
final class GroupChecks {
    private static final int LOT = 200;
    private static final int LEFT_OVER = 7;

    private final Client client;
    private final Admin admin;
    private final String assignor;
    private final String topic;
    private final String group;
    private final long[] next = new long[Samples.PARTITIONS];
    private final Set<String> seen = new HashSet<>();

    GroupChecks(Client client, Admin admin, String assignor) {
        this.client = client;
        this.admin = admin;
        this.assignor = assignor;
        this.topic = client.prefix + "-group-" + assignor;
        this.group = client.prefix + "-" + assignor;
    }

    /** A consumer, the records that it has read, and whether it commits when partitions are revoked. */
    private final class Member implements ConsumerRebalanceListener, AutoCloseable {
        final String name;
        final Consumer<byte[], byte[]> consumer;
        final Map<TopicPartition, Long> first = new HashMap<>();
        int read;
        boolean commitOnRevoke = true;

        Member(String name, Map<String, String> more) {
            Map<String, String> settings = new HashMap<>(Map.of(
                "group.id", group, "client.id", name, "session.timeout.ms", "30000",
                "heartbeat.interval.ms", "300", "max.poll.records", "20",
                "partition.assignment.strategy", "org.apache.kafka.clients.consumer." + assignor));
            settings.putAll(more);
            this.name = name;
            this.consumer = client.consumer(settings);
            this.consumer.subscribe(List.of(topic), this);
        }

        @Override public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            if (commitOnRevoke && !partitions.isEmpty()) {
                consumer.commitSync();
            }
        }

        @Override public void onPartitionsAssigned(Collection<TopicPartition> partitions) {}

        void poll() {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                first.putIfAbsent(new TopicPartition(record.topic(), record.partition()), record.offset());
                String id = Samples.check(record);
                Checks.that(seen.add(id), name + " read " + id + " a second time");
                read++;
            }
        }

        int partitions() {
            return consumer.assignment().size();
        }

        @Override public void close() {
            consumer.close();
        }
    }

    void run() throws Exception {
        AdminChecks.create(admin, topic);
        produce("early");
        try (Member a = new Member("a", Map.of())) {
            until("a owns everything", List.of(a), () -> a.partitions() == Samples.PARTITIONS);
            try (Member b = new Member("b", Map.of())) {
                until("both own half", List.of(a, b), () -> a.partitions() == 2 && b.partitions() == 2);
                until("the first lot is read", List.of(a, b), () -> seen.size() == LOT);
                int before = b.read;
                produce("shared");
                until("both read the second lot", List.of(a, b), () -> seen.size() == 2 * LOT);
                Checks.equal(LOT / 2, b.read - before, "b's half of the second lot");
                AdminChecks.groupHasMembers(admin, group, 2);
            }
            until("a took over", List.of(a), () -> a.partitions() == Samples.PARTITIONS);
            produce("late");
            until("a reads the third lot", List.of(a), () -> seen.size() == 3 * LOT);
            Checks.equal(Client.names(List.of("early", "shared", "late"), LOT), seen, "records read by the group");
            Map<TopicPartition, OffsetAndMetadata> back = new HashMap<>();
            Client.partitions(topic).forEach(p ->
                back.put(p, new OffsetAndMetadata(next[p.partition()] - LEFT_OVER, "kept for " + p)));
            a.consumer.commitSync(back);
            a.commitOnRevoke = false;
        }
        resume();
        AdminChecks.deleteGroup(admin, group);
    }

    /** A third member starts where the offset commit was, not where the last one had read to. */
    private void resume() {
        seen.clear();
        try (Member c = new Member("c", Map.of())) {
            int expected = LEFT_OVER * Samples.PARTITIONS;
            until("c reads what is left", List.of(c), () -> seen.size() == expected);
            c.poll();
            Checks.equal(expected, seen.size(), "records after the committed offsets");
            Map<TopicPartition, OffsetAndMetadata> committed =
                c.consumer.committed(new HashSet<>(Client.partitions(topic)));
            for (TopicPartition partition : Client.partitions(topic)) {
                long offset = next[partition.partition()] - LEFT_OVER;
                Checks.equal(offset, c.first.get(partition), "first offset that c read of " + partition);
                Checks.equal(offset, committed.get(partition).offset(), "committed offset of " + partition);
                Checks.equal("kept for " + partition, committed.get(partition).metadata(), "its metadata");
            }
            c.commitOnRevoke = false;
        }
    }

    /** A static member that comes back within its session keeps its partitions, and nothing is rebalanced. */
    void staticMembership() throws Exception {
        String kept = group + "-static";
        Map<String, String> a = Map.of("group.id", kept, "group.instance.id", "one");
        Map<String, String> b = Map.of("group.id", kept, "group.instance.id", "two");
        seen.clear();
        produce("static");
        try (Member first = new Member("static-a", a)) {
            Set<TopicPartition> owned;
            try (Member second = new Member("static-b", b)) {
                until("both static members own half", List.of(first, second),
                    () -> first.partitions() == 2 && second.partitions() == 2);
                owned = new HashSet<>(second.consumer.assignment());
                second.commitOnRevoke = false;
            }
            Set<TopicPartition> untouched = new HashSet<>(first.consumer.assignment());
            seen.clear();
            try (Member again = new Member("static-b", b)) {
                until("the static member is back", List.of(first, again), () -> {
                    Checks.equal(untouched, first.consumer.assignment(), "partitions of the member that stayed");
                    seen.clear();
                    return again.partitions() > 0;
                });
                Checks.equal(owned, again.consumer.assignment(), "partitions of the member that came back");
                again.commitOnRevoke = false;
            }
            first.commitOnRevoke = false;
        }
    }

    private void produce(String lot) throws Exception {
        if (lot.equals("static")) {
            for (TopicPartition partition : Client.partitions(topic)) {
                next[partition.partition()] = AdminChecks.endOffset(admin, partition);
            }
        }
        client.produce(topic, "none", lot, LOT, next);
    }

    private interface Condition {
        boolean holds();
    }

    private void until(String what, List<Member> members, Condition condition) {
        Checks.Deadline deadline = new Checks.Deadline(60, assignor + ": " + what);
        while (!condition.holds()) {
            for (Member member : members) {
                member.poll();
            }
            StringBuilder state = new StringBuilder(seen.size() + " records seen");
            members.forEach(m -> state.append(", ").append(m.name).append(" owns ").append(m.consumer.assignment()));
            deadline.check(state);
        }
    }
}
