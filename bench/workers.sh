#!/usr/bin/env bash
# Two workers of one thread, data-parallel, against one worker of two threads: the demo's model and
# batch, alternating runs, medians. Losses must be the same bits.
#
#   bench/workers.sh        ROUNDS=3 STEPS=12   (SKEIN_BUILD: the build folder, default build)
set -euo pipefail
cd "$(dirname "$0")/.."
skein=${SKEIN_BUILD:-build}/skein
rounds=${ROUNDS:-3} steps=${STEPS:-12}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
$skein data ingest --out "$dir/corpus.arrow" /usr/include/c++ >/dev/null 2>&1
$skein data tokenizer --vocab-size 4096 --out "$dir/tokenizer" "$dir/corpus.arrow" >/dev/null 2>&1

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
done
python3 - "$dir" "$rounds" <<'PYTHON'
import json, statistics, sys
folder, rounds = sys.argv[1], int(sys.argv[2])
def steps(name):
    return [json.loads(line) for line in open(f"{folder}/{name}/metrics.jsonl")]
times, exposed, same = {"one": [], "two": []}, [], True
for r in range(rounds):
    one, two = steps(f"one-{r}"), steps(f"two-{r}")
    same &= [(m["loss"], m["grad_norm"]) for m in one] == [(m["loss"], m["grad_norm"]) for m in two]
    times["one"].append(statistics.median(m["step_ms"] for m in one[2:]))
    times["two"].append(statistics.median(m["step_ms"] for m in two[2:]))
    exposed.append(statistics.median(m["comm_exposed_ms"] for m in two[2:]))
one, two = (statistics.median(times[k]) for k in ("one", "two"))
print(f"1 worker x 2 threads  {one:8.1f} ms a step   rounds {['%.0f' % t for t in times['one']]}")
print(f"2 workers x 1 thread  {two:8.1f} ms a step   rounds {['%.0f' % t for t in times['two']]}")
print(f"throughput ratio      {one / two:8.3f}      (at least 0.95 is asked)")
print(f"exposed communication {statistics.median(exposed):8.1f} ms a step")
print(f"losses and norms      {'the same bits' if same else 'DIFFER'}")
sys.exit(0 if same else 1)
PYTHON
