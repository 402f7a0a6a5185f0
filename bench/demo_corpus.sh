#!/usr/bin/env bash
# Makes what the demo's model trains on for a benchmark: DIR/corpus.arrow and DIR/tokenizer.
#
#   bench/demo_corpus.sh SKEIN DIR [TEXT]        TEXT: default /usr/include/c++
set -euo pipefail
skein=$1 dir=$2 text=${3:-/usr/include/c++}
{
  "$skein" data ingest --out "$dir/corpus.arrow" "$text" &&
    "$skein" data tokenizer --vocab-size 4096 --out "$dir/tokenizer" "$dir/corpus.arrow"
} >/dev/null 2>"$dir/corpus.log" || { cat "$dir/corpus.log" >&2; exit 1; }
