#!/usr/bin/env bash
# What a busy machine changes: four processes that compute all the time beside the program.
#
#   bench/busy.sh [SKEIN]        default: build/skein
#
# Prints the largest share of the ceiling that a run shows whose machine is busy at its start and not
# later (on its progress lines, and in metrics.jsonl), and the predicted seconds of a step with and
# without the busy processes, each the median of several, in turn.
#
# SKEIN_BUSY_ROUNDS   how often it predicts (default 3)
# SKEIN_BUSY_STEPS    steps of the run (default 40), of which the first quarter is beside them
# SKEIN_BUSY_TEXT     what the corpus is made of (default /usr/include)
set -euo pipefail
cd "$(dirname "$0")/.."
skein=$(realpath "${1:-build/skein}")
rounds=${SKEIN_BUSY_ROUNDS:-3}
steps=${SKEIN_BUSY_STEPS:-40}
dir=$(mktemp -d)
busy=()
end_busy() {
  ((${#busy[@]} == 0)) || kill "${busy[@]}" 2>/dev/null || true
  busy=()
}
trap 'end_busy; rm -rf "$dir"' EXIT
begin_busy() {
  for _ in 1 2 3 4; do
    (while :; do :; done) &
    busy+=($!)
  done
}

bench/demo_corpus.sh "$skein" "$dir" "${SKEIN_BUSY_TEXT:-/usr/include}"
common=(configs/demo.toml --set "data.train=$dir/corpus.arrow" --set "data.tokenizer=$dir/tokenizer"
  --set data.validation= --set validate.every_steps=0 --set "run.steps=$steps"
  --set checkpoint.every_steps=0 --set log.tensorboard=false --set log.every_steps=1)

number() { sed -n "s/.*\"$1\": *\([0-9.e+-]*\).*/\1/p" | head -1; }
median() { sort -g | awk '{a[NR] = $1} END {print a[int((NR + 1) / 2)]}'; }

predict() { # NAME: by this machine's products and copies, and by all that --calibrate measures
  "$skein" plan "${common[@]}" --json 2>/dev/null | number step_seconds >>"$dir/$1.measured"
  "$skein" plan "${common[@]}" --calibrate "$dir/hardware.toml" >/dev/null 2>&1
  "$skein" plan "${common[@]}" --hardware "$dir/hardware.toml" --json 2>/dev/null |
    number step_seconds >>"$dir/$1.calibrated"
}

for ((round = 1; round <= rounds; ++round)); do
  predict quiet
  begin_busy
  predict busy
  end_busy
done

begin_busy
"$skein" train "${common[@]}" --set "run.dir=$dir/run" 2>"$dir/err" &
run=$!
while kill -0 "$run" 2>/dev/null &&
  (($(cat "$dir/run/metrics.jsonl" 2>/dev/null | wc -l) < steps / 4)); do sleep 0.2; done
end_busy
wait "$run" || { tail -3 "$dir/err"; exit 1; }

largest() { sort -g | tail -1; }
printed=$(sed -n 's/.* \([0-9.]*\)% of ceiling.*/\1/p' "$dir/err" | largest)
written=$(sed 's/.*"matmul_ceiling_share": *\([0-9.e+-]*\).*/\1/' "$dir/run/metrics.jsonl" | largest)
reported=$("$skein" report "$dir/run" --json | number median_matmul_ceiling_share)
awk -v p="$printed" -v w="$written" -v r="$reported" 'BEGIN {
  printf "share of the ceiling, busy at the start: largest printed %.1f %%, written %.1f %%; median of the report %.1f %%\n", p, 100 * w, 100 * r }'
for kind in measured calibrated; do
  awk -v k="$kind" -v q="$(median <"$dir/quiet.$kind")" -v b="$(median <"$dir/busy.$kind")" 'BEGIN {
    printf "predicted seconds of a step (%s): quiet %.3f, busy %.3f, busy over quiet %.2f\n", k, q, b, b / q }'
done
sed -n 's/^model name[^:]*: */CPU: /p' /proc/cpuinfo | sort | uniq -c | awk '{$2 = $2; print}'
