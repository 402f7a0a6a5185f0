#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test that needs no GPU. The last lines are ctest's summary.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/test_tools.sh
SKEIN_CUDA=${SKEIN_CUDA-} scripts/build.sh release
# As many at a time as there are cores; tests whose outcome is a time run alone (cmake/SkeinRoom.cmake).
find build/tmp -mindepth 1 -delete
ctest --test-dir build -j "$(nproc)" --output-on-failure --no-tests=error "$@"
find build/tmp -mindepth 1 -delete
