#!/usr/bin/env bash
# Continues training from a Hugging Face folder, on a mixture of old and new text; then compares the losses.
#
#   examples/continue/run.sh [FOLDER]       FOLDER: where everything goes (runs/examples/continue), replaced
#
# SKEIN       the program (build/skein)
# TINY_TEXT   the folder of examples/tiny_text (runs/examples/tiny_text); that example runs first if it is missing
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
skein=$(realpath "${SKEIN:-$here/../../build/skein}")
first=${TINY_TEXT:-$here/../../runs/examples/tiny_text}
out=${1:-$here/../../runs/examples/continue}
[ -d "$first/hf" ] || SKEIN=$skein "$here/../tiny_text/run.sh" "$first"
first=$(realpath "$first")
rm -rf "$out"
mkdir -p "$out"
cd "$out"

ln -s "$first/hf" hf
ln -s "$first/pages.arrow" pages.arrow
ln -s "$first/held.arrow" held_pages.arrow
"$skein" data ingest --out code.arrow --validation-out held_code.arrow --validation-fraction 0.1 \
  --document-separator '\n\n' "$here/../text/code"
# The baseline: the losses of the model as it came. Nothing is trained, and no run folder is made.
"$skein" train "$here/run.toml" --validate-only
"$skein" train "$here/run.toml"
"$skein" checkpoint export run --out continued
"$here/../compare.py" run "$here/expected.json"
