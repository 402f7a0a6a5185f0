#!/usr/bin/env bash
# The loss curves of the precision modes: the demo model, 1,000 steps each, the same data and seed.
# Prints the training loss as means of ten stretches, the validation loss at the end, and how far both
# are from those of the first mode.
#
#   bench/precision.sh [TEXT_FILE_OR_FOLDER…]       default: this machine's C and C++ headers
#
# STEPS (1000)   MODES ("mixed bf16-sr bf16 fp8 fp32")   SKEIN (build/skein)   DIR (a new temporary folder)
set -euo pipefail
cd "$(dirname "$0")/.."
STEPS=${STEPS:-1000}
MODES=${MODES:-mixed bf16-sr bf16 fp8 fp32}
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

python3 - "$DIR" $MODES <<'CURVES'
import json
import statistics
import sys

directory, modes = sys.argv[1], sys.argv[2:]


def read(mode, name):
    return [json.loads(line) for line in open(f"{directory}/{mode}/{name}.jsonl")]


def print_row(title, losses):
    cells = [f"{losses[0]:.4f}"]
    cells += [f"{loss:.4f} {100 * (loss / losses[0] - 1):+.2f}%" for loss in losses[1:]]
    print(f"{title:>12}" + "".join(f"{cell:>17}" for cell in cells))


print(f"{'steps':>12}" + "".join(f"{mode:>17}" for mode in modes))
curves = [[step["loss"] for step in read(mode, "metrics")] for mode in modes]
length = max(1, len(curves[0]) // 10)
for end in range(length, len(curves[0]) + 1, length):
    print_row(f"{end - length + 1}-{end}", [statistics.mean(curve[end - length:end]) for curve in curves])
validations = [[event["loss"] for event in read(mode, "events") if event["event"] == "validation"]
               for mode in modes]
print_row("validation", [losses[-1] for losses in validations])
CURVES
