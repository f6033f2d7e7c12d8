"""The records that the checks write, and the check that one which was read is the one that was written.

A record is known by its lot (a name) and its number; everything else in it follows from these two.
"""

from dataclasses import dataclass

PARTITIONS = 4


@dataclass
class Record:
    """A record as a client handed it out; `headers` holds pairs of str and bytes."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list


class Mismatch(Exception):
    """Something was read or answered that the protocol does not allow here."""


def require(condition, message):
    if not condition:
        raise Mismatch(message)


def require_equal(expected, actual, what):
    require(expected == actual, f"{what}: expected {expected}, got {actual}")


def key(lot, number):
    """Every tenth record has no key."""
    return None if number % 10 == 0 else f"key-{lot}-{number}".encode()


def value(lot, number):
    """Every twenty-fifth record is a tombstone; the others have between 20 and 1 500 bytes."""
    if number % 25 == 24:
        return None
    filler = chr(ord("a") + number % 26) * (number * 37 % 1480)
    return f"value-{lot}-{number}-{filler}".encode()


def record(lot, number):
    """The arguments of a send: partition, key, value, headers."""
    headers = [("id", f"{lot}:{number}".encode())]
    return number % PARTITIONS, key(lot, number), value(lot, number), headers


def check(read):
    """Fails unless the record is exactly the one that its `id` header names; returns that name."""
    where = f"partition {read.partition} offset {read.offset}"
    names = [value for name, value in read.headers or [] if name == "id"]
    require_equal(1, len(names), f"{where}: id headers")
    identity = names[0].decode()
    lot, number = identity.rsplit(":", 1)
    number = int(number)
    require_equal(number % PARTITIONS, read.partition, f"{where} {identity}: partition")
    require_equal(key(lot, number), read.key, f"{where} {identity}: key")
    require_equal(value(lot, number), read.value, f"{where} {identity}: value")
    return identity
