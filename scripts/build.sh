#!/usr/bin/env bash
# Installs what is missing and builds. Usage: scripts/build.sh [release|debug|asan]; the binary is build/skein.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
scripts/setup.sh
cmake --preset "$preset" >&2
build_dir=build
[ "$preset" = release ] || build_dir=build-$preset
cmake --build "$build_dir" >&2
