// The records that the checks write, and the check that one which was read is the one that was written.
// A record is known by its lot (a name) and its number; everything else in it follows from these two.
'use strict'

const assert = require('node:assert/strict')

const PARTITIONS = 4

// Every tenth record has no key.
const key = (lot, number) => (number % 10 === 0 ? null : Buffer.from(`key-${lot}-${number}`))

// Every twenty-fifth record is a tombstone; the others have between 20 and 1 500 bytes.
function value(lot, number) {
  if (number % 25 === 24) return null
  const filler = String.fromCharCode(97 + (number % 26)).repeat((number * 37) % 1480)
  return Buffer.from(`value-${lot}-${number}-${filler}`)
}

const sample = (lot, number) => ({
  partition: number % PARTITIONS,
  key: key(lot, number),
  value: value(lot, number),
  headers: { id: `${lot}:${number}` },
})

// Fails unless the record is exactly the one that its `id` header names; returns that name.
function check(partition, message) {
  const id = message.headers.id.toString()
  const [lot, digits] = id.split(':')
  const number = Number(digits)
  const where = `partition ${partition} offset ${message.offset} ${id}`
  assert.equal(partition, number % PARTITIONS, `${where}: partition`)
  assert.deepEqual(message.key, key(lot, number), `${where}: key`)
  assert.deepEqual(message.value, value(lot, number), `${where}: value`)
  return id
}

module.exports = { PARTITIONS, sample, check }
