#!/usr/bin/env bash
# Skein against PyTorch on the same model, batch and threads, run in alternation; medians and ratios.
#
#   bench/compare_torch.sh [SIZE…]          SIZE: a, b (default: both)
#
# PYTHON     a python with torch (default python3)         ROUNDS   how often each runs (3)
# SEQUENCES  per step (8)    MICRO    PyTorch's sequences per forward (1: its fastest on a CPU)
# STEPS      measured per run (4)                          SKEIN    build/train_bench
#
# Each run measures the bf16 matrix-product rate beside the training speed: a run whose rate is far
# from the others shared the machine with something else. Exit code 1 where the ratio is under 1.5.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}
ROUNDS=${ROUNDS:-3}
SEQUENCES=${SEQUENCES:-8}
MICRO=${MICRO:-1}
STEPS=${STEPS:-4}
SKEIN=${SKEIN:-build/train_bench}
sizes=("$@")
[ ${#sizes[@]} -gt 0 ] || sizes=(a b)

[ -x "$SKEIN" ] || { echo "$SKEIN is missing: build it with scripts/build.sh" >&2; exit 2; }
"$PYTHON" -c 'import torch' || { echo "$PYTHON has no torch: set PYTHON" >&2; exit 2; }

results=$(mktemp)
trap 'rm -f "$results"' EXIT

run() {  # run SIZE NAME COMMAND…: appends the command's last line of output, tagged
  local size=$1 name=$2 line
  shift 2
  echo "size $size, $name …" >&2
  line=$("$@" 2>/dev/null | tail -n 1) || { echo "failed: $*" >&2; exit 1; }
  printf '{"size": "%s", "name": "%s", "run": %s}\n' "$size" "$name" "$line" >> "$results"
}

for size in "${sizes[@]}"; do
  common=(--size "$size" --sequences "$SEQUENCES" --steps "$STEPS")
  for ((round = 0; round < ROUNDS; ++round)); do
    run "$size" skein "$SKEIN" "${common[@]}"
    for mode in eager compile; do
      run "$size" "torch-$mode" "$PYTHON" bench/compare_torch.py --mode $mode --micro "$MICRO" \
        "${common[@]}"
    done
  done
done

"$PYTHON" - "$results" <<'SUMMARY'
import json
import statistics
import sys

TARGET = 1.5
runs = [json.loads(line) for line in open(sys.argv[1])]
behind = False
print(f"{'size':4}  {'program':13}  {'tokens/s':>10}  {'(lowest':>8} {'highest)':>9}"
      f"  {'matmul TFLOP/s':>14}  {'share':>6}")
for size in sorted({run["size"] for run in runs}):
    speed = {}
    for name in ("skein", "torch-eager", "torch-compile"):
        mine = [run["run"] for run in runs if (run["size"], run["name"]) == (size, name)]
        median = {key: statistics.median(run[key] for run in mine)
                  for key in ("tokens_per_s", "matmul_tflops", "share_of_matmul")}
        speeds = [run["tokens_per_s"] for run in mine]
        speed[name] = median["tokens_per_s"]
        print(f"{size:4}  {name:13}  {speed[name]:10.0f}  {min(speeds):8.0f} {max(speeds):9.0f}"
              f"  {median['matmul_tflops']:14.3f}  {median['share_of_matmul']:6.1%}")
    rival = max(speed["torch-eager"], speed["torch-compile"])
    ratio = speed["skein"] / rival
    behind |= ratio < TARGET
    print(json.dumps({"size": size, "skein_tokens_per_s": speed["skein"],
                      "torch_tokens_per_s": rival, "ratio": round(ratio, 3)}))
sys.exit(1 if behind else 0)
SUMMARY
