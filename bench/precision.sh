#!/usr/bin/env bash
# The loss curves of the precision modes: the demo model, 1,000 steps each, the same data and seed;
# prints the validation loss at the end and its distance to `mixed`.
#
#   bench/precision.sh [TEXT_FILE_OR_FOLDER…]       default: this machine's C and C++ headers
#
# STEPS (1000)   MODES ("mixed bf16-sr bf16 fp32")   SKEIN (build/skein)   DIR (a new temporary folder)
set -euo pipefail
cd "$(dirname "$0")/.."
STEPS=${STEPS:-1000}
MODES=${MODES:-mixed bf16-sr bf16 fp32}
SKEIN=${SKEIN:-build/skein}
DIR=${DIR:-$(mktemp -d)}
inputs=("$@")
[ ${#inputs[@]} -gt 0 ] || inputs=(/usr/include)

if [ ! -e "$DIR/tok" ]; then
  $SKEIN data ingest --out "$DIR/c.arrow" --validation-out "$DIR/v.arrow" "${inputs[@]}"
  $SKEIN data tokenizer --vocab-size 4096 --out "$DIR/tok" "$DIR/c.arrow"
fi
for mode in $MODES; do
  echo "precision.mode = $mode" >&2
  $SKEIN train configs/demo.toml --set "run.dir=\"$DIR/$mode\"" --set "run.steps=$STEPS" \
    --set "data.train=\"$DIR/c.arrow\"" --set "data.validation=\"$DIR/v.arrow\"" \
    --set "data.tokenizer=\"$DIR/tok\"" --set "optimizer.decay_steps=$((STEPS - 40))" \
    --set "precision.mode=\"$mode\"" --set "checkpoint.every_steps=0" \
    --set "validate.every_steps=0" --set "validate.batches=50" > "$DIR/$mode.log" 2>&1
done

loss_of() { sed -n 's/.*"event": "validation".*"loss": \([0-9.]*\).*/\1/p' "$DIR/$1/events.jsonl" | tail -n 1; }
base=$(loss_of mixed)
printf '%-10s %16s %12s\n' mode 'validation loss' 'vs mixed'
for mode in $MODES; do
  loss=$(loss_of "$mode")
  printf '%-10s %16.5f %+11.3f%%\n' "$mode" "$loss" \
    "$(awk -v a="$loss" -v b="$base" 'BEGIN {print 100 * (a - b) / b}')"
done
