#!/usr/bin/env bash
# Predicted against measured step time on this machine: the demo's model on 1, 2 and 4 workers, by
# data, tensor and pipeline parallelism. Calibrates, plans and trains; prints a table.
#
#   bench/predict.sh [SKEIN]        default: build/skein
#
# SKEIN_PREDICT_ROUNDS  how often (default 3); the table has the medians, since machines drift
# SKEIN_PREDICT_STEPS   steps of each run (default 12); the median of step_ms without the first two
# SKEIN_PREDICT_TEXT    what the corpus is made of (default /usr/include)
set -euo pipefail
cd "$(dirname "$0")/.."
skein=$(realpath "${1:-build/skein}")
steps=${SKEIN_PREDICT_STEPS:-12}
rounds=${SKEIN_PREDICT_ROUNDS:-3}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

bench/demo_corpus.sh "$skein" "$dir" "${SKEIN_PREDICT_TEXT:-/usr/include}"
common=(configs/demo.toml --set "data.train=$dir/corpus.arrow" --set "data.tokenizer=$dir/tokenizer"
  --set data.validation= --set validate.every_steps=0 --set "run.steps=$steps"
  --set checkpoint.every_steps=0 --set log.tensorboard=false --set batch.micro_sequences=1
  --set optimizer.warmup_steps=0)

number() { sed -n "s/.*\"$1\": *\([0-9.e+-]*\).*/\1/p" | head -1; }
median() { sort -g | awk '{a[NR] = $1} END {print a[int((NR + 1) / 2)]}'; }
step_ms() { sed -n 's/.*"step_ms": *\([0-9.e+-]*\).*/\1/p' "$1" | tail -n +3 | median; }

layouts=(
  "1_worker 1"
  "2_workers_data 2"
  "2_workers_tensor 2 parallel.tensor=2"
  "2_workers_pipeline 2 parallel.pipeline=2"
  "4_workers_data 4"
  "4_workers_pipeline 4 parallel.pipeline=4"
  "4_workers_data_tensor 4 parallel.tensor=2"
)

calibrated=0
for ((round = 1; round <= rounds; ++round)); do
  for line in "${layouts[@]}"; do
    read -r name workers settings <<<"$line"
    layout=("${common[@]}" --set "launch.workers=$workers")
    for setting in $settings; do layout+=(--set "$setting"); done
    if [ "$workers" != "$calibrated" ]; then # just before what it is compared with
      "$skein" plan "${common[@]}" --calibrate "$dir/hardware.toml" --workers "$workers" >/dev/null
      calibrated=$workers
    fi
    predicted=$("$skein" plan "${layout[@]}" --hardware "$dir/hardware.toml" --json | number step_seconds)
    run=$dir/$name.$round
    "$skein" train "${layout[@]}" --set "run.dir=$run" 2>"$run.err" || { tail -3 "$run.err"; exit 1; }
    measured=$(step_ms "$run/metrics.jsonl")
    awk -v p="$predicted" -v m="$measured" 'BEGIN { print p * 1e3, m, p * 1e3 / m }' >>"$dir/$name.rows"
    rm -r "$run"
  done
done

printf '%-22s %14s %14s %7s   %s\n' layout 'predicted ms' 'measured ms' ratio 'of each round'
for line in "${layouts[@]}"; do
  rows=$dir/${line%% *}.rows
  printf '%-22s %14.1f %14.1f %7.2f   %s\n' "${line%% *}" "$(cut -d' ' -f1 "$rows" | median)" \
    "$(cut -d' ' -f2 "$rows" | median)" "$(cut -d' ' -f3 "$rows" | median)" \
    "$(cut -d' ' -f3 "$rows" | xargs printf '%.2f ')"
done
