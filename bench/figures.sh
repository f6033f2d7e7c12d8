#!/usr/bin/env bash
# The figures of docs/performance.md: Millrace and Apache Kafka on one machine and one file system, in turns, several
# rounds. Writes every result as a JSON line to OUT/raw.jsonl and prints the table of ratios (medians over the rounds).
usage="usage: bench/figures.sh [-o OUT] [-d DATA] [-r ROUNDS] [-t SECONDS] [-w SECONDS] [-n SHARDS] [-c CONFIG] [-m MEMORY] [-s STEPS]
       bench/figures.sh -T OUT     print the table of an earlier run again
  -o  folder of the results            (target/figures/TIME)
  -d  folder of both brokers' data     (OUT/data); it names the device that is measured, and is wiped
  -r  rounds                           (3)
  -t  measured seconds of each load    (30)
  -w  warm-up seconds of each load     (10)
  -n  shards of Millrace               (1)
  -c  configuration of Millrace        (none: its defaults)
  -m  memory of Millrace               (1GiB, the heap that Kafka's own scripts set)
  -s  what to measure                  (flush,millrace,kafka)
Environment: MILLRACE_BIN (target/release/millrace), MILLRACE_KAFKA_PEER (../shared/peers/kafka). Needs jq, and Java for Kafka."
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out='' data='' rounds=3 seconds=30 warmup=10 shards=1 memory=1GiB steps=flush,millrace,kafka table_of='' config=()
while getopts o:d:r:t:w:n:c:m:s:T:h option; do
  case $option in
    o) out=$OPTARG ;; d) data=$OPTARG ;; r) rounds=$OPTARG ;; t) seconds=$OPTARG ;; w) warmup=$OPTARG ;;
    n) shards=$OPTARG ;; c) config=(--config "$OPTARG") ;; m) memory=$OPTARG ;; s) steps=$OPTARG ;; T) table_of=$OPTARG ;;
    h) echo "$usage"; exit ;; *) echo "$usage" >&2; exit 2 ;;
  esac
done
millrace=${MILLRACE_BIN:-${CARGO_TARGET_DIR:-$root/target}/release/millrace}
peer=${MILLRACE_KAFKA_PEER:-$root/../shared/peers/kafka}
port=${FIGURES_PORT:-29592}
address=127.0.0.1:$port

die() { echo "figures.sh: $*" >&2; exit 1; }
say() { echo "$(date +%T) $*" >&2; }
wanted() { case ",$steps," in *",$1,"*) true ;; *) false ;; esac; }
now_ms() { date +%s%3N; }

# record FIGURE BROKER: wraps the JSON value on standard input into one line of the results.
record() { jq -c --arg figure "$1" --arg broker "$2" --argjson round "$round" '{figure: $figure, broker: $broker, round: $round, value: .}' >> "$out/raw.jsonl"; }

# bench OPTIONS: one run of the load generator; a run that says of itself that it is not valid is a result, too.
bench() { "$millrace" bench --format json "$@" --bootstrap "$address" || [ $? -eq 8 ]; }

# load FIGURE BROKER PID OPTIONS: one measured load.
load() {
  local figure=$1 broker=$2 pid=$3; shift 3
  say "round $round: $broker: $figure"
  bench produce --topic "$figure-$broker-$round" --acks all --record-size 1024 --warmup "$warmup" --duration "$seconds" \
    --broker-pid "$pid" "$@" | record "$figure" "$broker"
}

# first_ack BROKER SINCE_MS: time until a record is acknowledged.
first_ack() {
  bench produce --topic "first-$round" --acks all --rate 1000 --duration 1 --records 1 --wait 120 |
    jq --argjson since "$2" '{start_to_first_ack_ms: (.first_ack_unix_ms - $since), valid}' | record start "$1"
}

# idle BROKER PID: resident memory of a broker that has nothing to do.
idle() {
  sleep "$warmup"
  jq -n --argjson kib "$(awk '/^VmRSS/ { print $2 }' "/proc/$2/status")" '{rss_bytes: ($kib * 1024)}' | record idle "$1"
}

# loads BROKER PID: what both brokers get.
loads() {
  load 16p-10k "$1" "$2" --partitions 16 --rate 10000 --linger-ms 0
  load cpu "$1" "$2" --partitions 16 --rate 20000 --linger-ms 5 --batch-bytes 65536
}

# flush FIGURE PAUSE_US: a bare write and flush of as many bytes as one request of the load takes: a record of 1 KiB is one block.
flush() {
  cargo run --quiet --release --manifest-path "$root/Cargo.toml" -p millrace-runtime --example flush_latency -- "$data" 4096 2000 "$2" |
    awk '/^pwrite/ { for (i = 1; i < NF; i++) { if ($i == "p50") p50 = $(i + 1); if ($i == "p99") p99 = $(i + 1) } }
         /^VOID/ { void = 1 }
         END { printf "{\"p50_us\": %d, \"p99_us\": %d, \"valid\": %s, \"invalid_reasons\": [\"the processors were not free\"]}\n",
               p50, p99, void ? "false" : "true" }' | record "$1" device
}

measure_flush() {
  say "round $round: bare write and flush"
  mkdir -p "$data"
  flush flush 0
  # At the pace of the load: processors fall asleep between two writes.
  flush flush-paced 1000
}

start_millrace() {
  "$millrace" serve "${config[@]}" --data-dir "$data/millrace" --listener "PLAINTEXT://$address" --shards "$shards" \
    --memory "$memory" --http off > "$out/millrace.log" 2>&1 &
  broker=$!
}

