#!/usr/bin/env bash
# Skein against PyTorch on the same model, batch and threads, run in alternation; medians and ratios.
#
#   bench/compare_torch.sh [SIZE…]          SIZE: a, b (default: both)
#
# PYTHON     a python with torch (default python3)         ROUNDS   how often each runs (3)
# SEQUENCES  per step (8)
# MICRO, SKEIN_MICRO  sequences per forward of PyTorch and of Skein (1; where products are fast, 4 is
#            faster for both)
# STEPS      measured per run (4)                          SKEIN    build/train_bench
# DTYPES     of PyTorch: bf16, fp32 or both; default bf16 where the CPU has products of it, else fp32,
#            which is far faster there (Skein runs in bf16-sr)
# BUSY       1: every run also with another process busy on the first core, and the share of the speed
#            that is kept then; Skein is to keep no less than PyTorch
# RESULTS    where results are kept (bench/results/cpu-KIND-FAMILY-MODEL-DATE.json; none: nowhere)
#
# What else decides is kept with the results and printed: the commit, how PyTorch was built and what
# it takes of the CPU, and the variables that limit either side or set how they run.
#
# Each run measures the matrix-product rate beside the training speed: a run whose rate is far from
# the others shared the machine with something else. Exit code 1 where the ratio is under 1.5, or
# Skein keeps less beside a busy process.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}
ROUNDS=${ROUNDS:-3}
SEQUENCES=${SEQUENCES:-8}
MICRO=${MICRO:-1}
SKEIN_MICRO=${SKEIN_MICRO:-1}
STEPS=${STEPS:-4}
SKEIN=${SKEIN:-build/train_bench}
has_bf16=$(grep -c -m 1 -w -E 'avx512_bf16|amx_bf16' /proc/cpuinfo || true)
DTYPES=${DTYPES:-$([ "$has_bf16" = 1 ] && echo bf16 || echo fp32)}
sizes=("$@")
[ ${#sizes[@]} -gt 0 ] || sizes=(a b)

[ -x "$SKEIN" ] || { echo "$SKEIN is missing: build it with scripts/build.sh" >&2; exit 2; }
"$PYTHON" -c 'import torch' || { echo "$PYTHON has no torch: set PYTHON" >&2; exit 2; }

BUSY=${BUSY:-0}
results=$(mktemp)
spinner=
stop_spinner() { [ -z "$spinner" ] || { kill "$spinner"; wait "$spinner" 2>/dev/null || true; }; spinner=; }
trap 'stop_spinner; rm -f "$results"' EXIT

run() {  # run SIZE NAME COMMAND…: once alone and, where BUSY=1, once beside a busy process
  run_once "$@"
  [ "$BUSY" = 1 ] || return 0
  taskset -c 0 bash -c 'while :; do :; done' &
  spinner=$!
  run_once "$1" "$2+busy" "${@:3}"
  stop_spinner
}

run_once() {  # appends the command's last line of output, tagged
  local size=$1 name=$2 line
  shift 2
  echo "size $size, $name …" >&2
  line=$("$@" 2>/dev/null | tail -n 1) || { echo "failed: $*" >&2; exit 1; }
  printf '{"size": "%s", "name": "%s", "run": %s}\n' "$size" "$name" "$line" >> "$results"
}

cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
family=$(sed -n -E '/^(cpu family|model)[^a-z]*:/{s/.*: //;p}' /proc/cpuinfo | head -n 2 | paste -sd/)
version=$("$(dirname "$SKEIN")/skein" version --json)
of_version() { "$PYTHON" -c 'import json, sys; print(json.loads(sys.argv[1])[sys.argv[2]])' "$version" "$1"; }
kind=$(of_version cpu)
compiler=$(of_version compiler)
commit=$(git describe --always --dirty 2>/dev/null || of_version commit)
torch=$("$PYTHON" bench/compare_torch.py --describe)
# Those that are not set are kept as such: null.
environment=$(export ROUNDS SEQUENCES MICRO SKEIN_MICRO STEPS DTYPES BUSY; "$PYTHON" -c 'import json, os
names = ("SKEIN_CPU ONEDNN_MAX_CPU_ISA ATEN_CPU_CAPABILITY MKL_ENABLE_INSTRUCTIONS OMP_NUM_THREADS"
         " DTYPES MICRO SKEIN_MICRO SEQUENCES STEPS ROUNDS BUSY")
print(json.dumps({name: os.environ.get(name) for name in names.split()}))')
echo "CPU        $cpu (family/model $family), $(nproc) cores" >&2
echo "Skein      $commit, kernels for $kind, $compiler" >&2
"$PYTHON" - "$torch" "$environment" >&2 <<'FACTS'
import json
import sys

torch, environment = map(json.loads, sys.argv[1:])
print(f"PyTorch    {torch['version']}, {torch['capability']}, in {environment['DTYPES']}")
print("           " + "; ".join(torch["built_with"]))
print("           " + "; ".join(f"{key}={value}" for key, value in torch["settings"].items()))
print("Variables  " + " ".join(f"{key}={value}" for key, value in environment.items() if value))
FACTS

for size in "${sizes[@]}"; do
  common=(--size "$size" --sequences "$SEQUENCES" --steps "$STEPS")
  for ((round = 0; round < ROUNDS; ++round)); do
    run "$size" skein "$SKEIN" --micro "$SKEIN_MICRO" "${common[@]}"
    for dtype in $DTYPES; do
      for mode in eager compile; do
        run "$size" "torch-$mode-$dtype" "$PYTHON" bench/compare_torch.py --mode $mode \
          --dtype "$dtype" --micro "$MICRO" "${common[@]}"
      done
    done
  done
done

kept=${RESULTS:-bench/results/cpu-$kind-${family:+${family/\//-}-}$(date -u +%Y-%m-%d).json}
export cpu family kind compiler commit torch environment kept
"$PYTHON" - "$results" <<'SUMMARY'
import datetime
import json
import os
import statistics
import sys

TARGET = 1.5
runs = [json.loads(line) for line in open(sys.argv[1])]
names = list(dict.fromkeys(run["name"] for run in runs))
behind, ratios = False, []
print(f"{'size':4}  {'program':18}  {'tokens/s':>10}  {'(lowest':>8} {'highest)':>9}"
      f"  {'matmul TFLOP/s':>14}  {'share':>6}")
for size in sorted({run["size"] for run in runs}):
    speed = {}
    for name in names:
        mine = [run["run"] for run in runs if (run["size"], run["name"]) == (size, name)]
        median = {key: statistics.median(run[key] for run in mine)
                  for key in ("tokens_per_s", "matmul_tflops", "share_of_matmul")}
        speeds = [run["tokens_per_s"] for run in mine]
        speed[name] = median["tokens_per_s"]
        print(f"{size:4}  {name:18}  {speed[name]:10.0f}  {min(speeds):8.0f} {max(speeds):9.0f}"
              f"  {median['matmul_tflops']:14.3f}  {median['share_of_matmul']:6.1%}")
    alone = {name: value for name, value in speed.items() if not name.endswith("+busy")}
    rival = max((name for name in alone if name != "skein"), key=alone.get)
    ratio = speed["skein"] / speed[rival]
    behind |= ratio < TARGET
    ratios.append({"size": size, "skein_tokens_per_s": speed["skein"],
                   "torch_tokens_per_s": speed[rival], "ratio": round(ratio, 3)})
    if len(alone) < len(speed):
        kept_share = {name: round(speed[f"{name}+busy"] / speed[name], 3) for name in ("skein", rival)}
        behind |= kept_share["skein"] < kept_share[rival]
        ratios[-1]["kept_beside_a_busy_process"] = kept_share
    print(json.dumps(ratios[-1]))
kept = os.environ["kept"]
if kept != "none":
    facts = {key: os.environ[key] for key in ("cpu", "family", "kind", "compiler", "commit")}
    facts |= {key: json.loads(os.environ[key]) for key in ("torch", "environment")}
    os.makedirs(os.path.dirname(kept) or ".", exist_ok=True)
    with open(kept, "w") as file:
        json.dump(facts | {"cores": os.cpu_count(), "date": datetime.date.today().isoformat(),
                           "ratios": ratios, "runs": runs}, file, indent=1)
        file.write("\n")
    print(kept, file=sys.stderr)
sys.exit(1 if behind else 0)
SUMMARY
