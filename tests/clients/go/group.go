package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	groupLot = 200
	leftOver = 7
)

// group is two members with a rebalance each way, offset commits, and a third member that resumes.
type group struct {
	name     string
	log      *topicLog
	balancer kgo.GroupBalancer
	seen     map[string]bool
}

// member is a consumer, what it owns, the next offset that it will read of each partition, and what it read first.
// franz-go calls the hooks from within PollRecords and AllowRebalance (BlockRebalanceOnPoll), so nothing here is shared
// between goroutines at the same time.
type member struct {
	name    string
	group   *group
	client  *kgo.Client
	owned   chan map[int32]bool
	first   map[int32]int64
	read    int
	commits bool
}

func runGroup(ctx context.Context, bootstrap, prefix string, balancer kgo.GroupBalancer) error {
	name := prefix + "-" + balancer.ProtocolName()
	log, err := newLog(ctx, bootstrap, name)
	if err != nil {
		return err
	}
	g := &group{name: name, log: log, balancer: balancer, seen: map[string]bool{}}
	if err := g.rebalance(ctx); err != nil {
		return err
	}
	return g.resume(ctx)
}

func (g *group) join(name string) (*member, error) {
	m := &member{name: name, group: g, owned: make(chan map[int32]bool, 1), first: map[int32]int64{}, commits: true}
	m.owned <- map[int32]bool{}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(g.log.bootstrap),
		kgo.ClientID(name),
		kgo.ConsumerGroup(g.name),
		kgo.ConsumeTopics(g.log.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(g.balancer),
		kgo.SessionTimeout(30*time.Second),
		kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, assigned map[string][]int32) {
			owned := <-m.owned
			for _, p := range assigned[g.log.topic] {
				owned[p] = true
			}
			m.owned <- owned
		}),
		kgo.OnPartitionsRevoked(func(ctx context.Context, client *kgo.Client, revoked map[string][]int32) {
			if m.commits && len(revoked) > 0 {
				// A failure shows as a record that is read twice.
				_ = client.CommitUncommittedOffsets(ctx)
			}
			m.forget(revoked)
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) { m.forget(lost) }),
	)
	m.client = client
	return m, err
}

func (m *member) forget(given map[string][]int32) {
	owned := <-m.owned
	for _, p := range given[m.group.log.topic] {
		delete(owned, p)
	}
	m.owned <- owned
}

func (m *member) owns() int {
	owned := <-m.owned
	m.owned <- owned
	return len(owned)
}

func (m *member) poll(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	fetches := m.client.PollRecords(short, 20)
	defer m.client.AllowRebalance()
	for _, failure := range fetches.Errors() {
		if short.Err() == nil {
			return fmt.Errorf("%s: %s-%d: %w", m.name, failure.Topic, failure.Partition, failure.Err)
		}
	}
	for _, record := range fetches.Records() {
		id, err := check(record)
		if err != nil {
			return err
		}
		if m.group.seen[id] {
			return fmt.Errorf("%s read %s a second time", m.name, id)
		}
		m.group.seen[id] = true
		if _, ok := m.first[record.Partition]; !ok {
			m.first[record.Partition] = record.Offset
		}
		m.read++
	}
	return nil
}

func (g *group) rebalance(ctx context.Context) error {
	if err := g.log.produce(ctx, kgo.NoCompression(), "early", groupLot); err != nil {
		return err
	}
	a, err := g.join("a")
	if err != nil {
		return err
	}
	if err := g.until(ctx, "a owns everything", []*member{a}, func() bool { return a.owns() == partitions }); err != nil {
		return err
	}
	b, err := g.join("b")
	if err != nil {
		return err
	}
	both := []*member{a, b}
	if err := g.until(ctx, "both own half", both, func() bool { return a.owns() == 2 && b.owns() == 2 }); err != nil {
		return err
	}
	if err := g.until(ctx, "the first lot is read", both, func() bool { return len(g.seen) == groupLot }); err != nil {
		return err
	}
	before := b.read
	if err := g.log.produce(ctx, kgo.NoCompression(), "shared", groupLot); err != nil {
		return err
	}
	if err := g.until(ctx, "the second lot is read", both, func() bool { return len(g.seen) == 2*groupLot }); err != nil {
		return err
	}
	if b.read-before != groupLot/2 {
		return fmt.Errorf("b read %d records of the second lot, expected %d", b.read-before, groupLot/2)
	}
	b.client.Close()
	if err := g.until(ctx, "a took over", []*member{a}, func() bool { return a.owns() == partitions }); err != nil {
		return err
	}
	if err := g.log.produce(ctx, kgo.NoCompression(), "late", groupLot); err != nil {
		return err
	}
	if err := g.until(ctx, "a reads the third lot", []*member{a}, func() bool { return len(g.seen) == 3*groupLot }); err != nil {
		return err
	}
	return a.leaveAt(ctx, leftOver)
}

// leaveAt commits so that `left` records of each partition are still to be read, and leaves the group.
func (m *member) leaveAt(ctx context.Context, left int64) error {
	offsets := map[int32]kgo.EpochOffset{}
	for p := range int32(partitions) {
		offsets[p] = kgo.EpochOffset{Epoch: -1, Offset: m.group.log.next[p] - left}
	}
	m.commits = false
	var failure error
	m.client.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{m.group.log.topic: offsets},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
			failure = err
			if response == nil {
				return
			}
			for _, topic := range response.Topics {
				for _, p := range topic.Partitions {
					failure = errors.Join(failure, kerr.ErrorForCode(p.ErrorCode))
				}
			}
		})
	m.client.Close()
	return failure
}

func (g *group) resume(ctx context.Context) error {
	g.seen = map[string]bool{}
	c, err := g.join("c")
	if err != nil {
		return err
	}
	c.commits = false
	defer c.client.Close()
	expected := leftOver * partitions
	if err := g.until(ctx, "c reads what is left", []*member{c}, func() bool { return len(g.seen) == expected }); err != nil {
		return err
	}
	if err := c.poll(ctx); err != nil {
		return err
	}
	if len(g.seen) != expected {
		return fmt.Errorf("c read %d records after the committed offsets, expected %d", len(g.seen), expected)
	}
	for p := range int32(partitions) {
		if want := g.log.next[p] - leftOver; c.first[p] != want {
			return fmt.Errorf("c began partition %d at %d, the committed offset is %d", p, c.first[p], want)
		}
	}
	return nil
}

func (g *group) until(ctx context.Context, what string, members []*member, holds func() bool) error {
	deadline := time.Now().Add(time.Minute)
	for !holds() {
		state := fmt.Sprintf("%d records seen", len(g.seen))
		for _, m := range members {
			if err := m.poll(ctx); err != nil {
				return err
			}
			state += fmt.Sprintf(", %s owns %d", m.name, m.owns())
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("timed out: %s; %s", what, state)
		}
	}
	return nil
}
