#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test that needs no GPU. The last lines are ctest's summary.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh release
ctest --test-dir build --output-on-failure --no-tests=error "$@"
