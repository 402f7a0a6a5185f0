#!/usr/bin/env bash
# Builds the rooms in which threads meet with clang and ThreadSanitizer, with clang's thread-safety
# warnings as errors, and runs their tests: any report fails. OpenMP is LLVM's, whose tool libarcher
# tells the sanitizer what its barriers order; with GCC's every parallel loop would be reported.
#
#   scripts/thread_check.sh [ROOM…]         supervise launch replica record store checkpoint data serve
#   SKEIN_FILTER=Loader* scripts/thread_check.sh data      some of the tests of a room
set -euo pipefail
cd "$(dirname "$0")/.."

rooms=("$@")
[ ${#rooms[@]} -gt 0 ] || rooms=(supervise launch replica record store checkpoint data serve)

# Tests that start build/skein test another program, and schedules and large runs of the simulator have one
# thread: they would run for an hour here and show nothing. Two tests give workers deadlines of a second,
# which are too short for programs that are ten times slower.
declare -A filter=(
  [supervise]='-*FaultSchedules*:*CallsOnTheStore*:Goodput.*:Simulation.*'
  [launch]='-Workers.OneThatHangs*:Workers.OneThatWaitsWithADeadlineOfItsOwn*'
  [checkpoint]='*SharedSave*:*Writer*:*Hold*:*Beat*:*Lock*:-*Crash*'
  [data]='*Loader*:*Lanes*:*Prefetch*'
)

# The preset names clang 14; the version of another distribution is in scripts/packages.sh.
. scripts/packages.sh
version=$(packages test | sed -n 's/^clang-\([0-9]*\)$/\1/p')
archer=/usr/lib/llvm-$version/lib/libarcher.so
[ -e "$archer" ] || { echo "thread_check: $archer is not here: scripts/test_tools.sh installs libomp-$version-dev" >&2; exit 1; }
cmake --preset tsan -DCMAKE_CXX_COMPILER="clang++-$version" >/dev/null
tests=("${rooms[@]/#/skein_}")
cmake --build build-tsan --target "${tests[@]/%/_test}"

# Libraries that are not built with the sanitizer order their threads by means that it does not see.
export TSAN_OPTIONS=${TSAN_OPTIONS:-ignore_noninstrumented_modules=1:halt_on_error=0:exitcode=66:die_after_fork=0}
export OMP_TOOL_LIBRARIES=$archer
failed=()
for room in "${rooms[@]}"; do
  log=build-tsan/$room.log
  status=0
  build-tsan/"skein_${room}_test" --gtest_filter="${SKEIN_FILTER:-${filter[$room]:-*}}" >"$log" 2>&1 || status=$?
  reports=$(awk '/WARNING: ThreadSanitizer/ { n++ } END { print n + 0 }' "$log")
  passed=$(awk '/\[       OK \]/ { n++ } END { print n + 0 }' "$log")
  echo "$room: $passed tests, $reports reports"
  if [ "$status" != 0 ] || [ "$reports" != 0 ] || [ "$passed" = 0 ]; then
    echo "$room: FAILED, the whole log is $log" >&2
    failed+=("$room")
  fi
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "thread_check failed: ${failed[*]}" >&2
  exit 1
fi
