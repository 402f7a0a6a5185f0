#!/usr/bin/env bash
# From `skein train` to the end of step 1 with the demo model, and the time to plan Llama 2 70B: on this machine,
# and on 4,096 ranks of trn1.
#
#   bench/startup.sh        SKEIN (build/skein)   ROUNDS (5)   DIR (a new temporary folder)
#
# Prints one JSON line of medians, in seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
SKEIN=${SKEIN:-build/skein}
ROUNDS=${ROUNDS:-5}
DIR=${DIR:-$(mktemp -d)}
trap 'rm -rf "$DIR/run"' EXIT
if [ ! -e "$DIR/tok" ]; then
  $SKEIN data ingest --out "$DIR/c.arrow" --validation-out "$DIR/v.arrow" skein docs /usr/include/c++ 2> "$DIR/ingest.log"
  $SKEIN data tokenizer --vocab-size 4096 --out "$DIR/tok" "$DIR/c.arrow" 2> "$DIR/tokenizer.log"
fi
median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

step() {
  rm -rf "$DIR/run"
  local start end
  start=$(date +%s.%N)
  $SKEIN train configs/demo.toml --set "run.dir=\"$DIR/run\"" --set "data.train=\"$DIR/c.arrow\"" \
    --set "data.validation=\"$DIR/v.arrow\"" --set "data.tokenizer=\"$DIR/tok\"" --set run.steps=1 \
    --set validate.batches=1 > "$DIR/out.log" 2>&1 || { cat "$DIR/out.log" >&2; exit 1; }
  end=$(sed -n '1s/.*"time": *\([0-9.]*\).*/\1/p' "$DIR/run/metrics.jsonl")
  awk -v a="$start" -v b="$end" 'BEGIN {printf "%.3f\n", b - a}'
}
plan() {
  local start
  start=$(date +%s.%N)
  $SKEIN plan configs/demo.toml --set 'model.hf_config="configs/models/llama2-70b.json"' \
    --set data.tokenizer=\"\" --set data.sequence_length=4096 --set batch.global_sequences=1024 \
    --set batch.micro_sequences=1 --json > "$DIR/out.log" 2>&1 || { cat "$DIR/out.log" >&2; exit 1; }
  awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN {printf "%.3f\n", b - a}'
}
# plan_4096 CONFIGURATION
plan_4096() {
  local start
  start=$(date +%s.%N)
  $SKEIN plan "configs/$1.toml" --set 'model.hf_config="configs/models/llama2-70b.json"' --ranks 4096 \
    --hardware configs/hardware/trn1-32xlarge.toml --json > "$DIR/out.log" 2>&1 || { cat "$DIR/out.log" >&2; exit 1; }
  awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN {printf "%.3f\n", b - a}'
}
steps=$(for ((i = 0; i < ROUNDS; ++i)); do step; done | median)
plans=$(for ((i = 0; i < ROUNDS; ++i)); do plan; done | median)
pp8=$(for ((i = 0; i < ROUNDS; ++i)); do plan_4096 llama2-70b-trn1-tp8-pp8; done | median)
tp32=$(for ((i = 0; i < ROUNDS; ++i)); do plan_4096 llama2-70b-trn1-tp32-pp4; done | median)
printf '{"train_to_end_of_step_1_s": %s, "plan_llama2_70b_s": %s, "plan_4096_ranks_pp8_s": %s, "plan_4096_ranks_tp32_s": %s}\n' \
  "$steps" "$plans" "$pp8" "$tp32"
