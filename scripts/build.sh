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
cmake --preset "$preset" >&2
build_dir=build
[ "$preset" = release ] || build_dir=build-$preset
cmake --build "$build_dir" "${targets[@]}" >&2
