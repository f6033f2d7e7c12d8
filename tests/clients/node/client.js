// One run of kafkajs against a broker: `client.js BOOTSTRAP PREFIX`.
//
// Creates topics, produces with every codec, reads back, consumes as a group with a rebalance, commits and
// resumes. Exits with 0 only if every answer was right.
'use strict'

const assert = require('node:assert/strict')
const lz4 = require('lz4-napi')
const snappy = require('kafkajs-snappy')
const zstd = require('@bokuweb/zstd-wasm')
const { CompressionCodecs, CompressionTypes, Kafka, Partitioners, logLevel } = require('kafkajs')
const { PARTITIONS, sample, check } = require('./samples')

// kafkajs has gzip built in; the others are plugged in by whoever uses it.
CompressionCodecs[CompressionTypes.Snappy] = snappy
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: (encoder) => lz4.compressFrame(encoder.buffer),
  decompress: (buffer) => lz4.decompressFrame(buffer),
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async (encoder) => Buffer.from(zstd.compress(encoder.buffer)),
  decompress: async (buffer) => Buffer.from(zstd.decompress(buffer)),
})

const CODECS = ['None', 'GZIP', 'Snappy', 'LZ4', 'ZSTD']
const LOT = 400
const GROUP_LOT = 200
const LEFT_OVER = 7

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function until(what, condition, state) {
  const deadline = Date.now() + 60_000
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`timed out: ${what}; ${state()}`)
    await sleep(20)
  }
}

// One topic, with the next offset that each of its partitions must hand out.
class Log {
  constructor(kafka, topic) {
    Object.assign(this, { kafka, topic, next: Array(PARTITIONS).fill(0) })
  }

  async create() {
    const admin = this.kafka.admin()
    await admin.connect()
    assert.ok(await admin.createTopics({ topics: [{ topic: this.topic, numPartitions: PARTITIONS }], waitForLeaders: true }))
    const offsets = await admin.fetchTopicOffsets(this.topic)
    assert.deepEqual(offsets.map((o) => o.high), Array(PARTITIONS).fill('0'), 'end offsets of a new topic')
    await admin.disconnect()
  }

  async produce(codec, lot, count) {
    const producer = this.kafka.producer({
      idempotent: true,
      maxInFlightRequests: 1,
      createPartitioner: Partitioners.DefaultPartitioner,
    })
    await producer.connect()
    // kafkajs makes one batch per partition of each send, so several sends make several batches.
    const size = 100
    for (let first = 0; first < count; first += size) {
      const messages = Array.from({ length: size }, (_, i) => sample(lot, first + i))
      const answers = await producer.send({ topic: this.topic, acks: -1, compression: CompressionTypes[codec], messages })
      assert.equal(answers.length, PARTITIONS, `partitions acknowledged for ${lot}`)
      for (const { partition, errorCode, baseOffset } of answers) {
        assert.equal(errorCode, 0, `error of ${lot} in partition ${partition}`)
        assert.equal(Number(baseOffset), this.next[partition], `base offset of ${lot} in partition ${partition}`)
        this.next[partition] += size / PARTITIONS
      }
    }
    await producer.disconnect()
  }

  async readBack() {
    const read = Array.from({ length: PARTITIONS }, () => [])
    const reader = new Member(this, `${this.topic}-reader`, 'reader', (id, partition, offset) => {
      assert.equal(offset, read[partition].length, `next offset of partition ${partition}`)
      read[partition].push(id)
    })
    await reader.join()
    const count = () => read.reduce((sum, ids) => sum + ids.length, 0)
    await until('reading all records back', () => reader.failed || count() >= LOT * CODECS.length, count)
    await reader.leave()
    for (let partition = 0; partition < PARTITIONS; partition++) {
      const order = []
      for (const codec of CODECS) {
        for (let number = partition; number < LOT; number += PARTITIONS) order.push(`${codec}:${number}`)
      }
      assert.deepEqual(read[partition], order, `records of partition ${partition}`)
    }
  }
}

// A consumer of the group; `onRecord` sees every record that it reads. Each batch is committed before the next one.
class Member {
  constructor(log, groupId, name, onRecord) {
    Object.assign(this, { log, name, onRecord, owned: [], read: 0, first: {}, failed: null })
    this.consumer = log.kafka.consumer({
      groupId,
      sessionTimeout: 30_000,
      heartbeatInterval: 300,
      maxWaitTimeInMs: 200,
      retry: { retries: 5, restartOnFailure: async () => false },
    })
    const { GROUP_JOIN, REBALANCING, CRASH } = this.consumer.events
    this.consumer.on(GROUP_JOIN, ({ payload }) => (this.owned = payload.memberAssignment[log.topic] ?? []))
    this.consumer.on(REBALANCING, () => (this.owned = []))
    this.consumer.on(CRASH, ({ payload }) => (this.failed = payload.error))
  }

