#!/usr/bin/env bash
# The main job, end to end, on real text: ingest → tokenizer → train → validate → export → generate.
#
#   scripts/demo.sh [TEXT_FILE_OR_FOLDER…]      default: this machine's C and C++ headers
#
# SKEIN_DEMO_SECONDS   how long to train (default 200)
#
# A model needs some 1,000 steps to write what looks like its text. Where that many of the 10 M parameters
# of configs/demo.toml do not fit the time, a model of 1 M parameters is trained, which takes an eighth of
# the arithmetic a token, on half as many tokens a step.
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

steps_in() { echo $(($1 * seconds * 8 / 10 / tokens_per_step)); }  # TOKENS_PER_SECOND; a fifth is for validation
# Tokens a second of a few steps: beside whatever else runs here, which no plan knows.
measured_rate() {
  local said
  said=$($skein train "${config[@]}" --set "run.dir=\"$dir/speed\"" --set run.steps=8 --set validate.every_steps=0 \
    --set log.tensorboard=false 2>&1) || { echo "$said" >&2; return 1; }
  sed -n '3,$s/.*"step_ms": *\([0-9]*\).*/\1/p' "$dir/speed/metrics.jsonl" |
    awk -v tokens=$tokens_per_step '{ ms += $1 } END { printf "%d", NR * tokens * 1000 / ms }'
  rm -rf "$dir/speed"
}

say "4/7  Plan"
hardware=$dir/this-machine.toml
tokens_per_step=4096 enough=1000
$skein plan "${config[@]}" --calibrate "$hardware" >/dev/null
rate=$($skein plan "${config[@]}" --hardware "$hardware" --json | sed -n 's/.*"tokens_per_second": *\([0-9]*\).*/\1/p')
[ "$(steps_in "$rate")" -lt $enough ] || rate=$(measured_rate)
if [ "$(steps_in "$rate")" -lt $enough ]; then
  echo "10 M parameters would see $(steps_in "$rate") steps in $seconds s here, at $rate tokens/s, too few to write" \
    "what looks like text: a model of 1 M parameters is trained" >&2
  tokens_per_step=2048
  config+=(--set 'model.hf_config="configs/models/demo-1m.json"' --set data.sequence_length=256
    --set batch.micro_sequences=8 --set optimizer.learning_rate=6e-3 --set optimizer.min_learning_rate=3e-4)
  rate=$(measured_rate)
fi
steps=$(steps_in "$rate")
((steps >= 60)) || steps=60
warmup=$((steps < 400 ? steps / 10 : 40))
tokens=$((steps * tokens_per_step))
echo "$steps steps fit $seconds s of training at $rate tokens/s, measured; SKEIN_DEMO_SECONDS asks for more" >&2
config+=(--set "run.steps=$steps" --set "optimizer.warmup_steps=$warmup" --set "optimizer.decay_steps=$((steps - warmup))"
  --set "validate.every_steps=$((steps / 5))" --set "validate.batches=$((steps < 300 ? 4 : 20))" --set "checkpoint.every_steps=$((steps / 5))"
  --set "log.every_steps=$((steps < 600 ? 10 : steps / 60))")
$skein plan "${config[@]}" --hardware "$hardware"

say "5/7  Train $steps steps"
$skein train "${config[@]}"

say "6/7  Export to Hugging Face format"
$skein checkpoint verify "$dir" >&2
$skein checkpoint export "$dir" --out "$dir/hf"
ls -1 "$dir/hf" | sed 's/^/  /' >&2

say "7/7  Generate"
if ((tokens < 400000)); then
  echo "It has read $tokens tokens, too few: expect digits, underscores and parts of words. With" \
    "SKEIN_DEMO_SECONDS=$((seconds * 1500000 / tokens)) expect whole lines" >&2
elif ((tokens < 1000000)); then
  echo "It has read $tokens tokens: expect scraps of its text, and lines that repeat themselves. With" \
    "SKEIN_DEMO_SECONDS=$((seconds * 1500000 / tokens)) expect whole lines" >&2
else
  echo "It has read $tokens tokens: expect lines that look like its text and mean nothing" >&2
fi
for prompt in '#include <' 'static inline '; do
  $skein generate --model "$dir/hf" --prompt "$prompt" --max-tokens 100 --temperature 0.8 --top-p 0.9
  echo
done

say "Report"
$skein report "$dir"
cat >&2 <<EOF

Done in $((SECONDS - began)) s.
  the run          $dir            (metrics.jsonl, events.jsonl, tensorboard/, checkpoints/)
  the model        $dir/hf         (transformers loads it as it is)
  curves           tensorboard --logdir $dir/tensorboard
  more text        $skein generate --model $dir/hf --prompt '…'
  train for longer $skein train $dir/config.toml --set run.steps=$((steps * 10)) --set optimizer.decay_steps=$((steps * 10 - warmup))
EOF
