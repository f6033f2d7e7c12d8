// Command goclient runs franz-go against a broker: goclient BOOTSTRAP PREFIX.
//
// It creates topics, produces with every codec, reads back, consumes as a group with a rebalance, commits and
// resumes. It exits with 0 only if every answer was right.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const lotSize = 400

var codecs = []struct {
	name  string
	codec kgo.CompressionCodec
}{
	{"none", kgo.NoCompression()},
	{"gzip", kgo.GzipCompression()},
	{"snappy", kgo.SnappyCompression()},
	{"lz4", kgo.Lz4Compression()},
	{"zstd", kgo.ZstdCompression()},
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
	fmt.Println("passed")
}

func run(bootstrap, prefix string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	main, err := newLog(ctx, bootstrap, prefix+"-main")
	if err != nil {
		return err
	}
	for _, c := range codecs {
		if err := main.produce(ctx, c.codec, c.name, lotSize); err != nil {
			return err
		}
	}
	if err := main.readBack(ctx); err != nil {
		return err
	}
	for _, balancer := range []kgo.GroupBalancer{kgo.RangeBalancer(), kgo.CooperativeStickyBalancer()} {
		if err := runGroup(ctx, bootstrap, prefix, balancer); err != nil {
			return fmt.Errorf("%s: %w", balancer.ProtocolName(), err)
		}
	}
	return nil
}

// topicLog is one topic, with the next offset that each of its partitions must hand out.
type topicLog struct {
	bootstrap string
	topic     string
	next      [partitions]int64
}

func newLog(ctx context.Context, bootstrap, topic string) (*topicLog, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(ctx, partitions, 1, nil, topic); err != nil {
		return nil, err
	}
	// Leaders alone list offsets: once they answer, an idempotent producer may start.
	for {
		listed, err := admin.ListEndOffsets(ctx, topic)
		if err == nil && listed.Error() == nil {
			return &topicLog{bootstrap: bootstrap, topic: topic}, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("no leaders of %s: %v, %v", topic, err, listed.Error())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (l *topicLog) produce(ctx context.Context, codec kgo.CompressionCodec, lot string, count int) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(l.bootstrap),
		kgo.ProducerBatchCompression(codec),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(5*time.Millisecond),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	records := make([]*kgo.Record, count)
	for number := range records {
		records[number] = sample(l.topic, lot, number)
	}
	// The results come in the order of acknowledgement, the records keep the order of sending.
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("producing %s: %w", lot, err)
	}
	for number, record := range records {
		partition := number % partitions
		if record.Offset != l.next[partition] {
			return fmt.Errorf("%s:%d got offset %d, expected %d", lot, number, record.Offset, l.next[partition])
		}
		l.next[partition]++
	}
	return nil
}

func (l *topicLog) readBack(ctx context.Context) error {
	assignment := map[int32]kgo.Offset{}
	for p := range int32(partitions) {
		assignment[p] = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(l.bootstrap),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{l.topic: assignment}),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	var read [partitions][]string
	for count := 0; count < lotSize*len(codecs); {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("reading back after %d records: %w", count, err)
		}
		for _, record := range fetches.Records() {
			id, err := check(record)
			if err != nil {
				return err
			}
			if record.Offset != int64(len(read[record.Partition])) {
				return fmt.Errorf("partition %d: offset %d after %d records", record.Partition, record.Offset, len(read[record.Partition]))
			}
			read[record.Partition] = append(read[record.Partition], id)
			count++
		}
	}
	for p, ids := range read {
		at := 0
		for _, c := range codecs {
			for number := p; number < lotSize; number += partitions {
				if expected := fmt.Sprintf("%s:%d", c.name, number); ids[at] != expected {
					return fmt.Errorf("partition %d offset %d is %s, expected %s", p, at, ids[at], expected)
				}
				at++
			}
		}
	}
	return nil
}
