#!/usr/bin/env bash
# From raw text to a Hugging Face folder, on one core in some seconds; then compares the losses.
#
#   examples/tiny_text/run.sh [FOLDER]      FOLDER: where everything goes (runs/examples/tiny_text), replaced
#
# SKEIN   the program (build/skein)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
skein=$(realpath "${SKEIN:-$here/../../build/skein}")
out=${1:-$here/../../runs/examples/tiny_text}
rm -rf "$out"
mkdir -p "$out"
cd "$out"

# Paragraphs are documents here. A tenth is held out: training never sees it.
"$skein" data ingest --out pages.arrow --validation-out held.arrow --validation-fraction 0.1 \
  --document-separator '\n\n' "$here/../text/pages"
"$skein" data tokenizer --vocab-size 512 --out tokenizer pages.arrow
"$skein" plan "$here/run.toml"
"$skein" train "$here/run.toml"
"$skein" checkpoint export run --out hf
"$skein" generate --model hf --prompt 'The ' --max-tokens 32
echo
"$here/../compare.py" run "$here/expected.json"
