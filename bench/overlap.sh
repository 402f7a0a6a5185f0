#!/usr/bin/env bash
# Communication that is exposed without parallel.overlap, with it, and with parallel.pairs as well: the
# demo's model in layouts that communicate, alternating runs, medians. Losses must be the same bits.
#
#   bench/overlap.sh [LAYOUT...]    ROUNDS=3 STEPS=8   (SKEIN_BUILD: the build folder, default build)
#   WIRE=400mbit bench/overlap.sh   as root: each worker in a network namespace of its own, on a link
#                                   that sends so much a second (tc-tbf(8)), instead of shared memory
set -euo pipefail
cd "$(dirname "$0")/.."
skein=${SKEIN_BUILD:-build}/skein
rounds=${ROUNDS:-3} steps=${STEPS:-8} wire=${WIRE:-}
dir=$(mktemp -d)
most_workers=4 bridge=sko$$

machine() { echo "skein-overlap-$$-$1"; }
made=() # what has to be removed, as arguments of ip
remove_all() {
  local one
  rm -rf "$dir"
  # shellcheck disable=SC2086  # several arguments
  for one in "${made[@]}"; do ip $one; done
}
trap remove_all EXIT
make_network() {
  ip link add $bridge type bridge
  made+=("link del $bridge")
  ip link set $bridge up
  for ((i = 0; i < most_workers; ++i)); do
    local name
    name=$(machine $i)
    ip netns add "$name"
    made+=("netns del $name")
    ip link add "$bridge-$i" type veth peer name eth0 netns "$name"
    ip link set "$bridge-$i" master $bridge up
    ip -n "$name" addr add "10.199.9.$((i + 1))/24" dev eth0
    ip -n "$name" link set eth0 up
    ip -n "$name" link set lo up
    tc -n "$name" qdisc add dev eth0 root tbf rate "$wire" burst 256kb latency 100ms
  done
}
[ -z "$wire" ] || make_network
bench/demo_corpus.sh "$skein" "$dir"

common=(--set data.train="$dir/corpus.arrow" --set data.tokenizer="$dir/tokenizer"
  --set data.validation= --set validate.every_steps=0 --set checkpoint.every_steps=0
  --set run.steps="$steps" --set device.threads=1
  --set batch.global_sequences=16 --set batch.micro_sequences=2)
declare -A workers=([tensor2]=2 [context2]=2 [context2_zero0]=2 [context2_zero3]=2 [data2_zero0]=2 [data2_zero1]=2
  [data2_zero2]=2 [data2_zero3]=2 [data2_tensor2]=4 [data2_context2]=4)
declare -A layouts=(
  [tensor2]="--set parallel.tensor=2"
  [context2]="--set parallel.context=2"
  [context2_zero0]="--set parallel.context=2 --set parallel.zero=0"
  [context2_zero3]="--set parallel.context=2 --set parallel.zero=3"
  [data2_zero0]="--set parallel.zero=0"
  [data2_zero1]="--set parallel.zero=1"
  [data2_zero2]="--set parallel.zero=2 --set batch.global_sequences=4" # one micro-batch: no pairs
  [data2_zero3]="--set parallel.zero=3"
  [data2_tensor2]="--set parallel.tensor=2 --set parallel.data=2"
  [data2_context2]="--set parallel.context=2 --set parallel.data=2"
)
declare -A modes=([none]="--set parallel.overlap=false" [overlap]="" [pairs]="--set parallel.pairs=true")
names=("$@")
[ $# -gt 0 ] || names=(tensor2 context2 data2_zero0 data2_zero1 data2_zero2 data2_zero3 data2_tensor2)

train() { # NAME MODE RUN_DIR
  # shellcheck disable=SC2206  # lists of options
  local command=("$skein" train configs/demo.toml "${common[@]}" ${layouts[$1]} ${modes[$2]}
    --set run.dir="$3")
  if [ -z "$wire" ]; then
    "${command[@]}" --set launch.workers="${workers[$1]}" >/dev/null 2>"$3.log" && return
    cat "$3.log" >&2
    exit 1
  fi
  local rank pids=() start
  start=$(basename "$3")
  for ((rank = 0; rank < ${workers[$1]}; ++rank)); do
    SKEIN_RANK=$rank SKEIN_SIZE=${workers[$1]} SKEIN_LOCAL_RANK=0 SKEIN_LOCAL_SIZE=1 \
      SKEIN_START_ID=$start SKEIN_NETWORK_INTERFACE=eth0 SKEIN_SHARED_MEMORY=off \
      ip netns exec "$(machine $rank)" "${command[@]}" >/dev/null 2>"$3.$rank.log" &
    pids+=($!)
  done
  for rank in "${!pids[@]}"; do
    wait "${pids[$rank]}" || { cat "$3.$rank.log" >&2; kill "${pids[@]}" 2>/dev/null; exit 1; }
  done
}
for ((round = 0; round < rounds; ++round)); do
  for name in "${names[@]}"; do
    for mode in none overlap pairs; do
      [ "$name-$mode" != data2_zero2-pairs ] || continue
      train "$name" $mode "$dir/$name-$mode-$round"
      echo "$name, $mode" >&2
    done
  done
done
python3 - "$dir" "$rounds" "${names[@]}" <<'PYTHON'
import json, os, statistics, sys
folder, rounds, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
MODES = ("none", "overlap", "pairs")
def steps(name):
    return [json.loads(line) for line in open(f"{folder}/{name}/metrics.jsonl")]
print(f"{'':14} {'exposed ms: none':>17} {'overlap':>8} {'pairs':>8}   {'step ms: none':>14} {'overlap':>8} "
      f"{'pairs':>8}   none / overlap, / pairs")
same = True
for name in names:
    modes = [m for m in MODES if os.path.isdir(f"{folder}/{name}-{m}-0")]
    runs = {m: [steps(f"{name}-{m}-{r}") for r in range(rounds)] for m in modes}
    bits = [[(m["loss"], m["grad_norm"]) for m in run] for mode in runs for run in runs[mode]]
    same &= all(b == bits[0] for b in bits)
    def median(mode, key):
        if mode not in runs:
            return None
        return statistics.median(statistics.median(m[key] for m in run[2:]) for run in runs[mode])
    def text(value, width, form=".1f"):
        return f"{'-' if value is None else format(value, form):>{width}}"
    exposed = [median(m, "comm_exposed_ms") for m in MODES]
    took = [median(m, "step_ms") for m in MODES]
    ratios = [None if t is None else took[0] / t for t in took[1:]]
    print(f"{name:14} {text(exposed[0], 17)} {text(exposed[1], 8)} {text(exposed[2], 8)}   {text(took[0], 14)} "
          f"{text(took[1], 8)} {text(took[2], 8)}   {text(ratios[0], 14, '.3f')}, {text(ratios[1], 7, '.3f')}")
print(f"losses and norms: {'the same bits' if same else 'DIFFER'}")
sys.exit(0 if same else 1)
PYTHON
