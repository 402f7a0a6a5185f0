#!/usr/bin/env bash
# The main job, end to end, on real text: ingest → tokenizer → train → validate → export → generate.
#
#   scripts/demo.sh [TEXT_FILE_OR_FOLDER…]      default: this machine's C and C++ headers
#
# SKEIN_DEMO_SECONDS   how long to train (default 200)
set -euo pipefail
cd "$(dirname "$0")/.."
inputs=("$@")
[ ${#inputs[@]} -gt 0 ] || inputs=(/usr/include)
seconds=${SKEIN_DEMO_SECONDS:-200}
began=$SECONDS

say() { printf '\n\033[1m%s\033[0m\n' "$*" >&2; }

say "1/7  Build"
if [ -z "${SKEIN_CUDA+set}" ] && [ ! -e build/CMakeCache.txt ] && [ ! -e /dev/nvidiactl ] && [ ! -e /dev/dxg ]; then
  echo "no GPU driver here: building without CUDA; SKEIN_CUDA=ON scripts/build.sh builds with it" >&2
  export SKEIN_CUDA=OFF
fi
scripts/build.sh release skein
skein=build/skein

# Every run has a folder of its own, so that nothing of an earlier one is overwritten.
dir=runs/demo
for ((n = 2; ; ++n)); do
  [ -e "$dir" ] || break
  dir=runs/demo-$n
done
mkdir -p "$dir"

say "2/7  Ingest ${inputs[*]}"
$skein data ingest --out "$dir/corpus.arrow" --validation-out "$dir/validation.arrow" \
  --validation-fraction 0.01 "${inputs[@]}"

say "3/7  Train a tokenizer"
$skein data tokenizer --vocab-size 4096 --out "$dir/tokenizer-4096" "$dir/corpus.arrow"
$skein data stats --tokenizer "$dir/tokenizer-4096" "$dir/corpus.arrow"

config=(configs/demo.toml
  --set "run.dir=\"$dir\"" --set "data.train=\"$dir/corpus.arrow\""
  --set "data.validation=\"$dir/validation.arrow\"" --set "data.tokenizer=\"$dir/tokenizer-4096\"")

say "4/7  Plan"
hardware=$dir/this-machine.toml
$skein plan "${config[@]}" --calibrate "$hardware" >/dev/null
$skein plan "${config[@]}" --hardware "$hardware"
# As many steps as fit the time at the planned speed, with a tenth held back for validation.
rate=$($skein plan "${config[@]}" --hardware "$hardware" --json | sed -n 's/.*"tokens_per_second": *\([0-9]*\).*/\1/p')
steps=$((rate * seconds * 8 / 10 / 4096))
((steps >= 60)) || steps=60
echo "$steps steps fit $seconds s of training at $rate tokens/s; SKEIN_DEMO_SECONDS asks for more" >&2
config+=(--set "run.steps=$steps" --set "optimizer.decay_steps=$((steps - 40))")

say "5/7  Train $steps steps"
$skein train "${config[@]}"

say "6/7  Export to Hugging Face format"
$skein checkpoint verify "$dir" >&2
$skein checkpoint export "$dir" --out "$dir/hf"
ls -1 "$dir/hf" | sed 's/^/  /' >&2

say "7/7  Generate"
prompt='#include <'
$skein generate --model "$dir/hf" --prompt "$prompt" --max-tokens 120 --temperature 0.7

say "Report"
$skein report "$dir"
cat >&2 <<EOF

Done in $((SECONDS - began)) s.
  the run          $dir            (metrics.jsonl, events.jsonl, tensorboard/, checkpoints/)
  the model        $dir/hf         (transformers loads it as it is)
  curves           tensorboard --logdir $dir/tensorboard
  more text        $skein generate --model $dir/hf --prompt '…'
  train for longer $skein train $dir/config.toml --set run.steps=$((steps * 10)) --set optimizer.decay_steps=$((steps * 10 - 40))
EOF
