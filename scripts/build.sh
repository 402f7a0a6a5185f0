#!/usr/bin/env bash
# Installs what is missing and builds: scripts/build.sh [release|debug|asan] [TARGET…]; the binary is
# build/skein.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
shift $(($# > 0 ? 1 : 0))
targets=()
[ $# = 0 ] || targets=(--target "$@")
scripts/setup.sh
# SKEIN_CUDA=OFF: without the CUDA backend; otherwise where nvcc is found. Unset: as it was.
# OFF_ONCE, of scripts/test.sh: OFF now, and what is remembered stays.
cuda=()
case ${SKEIN_CUDA-unset} in
  unset) ;;
  OFF_ONCE) cuda=(-DSKEIN_CUDA_ONCE=OFF) && unset SKEIN_CUDA ;;
  *) cuda=(-DSKEIN_CUDA="$SKEIN_CUDA") ;;
esac
cmake --preset "$preset" "${cuda[@]}" >&2
build_dir=build
[ "$preset" = release ] || build_dir=build-$preset
cmake --build "$build_dir" "${targets[@]}" >&2
