#!/usr/bin/env bash
# The tests that scripts/test.sh leaves out, because they take long or compile much, in parts.
#
#   scripts/check.sh                lists the parts
#   scripts/check.sh PART…          builds, and runs these parts; the last lines are ctest's summary
#   scripts/check.sh all            all of them
#
# Which test is in which part: cmake/test_parts.cmake. Exit code 0: all passed; 1: one failed; 2: no such part.
set -euo pipefail
cd "$(dirname "$0")/.."

# NAME, minutes on two cores, what it covers
parts=(
  "bench          5  every benchmark compiles"
  "cuda          20  the CUDA backend compiles with nvcc; skipped where nvcc is not found"
  "cuda_emulated 10  on the emulated CUDA device: attention by wgmma, more steps, four ranks, scripts/gpu_check.sh"
  "fuzz          20  each fuzz target searches for 20 s with clang's libFuzzer and sanitizers"
  "layouts      100  all layouts of up to 8 workers: each builds, and trains as one worker does; a sample in other precisions"
  "objects        4  checkpoints in an object store: more kills, and objects of several parts"
  "tidy          60  clang-tidy on every source"
)
names=()
for part in "${parts[@]}"; do names+=("${part%% *}"); done

case ${1:-} in
  '')
    echo 'scripts/check.sh PART… runs what scripts/test.sh leaves out; all: every part. Minutes are those of two cores.'
    printf '%-14s %7s  %s\n' part minutes 'what it covers'
    for part in "${parts[@]}"; do
      read -r name minutes what <<< "$part"
      printf '%-14s %7s  %s\n' "$name" "$minutes" "$what"
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
  [[ " ${names[*]} " == *" $name "* ]] ||
    { echo "check.sh: there is no part '$name': expected some of ${names[*]}, or all" >&2; exit 2; }
done

scripts/test_tools.sh
SKEIN_CUDA=${SKEIN_CUDA:-OFF_ONCE} scripts/build.sh release "${@/#/check_}"
find build/tmp -mindepth 1 -delete
times > build/tmp/times
status=0
scripts/run_tests.py --after-build "$(tail -n 1 build/tmp/times)" -L "^check\.($(IFS='|' && echo "$*"))\$" || status=$?
[ "$status" != 0 ] || find build/tmp -mindepth 1 -delete
exit "$status"
