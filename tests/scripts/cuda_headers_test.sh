#!/usr/bin/env bash
# Only targets that name the CUDA toolkit's folder include its headers: tests/scripts/cuda_headers_test.sh BUILD.
# Where the headers lie in /usr/local/include as well, any target finds them, and does not compile elsewhere.
set -euo pipefail
found=$(ninja -C "$1" -t deps | awk '/^[^ ]/ { object = $1 } /^ +\/usr\/local\/include\/(cuda|cublas|nccl)/ && !seen[object]++ { print object, $1 }')
[ -z "$found" ] || { printf 'cuda_headers_test: a machine without CUDA lacks what these include:\n%s\n' "$found" >&2; exit 1; }
