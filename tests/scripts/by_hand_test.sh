#!/usr/bin/env bash
# The commands of docs/first_run.md by hand, as they stand there, in a home folder of their own: with
# less text and 2 steps.
set -euo pipefail
cd "$(dirname "$0")/../.."
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
mkdir "$home/text"
cp docs/*.md "$home/text/"
cp -r skein "$home/text/"

commands=$(sed -n '/<!-- by hand: begin -->/,/<!-- by hand: end -->/p' docs/first_run.md | sed '1d;$d' | grep -v '^```')
shorter=$(sed -e "s|^text=.*|text=$home/text|" -e 's/^steps = .*/steps = 2/' \
  -e 's/^every_steps = .*/every_steps = 2/' -e 's/^batches = .*/batches = 1/' -e "s/'#include <'/& --max-tokens 4/" <<< "$commands")
for expected in "text=$home/text" 'steps = 2' 'every_steps = 2' 'batches = 1' '--max-tokens 4'; do
  grep -qF -- "$expected" <<< "$shorter" || { echo "by_hand_test: docs/first_run.md has changed: no '$expected'" >&2; exit 1; }
done
# Threads that spin would only take turns from each other on a busy machine.
HOME=$home OMP_WAIT_POLICY=passive bash -euo pipefail -c "$shorter"
for file in corpus.arrow validation.arrow tokenizer/tokenizer.model run/metrics.jsonl \
  run/checkpoints/step-00000002/manifest.json hf/model.safetensors; do
  [ -s "$home/first-run/$file" ] || { echo "by_hand_test: no $file" >&2; exit 1; }
done
grep -q '"event": *"validation"' "$home/first-run/run/events.jsonl"

# The model is that of the demo.
parameters() {
  build/skein plan "$1" --set data.tokenizer= --set model.vocab_size=4096 --hardware configs/hardware/h100-8x.toml --json | grep '"parameters"'
}
of_the_demo=$(parameters configs/demo.toml)
by_hand=$(parameters "$home/first-run/run.toml")
[ "$of_the_demo" = "$by_hand" ] || { echo "by_hand_test: $by_hand, the demo has $of_the_demo" >&2; exit 1; }
echo "by_hand_test: good"
