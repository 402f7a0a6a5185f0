#!/usr/bin/env bash
# Skein against PyTorch on one GPU, on the same model and batch, run in alternation; medians and ratios.
#
#   bench/compare_torch_gpu.sh [SIZE…]      SIZE: 7b, 1b, 0.5b (default: all); tiny tries the script out
#
# PYTHON     a python with torch (default python3); without torch only Skein runs
# ROUNDS     how often each runs (2)       STEPS  measured per run (6)
# SKEIN      build/train_bench             MODES  of compare_torch.py (by size); "": no PyTorch
# PRECISION  of Skein (bf16-sr)            MOMENTS, RECOMPUTE  of Skein (fp32, none, where they fit)
# DEVICE     cuda                          LIMIT  seconds that a run may take (240)
# MICRO, SEQUENCES  at a time and in a step (by size)
# RUNS       a file that gets one JSON line a run, as it ends
# AFTER_RUN  a command that runs once the line is there
#
# A run that fails, or whose last line is no result, is told and left out. Exit code 1 where a run of Skein failed, 2 where Skein
# refused what was asked of it (a precision that it does not have).
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

PYTHON=${PYTHON:-python3}
ROUNDS=${ROUNDS:-2}
STEPS=${STEPS:-6}
SKEIN=${SKEIN:-build/train_bench}
PRECISION=${PRECISION:-bf16-sr}
DEVICE=${DEVICE:-cuda}
LIMIT=${LIMIT:-240}
sizes=("$@")
[ ${#sizes[@]} -gt 0 ] || sizes=(7b 1b 0.5b)

[ -x "$SKEIN" ] || { echo "$SKEIN is missing: build it with scripts/build.sh" >&2; exit 2; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
runs=${RUNS:-$scratch/runs}
touch "$runs" && first=$(($(wc -l < "$runs") + 1)) || exit 1
has_torch=1
if [ -n "${MODES-unset}" ] && ! "$PYTHON" -c 'import torch' 2> "$scratch/error"; then
  echo "skipped: PyTorch ($PYTHON: $(tail -n 1 "$scratch/error"))" >&2
  has_torch=''
fi
memory_mib=$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits 2>/dev/null | head -n 1)

status=0
run() {  # run SIZE NAME COMMAND…: appends the command's last line of output, tagged
  local size=$1 name=$2 line code
  shift 2
  echo "size $size, $name …" >&2
  # What a run has to say ("runs on our own kernels") belongs to its figure, and is told at once: who
  # is stopped tells nothing more.
  # Whatever the run started ends with it, and all of it with this script.
  "$PYTHON" scripts/within.py "$LIMIT" "$@" 2>&1 > "$scratch/output" |
    tee "$scratch/error" | sed -u 's/^/  /' >&2
  code=${PIPESTATUS[0]}
  line=$(tail -n 1 "$scratch/output")
  if [ $code = 0 ] && [[ $line == "{"*"}" ]]; then
    printf '{"size": "%s", "name": "%s", "run": %s}\n' "$size" "$name" "$line" >> "$runs"
    [ -z "${AFTER_RUN:-}" ] || "$AFTER_RUN" >&2
    return
  fi
  if [ $code = 0 ]; then
    code=1
    echo "its last line is no result: ${line:-it printed nothing}" >> "$scratch/error"
  fi
  [ $code != 124 ] || echo "not done after $LIMIT s" >> "$scratch/error"
  echo "  failed ($code): $(grep -v '^ *$' "$scratch/error" | tail -n 1)" >&2
  case $name in
    skein*) [ $status = 1 ] || status=$((code == 2 ? 2 : 1)) ;;
  esac
}

for size in "${sizes[@]}"; do
  moments=${MOMENTS:-fp32} recompute=${RECOMPUTE:-none}
  case $size in
    7b)
      sequences=4 micro=1 modes=layers
      # What an 80 GB GPU holds.
      if [[ $memory_mib =~ ^[0-9]+$ ]] && ((memory_mib < 120000)); then
        moments=${MOMENTS:-bf16} recompute=${RECOMPUTE:-selective}
      fi ;;
    1b) sequences=16 micro=4 modes=compile ;;
    0.5b) sequences=8 micro=1 modes='compile graphs' ;;
    tiny) sequences=2 micro=1 modes=eager ;;
    *) echo "compare_torch_gpu.sh: no size $size: expected 7b, 1b, 0.5b or tiny" >&2; exit 2 ;;
  esac
  [ -n "$has_torch" ] && modes=${MODES-$modes} || modes=''
  sequences=${SEQUENCES:-$sequences} micro=${MICRO:-$micro}
  label=$size${MICRO:+-micro$MICRO}${SKEIN_ATTENTION:+-$SKEIN_ATTENTION}
  common=(--size "$size" --device "$DEVICE" --sequences "$sequences" --micro "$micro" --steps "$STEPS")
  for ((round = 0; round < ROUNDS; ++round)); do
    run "$label" "skein-$PRECISION" "$SKEIN" "${common[@]}" --precision "$PRECISION" \
      --moments "$moments" --recompute "$recompute"
    for mode in $modes; do
      run "$label" "torch-$mode" "$PYTHON" bench/compare_torch.py --mode "$mode" "${common[@]}"
    done
  done
done

tail -n "+$first" "$runs" > "$scratch/mine"
"$PYTHON" - "$scratch/mine" <<'SUMMARY' || exit 1
import json
import statistics
import sys

runs = []
for line in open(sys.argv[1]):
    try:
        runs.append(json.loads(line))
    except json.JSONDecodeError:  # fmt prints what is no number as nan
        print(f"not in this table, since it is no JSON: {line.strip()}")
if not runs:
    sys.exit(0)
print(f"{'size':9}  {'program':14}  {'tokens/s':>10}  {'model TFLOP/s':>13}  {'of the product':>14}"
      f"  {'memory, GB':>10}")
speed = {}
for size, name in dict.fromkeys((run["size"], run["name"]) for run in runs):
    mine = [run["run"] for run in runs if (run["size"], run["name"]) == (size, name)]
    median = {key: statistics.median(run.get(key, 0) for run in mine)
              for key in ("tokens_per_s", "model_tflops", "share_of_matmul", "peak_bytes")}
    speed[size, name] = median["tokens_per_s"]
    print(f"{size:9}  {name:14}  {median['tokens_per_s']:10.0f}  {median['model_tflops']:13.1f}"
          f"  {median['share_of_matmul']:14.1%}  {median['peak_bytes'] / 1e9:10.1f}")
for size in dict.fromkeys(size for size, _ in speed):
    skein = [value for (s, name), value in speed.items() if s == size and name.startswith("skein")]
    torch = [value for (s, name), value in speed.items() if s == size and name.startswith("torch")]
    if skein and torch:
        print(json.dumps({"size": size, "skein_tokens_per_s": max(skein),
                          "torch_tokens_per_s": max(torch),
                          "ratio": round(max(skein) / max(torch), 3)}))
SUMMARY
exit $status
