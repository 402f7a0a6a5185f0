#!/usr/bin/env bash
# Predicted against measured step time on this machine: the demo's model on 1, 2 and 4 workers, by
# data, tensor and pipeline parallelism. Calibrates, plans and trains; prints a table.
#
#   bench/predict.sh [SKEIN]        default: build/skein
#
# SKEIN_PREDICT_STEPS   steps of each run (default 12); the median of step_ms without the first two
# SKEIN_PREDICT_TEXT    what the corpus is made of (default /usr/include)
set -euo pipefail
cd "$(dirname "$0")/.."
skein=$(realpath "${1:-build/skein}")
steps=${SKEIN_PREDICT_STEPS:-12}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$skein" data ingest --out "$dir/corpus.arrow" "${SKEIN_PREDICT_TEXT:-/usr/include}" 2>/dev/null
"$skein" data tokenizer --vocab-size 4096 --out "$dir/tokenizer" "$dir/corpus.arrow" 2>/dev/null
common=(configs/demo.toml --set "data.train=$dir/corpus.arrow" --set "data.tokenizer=$dir/tokenizer"
  --set data.validation= --set validate.every_steps=0 --set "run.steps=$steps"
  --set checkpoint.every_steps=0 --set log.tensorboard=false --set batch.micro_sequences=1)

number() { sed -n "s/.*\"$1\": *\([0-9.e+-]*\).*/\1/p" | head -1; }
median() { sed -n 's/.*"step_ms": *\([0-9.e+-]*\).*/\1/p' "$1" | tail -n +3 | sort -g | awk '{a[NR]=$1} END {print a[int((NR+1)/2)]}'; }

printf '%-22s %14s %14s %7s\n' layout 'predicted ms' 'measured ms' ratio
calibrated=0
while read -r name workers settings; do
  layout=("${common[@]}" --set "launch.workers=$workers")
  for setting in $settings; do layout+=(--set "$setting"); done
  if [ "$workers" != "$calibrated" ]; then # just before what it is compared with: machines drift
    "$skein" plan "${common[@]}" --calibrate "$dir/hardware.toml" --workers "$workers" >/dev/null
    calibrated=$workers
  fi
  predicted=$("$skein" plan "${layout[@]}" --hardware "$dir/hardware.toml" --json | number step_seconds)
  "$skein" train "${layout[@]}" --set "run.dir=$dir/$name" 2>"$dir/$name.err" || { tail -3 "$dir/$name.err"; exit 1; }
  measured=$(median "$dir/$name/metrics.jsonl")
  awk -v n="$name" -v p="$predicted" -v m="$measured" \
    'BEGIN { printf "%-22s %14.1f %14.1f %7.2f\n", n, p * 1e3, m, p * 1e3 / m }'
done <<LAYOUTS
1_worker 1
2_workers_data 2
2_workers_tensor 2 parallel.tensor=2
2_workers_pipeline 2 parallel.pipeline=2
4_workers_data 4
4_workers_pipeline 4 parallel.pipeline=4
4_workers_data_tensor 4 parallel.tensor=2
LAYOUTS
