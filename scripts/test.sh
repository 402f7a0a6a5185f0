#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test that needs no GPU and is not left to scripts/check.sh.
# Before ctest's summary, which is the last thing printed, it says what that is, and the processor time of each
# part.
#
#   scripts/test.sh [CTEST_OPTION…]           for example -R passes/
#   SKEIN_CUDA=ON scripts/test.sh             with the CUDA backend; without it, also where nvcc is found
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/test_tools.sh
SKEIN_CUDA=${SKEIN_CUDA:-OFF_ONCE} scripts/build.sh release skein_suite
# As many at a time as there are cores; those that other work disturbs run alone (cmake/test_parts.cmake).
find build/tmp -mindepth 1 -delete
times > build/tmp/times  # not in a subshell, which has used nothing yet
status=0
left_out=$(scripts/check.sh --left-out)
if [ -z "${SKEIN_CUDA:-}" ] && PATH=$PATH:/usr/local/cuda/bin command -v nvcc >/dev/null; then
  left_out+=$'\nbuild/skein is without CUDA now; `scripts/build.sh` builds it with CUDA again.'
fi
scripts/run_tests.py --after-build "$(tail -n 1 build/tmp/times)" --left-out "$left_out" \
  -LE '^check\.' "$@" || status=$?
[ "$status" != 0 ] || find build/tmp -mindepth 1 -delete
exit "$status"
