"""What every Python client must be able to do against the broker, written once over a small adapter.

An adapter has `codecs`, `create_topic(name)`, `produce(topic, codec, records) -> [(partition, offset)]`,
`reader(topic) -> consumer of all partitions from the beginning` and `member(group, topic, on_revoked) -> consumer`,
which calls `on_revoked(partitions, commit)` before it gives partitions up.
A consumer has `poll() -> [Record]`, `assignment() -> {partition}`, `commit({partition: offset})`,
`committed() -> {partition: offset}` and `close()`.
"""

import sys
import time
import traceback

from samples import PARTITIONS, Mismatch, check, record, require, require_equal

LOT = 400
GROUP_LOT = 200
LEFT_OVER = 7


def main(make_adapter):
    """Runs `PROGRAM BOOTSTRAP PREFIX` and exits with 0 only if every answer was right."""
    try:
        bootstrap, prefix = sys.argv[1:3]
        adapter = make_adapter(bootstrap)
        produce_and_read_back(adapter, f"{prefix}-main")
        Group(adapter, f"{prefix}-group", f"{prefix}-members").run()
    except Exception:
        traceback.print_exc()
        sys.exit(1)
    print("passed")


class Log:
    """One topic, with the next offset that each of its partitions must hand out."""

    def __init__(self, adapter, topic):
        self.adapter, self.topic = adapter, topic
        self.next = [0] * PARTITIONS
        adapter.create_topic(topic)

    def produce(self, codec, lot, count):
        records = [record(lot, number) for number in range(count)]
        answers = self.adapter.produce(self.topic, codec, records)
        require_equal(count, len(answers), f"acknowledgements of {lot}")
        for number, (partition, offset) in enumerate(answers):
            require_equal(number % PARTITIONS, partition, f"{lot}:{number} went to partition")
            require_equal(self.next[partition], offset, f"{lot}:{number} got offset")
            self.next[partition] += 1


def produce_and_read_back(adapter, topic):
    log = Log(adapter, topic)
    for codec in adapter.codecs:
        log.produce(codec, codec, LOT)
    read = {partition: [] for partition in range(PARTITIONS)}
    reader = adapter.reader(topic)
    expected = LOT * len(adapter.codecs)
    with Deadline(60, "reading all records back") as deadline:
        while sum(map(len, read.values())) < expected:
            deadline.check(read.keys())
            for got in reader.poll():
                require_equal(len(read[got.partition]), got.offset, f"next offset of partition {got.partition}")
                read[got.partition].append(check(got))
    reader.close()
    for partition in range(PARTITIONS):
        order = [f"{codec}:{n}" for codec in adapter.codecs for n in range(partition, LOT, PARTITIONS)]
        require_equal(order, read[partition], f"records of partition {partition}")


class Member:
    """A consumer, the next offset that it will read of each partition, and what it has read first."""

    def __init__(self, group, name):
        self.group, self.name, self.read = group, name, 0
        self.first, self.next = {}, {}
        self.commits_when_revoked = True
        self.consumer = group.adapter.member(group.name, group.log.topic, self.on_revoked)

    def on_revoked(self, partitions, commit):
        owned = {p: self.next.pop(p) for p in partitions if p in self.next}
        if owned and self.commits_when_revoked:
            commit(owned)

    def poll(self):
        for got in self.consumer.poll():
            identity = check(got)
            require(identity not in self.group.seen, f"{self.name} read {identity} a second time")
            if got.partition in self.next:
                require_equal(self.next[got.partition], got.offset, f"{self.name}: next offset of {got.partition}")
            self.group.seen.add(identity)
            self.first.setdefault(got.partition, got.offset)
            self.next[got.partition] = got.offset + 1
            self.read += 1

    def owns(self):
        return len(self.consumer.assignment())


class Group:
    """Two members with a rebalance each way, offset commits, and a third member that resumes."""

    def __init__(self, adapter, topic, name):
        self.adapter, self.name = adapter, name
        self.log = Log(adapter, topic)
        self.seen = set()

    def run(self):
        self.log.produce("none", "early", GROUP_LOT)
        a = Member(self, "a")
        self.until("a owns everything", [a], lambda: a.owns() == PARTITIONS)
        b = Member(self, "b")
        self.until("both own half", [a, b], lambda: a.owns() == 2 and b.owns() == 2)
        together = a.consumer.assignment() | b.consumer.assignment()
        require_equal(set(range(PARTITIONS)), together, "partitions owned together")
        self.until("the first lot is read", [a, b], lambda: len(self.seen) == GROUP_LOT)
        before = b.read
        self.log.produce("none", "shared", GROUP_LOT)
        self.until("the second lot is read", [a, b], lambda: len(self.seen) == 2 * GROUP_LOT)
        require_equal(GROUP_LOT // 2, b.read - before, "b's half of the second lot")
        b.consumer.close()
        self.until("a took over", [a], lambda: a.owns() == PARTITIONS)
        self.log.produce("none", "late", GROUP_LOT)
        self.until("a reads the third lot", [a], lambda: len(self.seen) == 3 * GROUP_LOT)
        lots = {f"{lot}:{n}" for lot in ("early", "shared", "late") for n in range(GROUP_LOT)}
        require_equal(lots, self.seen, "records read by the group")
        a.commits_when_revoked = False
        a.consumer.commit({p: self.log.next[p] - LEFT_OVER for p in range(PARTITIONS)})
        a.consumer.close()
        self.resume()

    def resume(self):
        """The third member starts where the offset commit was, not where the last one had read to."""
        self.seen.clear()
        c = Member(self, "c")
        c.commits_when_revoked = False
        expected = LEFT_OVER * PARTITIONS
        self.until("c reads what is left", [c], lambda: len(self.seen) == expected)
        c.poll()
        require_equal(expected, len(self.seen), "records after the committed offsets")
        offsets = {p: self.log.next[p] - LEFT_OVER for p in range(PARTITIONS)}
        require_equal(offsets, c.first, "first offsets that c read")
        require_equal(offsets, c.consumer.committed(), "committed offsets")
        c.consumer.close()

    def until(self, what, members, condition):
        with Deadline(60, what) as deadline:
            while not condition():
                for member in members:
                    member.poll()
                owned = {member.name: member.consumer.assignment() for member in members}
                deadline.check(f"{len(self.seen)} records seen, owned: {owned}")


class Deadline:
    """Seconds within which something must come true."""

    def __init__(self, seconds, what):
        self.end, self.what = time.monotonic() + seconds, what

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        return False

    def check(self, state):
        if time.monotonic() > self.end:
            raise Mismatch(f"timed out: {self.what}; {state}")
