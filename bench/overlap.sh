#!/usr/bin/env bash
# Communication that is exposed with and without parallel.overlap: the demo's model in layouts whose
# layers communicate, alternating runs, medians. Losses must be the same bits.
#
#   bench/overlap.sh        ROUNDS=3 STEPS=8   (SKEIN_BUILD: the build folder, default build)
set -euo pipefail
cd "$(dirname "$0")/.."
skein=${SKEIN_BUILD:-build}/skein
rounds=${ROUNDS:-3} steps=${STEPS:-8}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bench/demo_corpus.sh "$skein" "$dir"

common=(--set data.train="$dir/corpus.arrow" --set data.tokenizer="$dir/tokenizer"
  --set data.validation= --set validate.every_steps=0 --set checkpoint.every_steps=0
  --set run.steps="$steps" --set device.threads=1)
declare -A layouts=(
  [tensor2]="--set parallel.tensor=2 --set launch.workers=2"
  [context2]="--set parallel.context=2 --set launch.workers=2"
  [data2_zero2]="--set parallel.zero=2 --set launch.workers=2"
  [data2_zero3]="--set parallel.zero=3 --set launch.workers=2"
  [data2_tensor2]="--set parallel.tensor=2 --set parallel.data=2 --set launch.workers=4"
)
names=(tensor2 context2 data2_zero2 data2_zero3 data2_tensor2)

run() { # NAME OVERLAP ROUND
  local run_dir=$dir/$1-$2-$3 workers=${layouts[$1]##*=}
  # shellcheck disable=SC2086  # a list of options
  $skein train configs/demo.toml "${common[@]}" ${layouts[$1]} --set parallel.overlap="$2" \
    --set run.dir="$run_dir" >/dev/null 2>"$run_dir.log" ||
    { cat "$run_dir.log" >&2; exit 1; }
  echo "$1, overlap $2, $workers workers" >&2
}
for ((round = 0; round < rounds; ++round)); do
  for name in "${names[@]}"; do
    for overlap in false true; do run "$name" $overlap $round; done
  done
done
python3 - "$dir" "$rounds" "${names[@]}" <<'PYTHON'
import json, statistics, sys
folder, rounds, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
def steps(name):
    return [json.loads(line) for line in open(f"{folder}/{name}/metrics.jsonl")]
print(f"{'layout':14} {'exposed ms: without':>20} {'with':>7} {'step ms: without':>17} {'with':>8}  {'ratio':>6}")
same = True
for name in names:
    runs = {o: [steps(f"{name}-{o}-{r}") for r in range(rounds)] for o in ("false", "true")}
    bits = [[(m["loss"], m["grad_norm"]) for m in run] for o in runs for run in runs[o]]
    same &= all(b == bits[0] for b in bits)
    def median(overlap, key):
        return statistics.median(statistics.median(m[key] for m in run[2:]) for run in runs[overlap])
    without, with_ = median("false", "step_ms"), median("true", "step_ms")
    print(f"{name:14} {median('false', 'comm_exposed_ms'):20.1f} {median('true', 'comm_exposed_ms'):7.1f}"
          f" {without:17.1f} {with_:8.1f}  {without / with_:6.3f}")
print(f"losses and norms: {'the same bits' if same else 'DIFFER'}")
sys.exit(0 if same else 1)
PYTHON
