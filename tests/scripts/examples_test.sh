#!/usr/bin/env bash
# The runs of examples/ give the losses that they promise, and examples/compare.py sees one that is wrong.
#
#   tests/scripts/examples_test.sh SKEIN
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export SKEIN=$1 HOME=$folder OMP_WAIT_POLICY=passive TINY_TEXT=$folder/tiny_text
examples/tiny_text/run.sh "$folder/tiny_text"
examples/continue/run.sh "$folder/continue"
for file in tiny_text/hf/model.safetensors continue/continued/model.safetensors; do
  [ -s "$folder/$file" ] || { echo "examples_test: no $file" >&2; exit 1; }
done
# The second run begins with the very loss that the first run ended with.
at_end=$(sed -n 's/.*"80 text": *//p' examples/tiny_text/expected.json)
at_start=$(sed -n 's/.*"0 pages": *\(.*\),/\1/p' examples/continue/expected.json)
[ -n "$at_end" ] && [ "$at_end" = "$at_start" ] || {
  echo "examples_test: tiny_text ends with a validation loss of $at_end, continue begins with $at_start" >&2
  exit 1
}
sed 's/"1": 6\.24/"1": 6.25/' examples/tiny_text/expected.json > "$folder/wrong.json"
if examples/compare.py "$folder/tiny_text/run" "$folder/wrong.json" 2> "$folder/said"; then
  echo "examples_test: a wrong loss was not seen" >&2
  exit 1
fi
grep -q 'step 1: loss 6.24.*, expected 6.25.* within 0.005' "$folder/said"
echo "examples_test: good"