stop_millrace() { kill "$broker"; wait "$broker" || true; broker=''; }

measure_millrace() {
  rm -rf "$data/millrace"
  # As Kafka's: the directory is formatted before the start that is timed.
  start_millrace
  bench produce --topic formatted --records 1 --duration 1 --wait 60 > /dev/null
  stop_millrace
  local since; since=$(now_ms)
  start_millrace
  first_ack millrace "$since"
  idle millrace "$broker"
  load 1p millrace "$broker" --partitions 1 --rate 1000
  load 1024p millrace "$broker" --partitions 1024 --rate 1000
  loads millrace "$broker"
  stop_millrace
}

measure_kafka() {
  "$peer/start.sh" "$port" "$data/kafka" > /dev/null
  "$peer/stop.sh" "$data/kafka" > /dev/null
  local since pid; since=$(now_ms)
  "$peer/start.sh" -r "$data/kafka" > "$out/kafka.log" 2>&1 &
  local starting=$!
  first_ack kafka "$since"
  wait "$starting" || die "Kafka did not start, see $out/kafka.log"
  pid=$(cat "$data/kafka/kafka.pid")
  idle kafka "$pid"
  load 1p kafka "$pid" --partitions 1 --rate 1000
  loads kafka "$pid"
  load 16p-10k kafka-flush "$pid" --partitions 16 --rate 10000 --linger-ms 0 --topic-config flush.messages=1
  "$peer/stop.sh" -w "$data/kafka" > /dev/null
}

# What a run that was stopped leaves behind.
broker=''
clean_up() {
  [ -z "$broker" ] || kill "$broker" 2> /dev/null || true
  [ ! -f "$data/kafka/kafka.pid" ] || "$peer/stop.sh" -w "$data/kafka" > /dev/null || true
}

# table OUT: the ratios, with medians over the rounds and what was not valid.
table() {
  jq -rs '
    def median: sort | if length == 0 then null elif length % 2 == 1 then .[length / 2 | floor]
      else (.[length / 2 - 1] + .[length / 2]) / 2 end;
    def of($figure; $broker; path): [.[] | select(.figure == $figure and .broker == $broker) | .value | path] | median;
    def p($figure; $broker; $q): of($figure; $broker; .latency_us.response[$q]);
    def shown: if . == null then "-" elif . >= 100 then (. | round | tostring) else (. * 100 | round / 100 | tostring) end;
    def row($name; $above; $below; $sense; $goal):
      (if $above != null and $below != null and $below > 0 then $above / $below else null end) as $ratio
      | [$name, ($above | shown), ($below | shown), ($ratio | shown), "\($sense) \($goal)",
         (if $ratio == null then "-" elif ($sense == "<=" and $ratio <= $goal) or ($sense == ">=" and $ratio >= $goal)
          then "yes" else "NO" end)] | @tsv;
    (["figure", "a", "b", "a/b", "goal", "met"] | @tsv),
    row("acks=all p50 us, 1 000/s: millrace / bare flush"; p("1p"; "millrace"; "p50"); of("flush"; "device"; .p50_us); "<="; 2),
    row("the same / bare flush, 1 000/s"; p("1p"; "millrace"; "p50"); of("flush-paced"; "device"; .p50_us); "<="; 2),
    row("p99 us, 1 000/s: 1 024 partitions / 1"; p("1024p"; "millrace"; "p99"); p("1p"; "millrace"; "p99"); "<="; 2),
    row("p99 us, 10 000/s on 16: kafka flushed / millrace"; p("16p-10k"; "kafka-flush"; "p99"); p("16p-10k"; "millrace"; "p99"); ">="; 10),
    row("p99 us, 10 000/s on 16: kafka unflushed / millrace"; p("16p-10k"; "kafka"; "p99"); p("16p-10k"; "millrace"; "p99"); ">="; 1),
    row("broker CPU s per GiB: kafka / millrace"; of("cpu"; "kafka"; .broker_process.cpu_s_per_gib); of("cpu"; "millrace"; .broker_process.cpu_s_per_gib); ">="; 3),
    row("start to first ack ms: kafka / millrace"; of("start"; "kafka"; .start_to_first_ack_ms); of("start"; "millrace"; .start_to_first_ack_ms); ">="; 10),
    row("idle resident MiB: kafka / millrace"; of("idle"; "kafka"; .rss_bytes / 1048576); of("idle"; "millrace"; .rss_bytes / 1048576); ">="; 5)
  ' "$1/raw.jsonl" | column -t -s $'\t'
  # A broker that does not keep up has no latency at that rate: what the table says of it is less than it would be.
  jq -r 'select(.value.valid == false)
    | "not valid: round \(.round), \(.broker), \(.figure): \(.value.invalid_reasons // [] | join("; "))"' "$1/raw.jsonl"
}

command -v jq > /dev/null || die "needs jq"
if [ -n "$table_of" ]; then table "$table_of"; exit; fi
[ -x "$millrace" ] || die "no $millrace: cargo build --release, or set MILLRACE_BIN"
out=${out:-$root/target/figures/$(date +%Y%m%d-%H%M%S)}
data=${data:-$out/data}
mkdir -p "$out" "$data"
trap clean_up EXIT
for ((round = 1; round <= rounds; round++)); do
  if wanted flush; then measure_flush; fi
  if wanted millrace; then measure_millrace; fi
  if wanted kafka; then measure_kafka; fi
done
table "$out"
