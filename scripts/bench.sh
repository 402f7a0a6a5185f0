#!/usr/bin/env bash
# Every benchmark of training on this machine, ending in one table. Takes about 20 minutes on 2 cores; the
# comparison with PyTorch and the precision curves only run where they are asked for. Those of a GPU are
# scripts/gpu_check.sh's; those of data (bench/*.py) and bench/overlap.sh want text or a wire, and say so.
#
#   scripts/bench.sh [--torch PYTHON] [--precision]
#
#   --torch PYTHON   a python that has torch: bench/compare_torch.sh, some 15 minutes more
#   --precision      bench/precision.sh, 1,000 steps in each mode, some 40 minutes more
set -euo pipefail
cd "$(dirname "$0")/.."
python='' precision=''
while [ $# -gt 0 ]; do
  case $1 in
    --torch) python=${2:?--torch needs the path of a python}; shift 2 ;;
    --precision) precision=1; shift ;;
    *) echo "bench.sh: unknown option $1: expected --torch PYTHON or --precision" >&2; exit 2 ;;
  esac
done
scripts/build.sh release

table=$(mktemp)
trap 'rm -f "$table"' EXIT
row() { printf '%s\t%s\n' "$1" "$2" >> "$table"; }
# field JSON KEY
field() { sed -n "s/.*\"$2\": *\([-0-9.e+]*\).*/\1/p" <<< "$1"; }

for bench in linear_bench attention_bench paged_attention_bench elementwise_bench tiles_bench; do
  echo "== $bench" >&2
  build/$bench >&2
done

for size in a b; do
  echo "== train_bench --size $size" >&2
  result=$(build/train_bench --size $size --sequences 8 --steps 5 --profile)
  echo "$result" >&2
  row "training, size $size, bf16-sr, tokens/s" "$(field "$result" tokens_per_s)"
  row "  share of the bf16 matrix-product rate" "$(field "$result" share_of_matmul)"
done

echo "== save_bench" >&2
result=$(build/save_bench)
row "asynchronous save of 512 MiB: stall, ms" "$(field "$result" stall_ms)"
row "  against copying it in memory" "$(field "$result" ratio)"

echo "== replica_bench" >&2
result=$(build/replica_bench)
row "a copy of the state of 1 GiB to another machine, loopback, encrypted, MB/s" "$(field "$result" encrypted_mb_per_s)"
row "  over a bare socket, MB/s" "$(field "$result" plain_mb_per_s)"
row "  processor seconds of both ends for 1 GB" "$(field "$result" encrypted_cpu_s_per_gb)"

echo "== start_bench" >&2
result=$(build/start_bench)
echo "$result" >&2
row "4,096 made-up ranks of a 70B: one opens the checkpoint, s" "$(awk '/a start: rank 0 / {print $(NF - 5)}' <<< "$result")"
row "  rank 0 tells all where they meet, s" "$(awk '/a start: rank 0 hears/ {print $(NF - 5)}' <<< "$result")"
row "  one finds the addresses of its 521 peers, s" "$(awk '/a start: a rank finds/ {print $(NF - 5)}' <<< "$result")"
row "  one says what it saved, s" "$(awk '/a save: what a rank/ {print $(NF - 5)}' <<< "$result")"
row "  rank 0 joins what all say, s" "$(awk '/a save: rank 0 joins/ {print $(NF - 5)}' <<< "$result")"

echo "== comm_bench" >&2
result=$(build/comm_bench --ranks 2)
echo "$result" >&2
row "all-reduce of 64 MiB between 2 ranks, GB/s sent" "$(awk '$2 == "all-reduce" && $4 == 67108864 {print $7}' <<< "$result")"

echo "== workers" >&2
result=$(bench/workers.sh)
echo "$result" >&2
row "2 workers x 1 thread against 1 x 2, throughput" "$(awk '/ratio/ {print $3}' <<< "$result")"

echo "== predict" >&2
result=$(bench/predict.sh)
echo "$result" >&2
while read -r layout _ _ ratio _; do
  row "predicted over measured step, $layout" "$ratio"
done < <(tail -n +2 <<< "$result")

echo "== busy" >&2
result=$(bench/busy.sh)
echo "$result" >&2
row "largest printed share of the ceiling, busy at the start, %" \
  "$(sed -n 's/.*largest printed \([0-9.]*\) %.*/\1/p' <<< "$result")"
for kind in measured calibrated; do
  row "predicted step beside four busy processes over quiet, $kind" \
    "$(sed -n "s/.*($kind).*busy over quiet \([0-9.]*\)/\1/p" <<< "$result")"
done

echo "== scaling" >&2
result=$(bench/scaling.sh)
echo "$result" >&2
while read -r hardware nodes _ _ rate _ efficiency _; do
  row "Llama 2 70B on $nodes nodes of $hardware, predicted tokens/s" "$rate ($efficiency)"
done < <(tail -n +2 <<< "$result")

echo "== startup" >&2
result=$(bench/startup.sh)
row "skein train to the end of step 1, s" "$(field "$result" train_to_end_of_step_1_s)"
row "planning Llama 2 70B, s" "$(field "$result" plan_llama2_70b_s)"
row "  on 4,096 ranks, 8 stages, s" "$(field "$result" plan_4096_ranks_pp8_s)"
row "  on 4,096 ranks, tensor ranks of 32, s" "$(field "$result" plan_4096_ranks_tp32_s)"

if [ -n "$python" ]; then
  echo "== compare_torch" >&2
  status=0
  results=$(PYTHON=$python bench/compare_torch.sh) || status=$?
  # 1 with ratios printed: one is under its target, and the table shows it. Anything else is a failure.
  if [ "$status" -gt 1 ] || ! grep -q '"ratio"' <<< "$results"; then
    echo "bench.sh: bench/compare_torch.sh failed with exit code $status" >&2
    exit 1
  fi
  echo "$results" >&2
  while read -r line; do
    row "against PyTorch's best, size $(sed -n 's/.*"size": "\(.\)".*/\1/p' <<< "$line")" "$(field "$line" ratio)"
  done < <(grep '"ratio"' <<< "$results")
else
  row "against PyTorch" "not run: --torch PYTHON"
fi
if [ -n "$precision" ]; then
  results=$(bench/precision.sh)
  echo "$results" >&2
  while read -r mode loss change; do
    row "validation loss, $mode" "$loss $change"
  done < <(awk '
    $1 == "steps" {for (i = 2; i <= NF; ++i) mode[i - 1] = $i}
    $1 == "validation" {print mode[1], $2; for (i = 3; i < NF; i += 2) print mode[(i + 1) / 2], $i, $(i + 1)}
    ' <<< "$results")
else
  row "precision curves" "not run: --precision"
fi

echo
column -t -s "$(printf '\t')" "$table"
