#!/usr/bin/env bash
# The tests that scripts/test.sh leaves out, because they take long or compile much, in parts; and jobs: the same
# tests with another compiler, with sanitizers, or on another system.
#
#   scripts/check.sh                lists the parts and the jobs
#   scripts/check.sh NAME…          runs these jobs, and then builds and runs these parts; the last lines are ctest's
#                                   summary
#   scripts/check.sh all            all parts
#
# Which test is in which part: cmake/test_parts.cmake. Exit code 0: all passed; 1: one failed; 2: no such name.
set -euo pipefail
cd "$(dirname "$0")/.."

# NAME, minutes on two cores, what it covers
parts=(
  "bench          5  every benchmark compiles"
  "cuda          20  the CUDA backend compiles with nvcc; skipped where nvcc is not found"
  "cuda_emulated 10  on the emulated CUDA device: attention by wgmma, more steps, four ranks, scripts/gpu_check.sh"
  "environment   40  50 tests without what the harness makes: as another user, under ulimit, without /proc, in control groups"
  "fuzz          20  each fuzz target searches for 20 s with clang's libFuzzer and sanitizers"
  "layouts      100  all layouts of up to 8 workers: each builds, and trains as one worker does; a sample in other precisions"
  "machines       3  what each of 4,096 machines asks of the rendezvous, in the simulator"
  "objects        4  checkpoints in an object store: more kills, and objects of several parts"
  "pjrt           3  ops on StableHLO rules, of which XLA compiles many shapes: attention over context ranks, long sequences"
  "threads       40  the rooms in which threads meet, under clang's ThreadSanitizer"
  "tidy          60  clang-tidy on every source"
)
names=()
for part in "${parts[@]}"; do names+=("${part%% *}"); done

# NAME, what it covers; the function job_NAME runs it
jobs=(
  "lint      scripts/lint.sh --no-tidy, and the messages of the commits that origin/main does not have: seconds"
  "gcc       scripts/test.sh, which builds with g++"
  "clang     the program and the unit tests, built with clang in build-clang/"
  "asan      the unit tests with AddressSanitizer and UndefinedBehaviorSanitizer, in build-asan/"
  "debian12  the demo and scripts/test.sh in a fresh Debian 12, as a user with sudo; needs root and mmdebstrap"
  "debian13  the same in a fresh Debian 13"
)
job_names=()
for job in "${jobs[@]}"; do job_names+=("${job%% *}"); done

# PRESET CMAKE_OPTION…: builds the program and the unit tests in build-PRESET/, and runs these.
unit_tests() {
  scripts/setup.sh
  scripts/test_tools.sh
  cmake --preset "$1" "${@:2}" -DSKEIN_CUDA=OFF >&2
  cmake --build "build-$1" --target skein skein_unit >&2
  ctest --test-dir "build-$1" -j "$(nproc)" --output-on-failure --no-tests=error -L '^unit$' -LE '^check\.'
}
job_lint() { scripts/lint.sh --no-tidy && scripts/check_commit.sh; }
job_gcc() { scripts/test.sh; }
job_clang() {
  local version  # the preset names clang 14; that of another distribution is in scripts/packages.sh
  version=$(. scripts/packages.sh && packages test | sed -n 's/^clang-\([0-9]*\)$/\1/p')
  unit_tests clang -DCMAKE_CXX_COMPILER="clang++-$version"
}
# Arrow and SentencePiece are not built with the sanitizer: containers that cross over would be reported.
job_asan() {
  ASAN_OPTIONS=${ASAN_OPTIONS:-detect_container_overflow=0} \
    LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$PWD/cmake/leaks_of_libraries.supp} unit_tests asan
}
job_debian12() { scripts/check_distribution.sh bookworm --user --tests .; }
job_debian13() { scripts/check_distribution.sh trixie --user --tests .; }

case ${1:-} in
  '')
    echo 'scripts/check.sh PART… runs what scripts/test.sh leaves out; all: every part. Minutes are those of two cores.'
    printf '%-14s %7s  %s\n' part minutes 'what it covers'
    for part in "${parts[@]}"; do
      read -r name minutes what <<< "$part"
      printf '%-14s %7s  %s\n' "$name" "$minutes" "$what"
    done
    printf '\n%-14s %7s  %s\n' job '' 'what it covers'
    for job in "${jobs[@]}"; do
      read -r name what <<< "$job"
      printf '%-14s %7s  %s\n' "$name" '' "$what"
    done
    exit ;;
  --names) printf '%s\n' "${names[@]}"; exit ;;
  # For scripts/test.sh.
  --left-out)
    echo "Left out: $(printf '%s, ' "${names[@]}" | sed 's/, $//'). \`scripts/check.sh\` says what each covers," \
         "\`scripts/check.sh all\` runs them."
    exit ;;
  all) set -- "${names[@]}" ;;
esac
for name; do
  [[ " ${names[*]} ${job_names[*]} " == *" $name "* ]] ||
    { echo "check.sh: there is no part or job '$name': expected some of ${names[*]} ${job_names[*]}, or all" >&2; exit 2; }
done

chosen=("$@") failed=()
set --
for name in "${chosen[@]}"; do
  if [[ " ${job_names[*]} " != *" $name "* ]]; then set -- "$@" "$name"; continue; fi
  # A shell of its own, in which a command that fails ends the job.
  bash -euo pipefail -c "$(declare -f); job_$name" || failed+=("$name")
done
if [ ${#failed[@]} -gt 0 ]; then echo "check.sh: FAILED: ${failed[*]}" >&2; exit 1; fi
[ $# -gt 0 ] || exit 0

scripts/test_tools.sh
SKEIN_CUDA=${SKEIN_CUDA:-OFF_ONCE} scripts/build.sh release "${@/#/check_}"
find build/tmp -mindepth 1 -delete
times > build/tmp/times
status=0
scripts/run_tests.py --after-build "$(tail -n 1 build/tmp/times)" -L "^check\.($(IFS='|' && echo "$*"))\$" || status=$?
[ "$status" != 0 ] || find build/tmp -mindepth 1 -delete
exit "$status"