  async join() {
    await this.consumer.connect()
    await this.consumer.subscribe({ topics: [this.log.topic], fromBeginning: true })
    await this.consumer.run({ autoCommit: false, eachBatch: (payload) => this.batch(payload) })
  }

  async batch({ batch, resolveOffset }) {
    const { topic, partition } = batch
    let offset
    try {
      for (const message of batch.messages) {
        offset = Number(message.offset)
        this.onRecord(check(partition, message), partition, offset)
        this.first[partition] ??= offset
        this.read++
        resolveOffset(message.offset)
      }
    } catch (failure) {
      // A wrong record is no reason to retry.
      this.failed = failure
      return
    }
    await this.consumer.commitOffsets([{ topic, partition, offset: String(offset + 1) }])
  }

  async leave() {
    await this.consumer.disconnect()
    if (this.failed) throw this.failed
  }
}

// Two members with a rebalance each way, offset commits, and a third member that resumes.
class Group {
  constructor(kafka, topic, name) {
    Object.assign(this, { log: new Log(kafka, topic), name, seen: new Set() })
  }

  member(name) {
    return new Member(this.log, this.name, name, (id) => {
      assert.ok(!this.seen.has(id), `${name} read ${id} a second time`)
      this.seen.add(id)
    })
  }

  async until(what, members, condition) {
    const failed = () => members.find((m) => m.failed)?.failed
    const state = () => `${this.seen.size} records seen, ${members.map((m) => `${m.name} owns [${m.owned}]`)}`
    await until(what, () => failed() || condition(), state)
    if (failed()) throw failed()
  }

  async run() {
    await this.log.create()
    await this.log.produce('None', 'early', GROUP_LOT)
    const [a, b] = [this.member('a'), this.member('b')]
    await a.join()
    await this.until('a owns everything', [a], () => a.owned.length === PARTITIONS)
    await b.join()
    await this.until('both own half', [a, b], () => a.owned.length === 2 && b.owned.length === 2)
    await this.until('the first lot is read', [a, b], () => this.seen.size === GROUP_LOT)
    const before = b.read
    await this.log.produce('None', 'shared', GROUP_LOT)
    await this.until('the second lot is read', [a, b], () => this.seen.size === 2 * GROUP_LOT)
    assert.equal(b.read - before, GROUP_LOT / 2, "b's half of the second lot")
    await b.leave()
    await this.until('a took over', [a], () => a.owned.length === PARTITIONS)
    await this.log.produce('None', 'late', GROUP_LOT)
    await this.until('a reads the third lot', [a], () => this.seen.size === 3 * GROUP_LOT)
    await a.leave()
    await this.resume()
  }

  // The third member starts where the offset commit was, not where the last one had read to.
  async resume() {
    const admin = this.log.kafka.admin()
    await admin.connect()
    const offsets = this.log.next.map((end) => end - LEFT_OVER)
    const partitions = offsets.map((offset, partition) => ({ partition, offset: String(offset) }))
    await admin.setOffsets({ groupId: this.name, topic: this.log.topic, partitions })
    this.seen.clear()
    const c = this.member('c')
    await c.join()
    const expected = LEFT_OVER * PARTITIONS
    await this.until('c reads what is left', [c], () => this.seen.size === expected)
    await sleep(300)
    await c.leave()
    assert.equal(this.seen.size, expected, 'records after the committed offsets')
    assert.deepEqual(Object.values(c.first), offsets, 'first offsets that c read')
    const [{ partitions: committed }] = await admin.fetchOffsets({ groupId: this.name, topics: [this.log.topic] })
    committed.sort((x, y) => x.partition - y.partition)
    assert.deepEqual(committed.map((p) => Number(p.offset)), this.log.next, 'offsets that c committed')
    await admin.disconnect()
  }
}

async function main([bootstrap, prefix]) {
  await zstd.init()
  const kafka = new Kafka({ clientId: 'millrace-tests', brokers: [bootstrap], logLevel: logLevel.ERROR })
  const log = new Log(kafka, `${prefix}-main`)
  await log.create()
  for (const codec of CODECS) await log.produce(codec, codec, LOT)
  await log.readBack()
  await new Group(kafka, `${prefix}-group`, `${prefix}-members`).run()
  console.log('passed')
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (failure) => {
    console.error(failure)
    process.exit(1)
  },
)
