#!/usr/bin/env bash
# Builds every *_fuzz.cc with clang, AddressSanitizer and UndefinedBehaviorSanitizer, and runs each
# one for a while on its seeds in tests/fuzz/<name>/. An input that fails is left in build-fuzz/.
#
#   scripts/fuzz.sh [SECONDS_PER_TARGET] [TARGET…]      10 seconds, all targets
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-10}
if [ $# -gt 1 ]; then
  targets=("${@:2}")
else
  mapfile -t targets < <(find skein -name '*_fuzz.cc' -printf '%f\n' | sed 's/\.cc$//' | sort)
fi

# The preset names clang 14; the version of another distribution is in scripts/packages.sh.
. scripts/packages.sh
version=$(packages test | sed -n 's/^clang-\([0-9]*\)$/\1/p')
cmake --preset fuzz -DCMAKE_CXX_COMPILER="clang++-$version" >/dev/null
cmake --build build-fuzz --target "${targets[@]}"

# The Arrow and SentencePiece libraries are not built with AddressSanitizer: containers that cross
# over would be reported without reason.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_container_overflow=0}

failed=()
for target in "${targets[@]}"; do
  seeds=tests/fuzz/$target
  [ -n "$(ls "$seeds" 2>/dev/null)" ] || { echo "$target: no seeds in $seeds" >&2; failed+=("$target"); continue; }
  found=build-fuzz/corpus/$target
  mkdir -p "$found"
  log=build-fuzz/$target.log
  if build-fuzz/"$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix="build-fuzz/$target-" "$found" "$seeds" >"$log" 2>&1; then
    echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs," \
         "$(grep -o 'cov: [0-9]*' "$log" | tail -1), no failure"
  else
    tail -n 40 "$log" >&2
    echo "$target: FAILED, the whole log is $log" >&2
    failed+=("$target")
  fi
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "fuzzing failed: ${failed[*]}" >&2
  exit 1
fi
