#!/usr/bin/env bash
# Builds the program that holds a test, and nothing else, runs the test, and prints how many seconds both took.
#
#   scripts/test_one.sh 'Packer.RowsAreThoseOfTheReference'       a test, or a suite: Packer
#   scripts/test_one.sh 'Packer.Rows*'                            the tests of a pattern, which are in one program
#   scripts/test_one.sh data/Packer.RowsAreThoseOfTheReference    a test as ctest names it
#   scripts/test_one.sh 'data/*'                                  a room
#   scripts/test_one.sh skein/data/lanes/packer_test.cc           the tests of a file; packer.cc and packer.h mean the same
#
#   --preset PRESET   release (build/, the default), debug (build-debug/) or asan (build-asan/)
#   --gdb             runs the test under gdb
#   --no-run          builds; build/one_test and build/one_test.env are then the program and its environment, for a debugger
#
# Of several tests, those that scripts/check.sh runs are left out, because they take long; name one to run it.
# Tests of ops run on the CPU; cuda_emulated/NAME runs one on the emulated CUDA device.
# Exit code 0: all passed; 1: one failed, or the build did; 2: no test matches, or tests of several programs do.
set -euo pipefail
case ${1:-} in
  '' | -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//p}' "$0"; [ $# -gt 0 ] && exit 0 || exit 2 ;;
esac
arguments=() preset=release
while [ $# -gt 0 ]; do
  case $1 in
    --preset) preset=${2:-} && shift ;;
    -*) arguments+=("$1") ;;
    *) if [ -f "$1" ]; then arguments+=("$(realpath "$1")"); else arguments+=("$1"); fi ;;
  esac
  shift
done
cd "$(dirname "$0")/.."
case $preset in
  release) build=build ;;
  debug | asan) build=build-$preset ;;
  *) echo "test_one: there is no preset '$preset': expected release, debug or asan" >&2; exit 2 ;;
esac

# Without GoogleTest the build has no tests: scripts/build.sh installs only what the program needs.
if [ ! -f .deps/services/.done ] || ! grep -qs skein_test_main "$build/build.ninja"; then
  scripts/test_tools.sh
  SKEIN_CUDA=${SKEIN_CUDA:-OFF_ONCE} scripts/build.sh "$preset" build.ninja
fi
exec scripts/test_one.py "$build" "${arguments[@]}"
