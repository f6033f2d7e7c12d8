import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** What an administrator asks of a broker: topics, partitions, offsets, configurations, groups. */
final class AdminChecks {
    private final Client client;
    private final Admin admin;

    AdminChecks(Client client, Admin admin) {
        this.client = client;
        this.admin = admin;
    }

    static void create(Admin admin, NewTopic topic) throws Exception {
        admin.createTopics(List.of(topic)).all().get();
        // Apache Kafka answers before every leader is in place; an idempotent producer whose second batch finds a
        // leader that its first one did not find is then stuck. Offsets are listed by leaders alone.
        Map<TopicPartition, OffsetSpec> all = new HashMap<>();
        Client.partitions(topic.name()).forEach(partition -> all.put(partition, OffsetSpec.latest()));
        admin.listOffsets(all).all().get();
    }

    static void create(Admin admin, String topic) throws Exception {
        create(admin, new NewTopic(topic, Samples.PARTITIONS, (short) 1));
    }

    static long endOffset(Admin admin, TopicPartition partition) throws Exception {
        return admin.listOffsets(Map.of(partition, OffsetSpec.latest())).all().get().get(partition).offset();
    }

    static void groupHasMembers(Admin admin, String group, int members) throws Exception {
        ConsumerGroupDescription description =
            admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        Checks.equal(members, description.members().size(), "members of " + group);
        Set<TopicPartition> assigned = new HashSet<>();
        description.members().forEach(member ->
            member.assignment().topicPartitions().forEach(partition ->
                Checks.that(assigned.add(partition), partition + " is assigned twice")));
        Checks.equal(Samples.PARTITIONS, assigned.size(), "partitions assigned in " + group);
    }

    static void deleteGroup(Admin admin, String group) throws Exception {
        Checks.that(groups(admin).contains(group), group + " is not listed");
        admin.deleteConsumerGroups(List.of(group)).all().get();
        Checks.that(!groups(admin).contains(group), group + " is listed after its deletion");
    }

    private static Set<String> groups(Admin admin) throws Exception {
        return admin.listConsumerGroups().all().get().stream().map(listing -> listing.groupId())
            .collect(Collectors.toSet());
    }

    void beforeData() throws Exception {
        Collection<Node> nodes = admin.describeCluster().nodes().get();
        Checks.that(!nodes.isEmpty(), "the cluster has no nodes");
        Checks.that(admin.describeCluster().clusterId().get() != null, "the cluster has no id");
        NewTopic topic = new NewTopic(client.topic(), Samples.PARTITIONS, (short) 1)
            .configs(Map.of("segment.bytes", "2097152", "retention.ms", "86400000"));
        create(admin, topic);
        fails(TopicExistsException.class, () -> create(admin, client.topic()));
        Checks.that(admin.listTopics().names().get().contains(client.topic()), client.topic() + " is not listed");
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, client.topic());
        Config config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        Checks.equal("2097152", config.get("segment.bytes").value(), "segment.bytes");
        Checks.equal("86400000", config.get("retention.ms").value(), "retention.ms");
        Checks.equal("delete", config.get("cleanup.policy").value(), "cleanup.policy");
        Checks.that(config.get("cleanup.policy").isDefault(), "cleanup.policy is not a default");
    }

    void withData() throws Exception {
        long end = Client.LOT * Client.CODECS.size() / Samples.PARTITIONS;
        Map<TopicPartition, OffsetSpec> latest = new HashMap<>();
        Map<TopicPartition, OffsetSpec> earliest = new HashMap<>();
        Map<TopicPartition, OffsetSpec> past = new HashMap<>();
        Map<TopicPartition, OffsetSpec> future = new HashMap<>();
        for (TopicPartition partition : Client.partitions(client.topic())) {
            latest.put(partition, OffsetSpec.latest());
            earliest.put(partition, OffsetSpec.earliest());
            past.put(partition, OffsetSpec.forTimestamp(1000));
            future.put(partition, OffsetSpec.forTimestamp(System.currentTimeMillis() + 3_600_000));
        }
        offsetsAre(latest, end, "latest");
        offsetsAre(earliest, 0, "earliest");
        offsetsAre(past, 0, "of a time before all");
        offsetsAre(future, -1, "of a time after all");
    }

    private void offsetsAre(Map<TopicPartition, OffsetSpec> query, long offset, String what) throws Exception {
        Map<TopicPartition, ListOffsetsResultInfo> answer = admin.listOffsets(query).all().get();
        answer.forEach((partition, info) ->
            Checks.equal(offset, info.offset(), what + " offset of " + partition));
        Checks.equal(query.keySet(), answer.keySet(), "partitions in the answer");
    }

    void cleanUp() throws Exception {
        admin.createPartitions(Map.of(client.topic(), NewPartitions.increaseTo(6))).all().get();
        try (var producer = client.producer("none")) {
            Checks.equal(6, producer.partitionsFor(client.topic()).size(), "partitions after the increase");
        }
        Set<String> mine = admin.listTopics().names().get().stream()
            .filter(name -> name.startsWith(client.prefix)).collect(Collectors.toSet());
        Checks.that(mine.contains(client.topic()), client.topic() + " is not listed");
        admin.deleteTopics(mine).all().get();
        mine.forEach(name -> fails(UnknownTopicOrPartitionException.class,
            () -> admin.deleteTopics(List.of(name)).all().get()));
        Set<String> left = new HashSet<>(admin.listTopics().names().get());
        left.retainAll(mine);
        Checks.that(left.isEmpty(), "still listed after deletion: " + left);
    }

    private interface Action {
        void run() throws Exception;
    }

    private static void fails(Class<? extends Exception> expected, Action action) {
        try {
            action.run();
        } catch (ExecutionException failure) {
            Checks.that(expected.isInstance(failure.getCause()),
                "expected " + expected.getSimpleName() + ", got " + failure.getCause());
            return;
        } catch (Exception failure) {
            throw new IllegalStateException("expected " + expected.getSimpleName(), failure);
        }
        throw new IllegalStateException("expected " + expected.getSimpleName() + ", but it succeeded");
    }
}
