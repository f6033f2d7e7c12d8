package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The records that the checks write, and the check that one which was read is the one that was written.
// A record is known by its lot (a name) and its number; everything else in it follows from these two.

const partitions = 4

// key is missing from every tenth record.
func key(lot string, number int) []byte {
	if number%10 == 0 {
		return nil
	}
	return fmt.Appendf(nil, "key-%s-%d", lot, number)
}

// value is a tombstone in every twenty-fifth record; the others have between 20 and 1 500 bytes.
func value(lot string, number int) []byte {
	if number%25 == 24 {
		return nil
	}
	filler := strings.Repeat(string(rune('a'+number%26)), number*37%1480)
	return fmt.Appendf(nil, "value-%s-%d-%s", lot, number, filler)
}

func sample(topic, lot string, number int) *kgo.Record {
	return &kgo.Record{
		Topic:     topic,
		Partition: int32(number % partitions),
		Key:       key(lot, number),
		Value:     value(lot, number),
		Headers:   []kgo.RecordHeader{{Key: "id", Value: fmt.Appendf(nil, "%s:%d", lot, number)}},
	}
}

// check fails unless the record is exactly the one that its id header names; it returns that name.
func check(record *kgo.Record) (string, error) {
	where := fmt.Sprintf("partition %d offset %d", record.Partition, record.Offset)
	if len(record.Headers) != 1 || record.Headers[0].Key != "id" {
		return "", fmt.Errorf("%s: headers are %v", where, record.Headers)
	}
	id := string(record.Headers[0].Value)
	lot, digits, _ := strings.Cut(id, ":")
	number, err := strconv.Atoi(digits)
	if err != nil {
		return "", fmt.Errorf("%s: id %q", where, id)
	}
	switch {
	case int(record.Partition) != number%partitions:
		return "", fmt.Errorf("%s: %s is in the wrong partition", where, id)
	case !same(record.Key, key(lot, number)):
		return "", fmt.Errorf("%s: key of %s differs", where, id)
	case !same(record.Value, value(lot, number)):
		return "", fmt.Errorf("%s: value of %s differs", where, id)
	}
	return id, nil
}

// same tells a missing value from an empty one.
func same(a, b []byte) bool {
	return (a == nil) == (b == nil) && bytes.Equal(a, b)
}
