#!/usr/bin/env bash
# Compiles the step's programs of the demo, of 7B, 13B and 70B with the compilers of NVIDIA's GPUs and
# of TPUs, without their devices, and writes what they say beside the plan into docs/certificates.md.
#
#   scripts/certificates.sh          all cases that have no file in bench/results/certificates/ yet
#   scripts/certificates.sh NAME…    these cases again; scripts/certificates.py --list names them
#
# The compilers are wheels of PyPI, 135 MB each, unpacked below .deps; build/skein must be built. Large models
# take minutes a program. libtpu comes under the terms of Google Cloud: it is used here to
# compile, and never a part of what Skein ships.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

unpack_compiler() { # NAME VERSION PLATFORM
  local folder=.deps/$1-plugin-$2
  [ ! -f "$folder/.done" ] || return 0
  echo "certificates: unpacking $1 $2 from its wheel" >&2
  unpack_wheel "$1==$2" "$3" "$folder" '*.so'
  touch "$folder/.done"
}
unpack_compiler jax-cuda13-pjrt 0.12.0.1 manylinux_2_27_x86_64
unpack_compiler libtpu 0.0.52 manylinux_2_31_x86_64

scripts/certificates.py --compile "$@"
scripts/certificates.py
