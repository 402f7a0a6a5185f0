#!/usr/bin/env bash
# Two workers of one thread, data-parallel, against one worker of two threads: the demo's model and
# batch, alternating runs, medians. Messages go through shared memory, and to compare over the
# loopback interface. Losses must be the same bits.
#
#   bench/workers.sh        ROUNDS=3 STEPS=12   (SKEIN_BUILD: the build folder, default build)
set -euo pipefail
cd "$(dirname "$0")/.."
skein=${SKEIN_BUILD:-build}/skein
rounds=${ROUNDS:-3} steps=${STEPS:-12}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bench/demo_corpus.sh "$skein" "$dir"

train() { # NAME OVERRIDES…
  local name=$1
  shift
  $skein train configs/demo.toml --set run.dir="$dir/$name" --set run.steps="$steps" \
    --set data.train="$dir/corpus.arrow" --set data.tokenizer="$dir/tokenizer" \
    --set data.validation= --set validate.every_steps=0 --set checkpoint.every_steps=0 \
    --set parallel.reduction_width=2 "$@" >/dev/null 2>"$dir/$name.log" || { cat "$dir/$name.log" >&2; exit 1; }
}
for ((round = 0; round < rounds; ++round)); do
  train one-$round --set device.threads=2
  train two-$round --set launch.workers=2 --set device.threads=1
  SKEIN_SHARED_MEMORY=off train network-$round --set launch.workers=2 --set device.threads=1
done
python3 - "$dir" "$rounds" <<'PYTHON'
import json, statistics, sys
folder, rounds = sys.argv[1], int(sys.argv[2])
def steps(name):
    return [json.loads(line) for line in open(f"{folder}/{name}/metrics.jsonl")]
kinds = {"one": "1 worker x 2 threads", "two": "2 workers x 1 thread", "network": "  over the network"}
times, exposed, curves = {}, {}, []
for kind in kinds:
    runs = [steps(f"{kind}-{r}") for r in range(rounds)]
    curves += [[(m["loss"], m["grad_norm"]) for m in run] for run in runs]
    times[kind] = [statistics.median(m["step_ms"] for m in run[2:]) for run in runs]
    exposed[kind] = [statistics.median(m["comm_exposed_ms"] for m in run[2:]) for run in runs]
one = statistics.median(times["one"])
for kind, what in kinds.items():
    each, travel = statistics.median(times[kind]), statistics.median(exposed[kind])
    print(f"{what:21} {each:8.1f} ms a step, {travel:6.1f} of it exposed communication, "
          f"{one / each:6.3f} of the throughput   rounds {['%.0f' % t for t in times[kind]]}")
same = all(curve == curves[0] for curve in curves)
print(f"losses and norms      {'the same bits' if same else 'DIFFER'}")
sys.exit(0 if same else 1)
PYTHON
