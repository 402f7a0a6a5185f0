#!/usr/bin/env bash
# Predicted scaling of Llama 2 70B: the best layout that `skein plan --search` finds on 64 nodes
# against the best on fewer, with as many sequences a device (weak scaling). Prints a table.
#
#   bench/scaling.sh [SKEIN]        default: build/skein; some minutes
#
# SKEIN_SCALING   "HARDWARE:DEVICES_PER_NODE:NODES,NODES…" …; the first number of nodes is the base
set -euo pipefail
cd "$(dirname "$0")/.."
skein=${1:-build/skein}
largest_nodes=64
largest_batch=1024 # sequences of 4,096 tokens a step on 64 nodes

printf '%-15s %5s %6s %6s %12s %12s %11s   %s\n' hardware nodes ranks batch tokens/s a_device efficiency layout
for line in ${SKEIN_SCALING:-h100-8x:8:8,64 trn1-32xlarge:32:16,64}; do
  IFS=: read -r hardware devices node_counts <<<"$line"
  base=
  for nodes in ${node_counts//,/ }; do
    ranks=$((nodes * devices))
    batch=$((largest_batch * nodes / largest_nodes))
    found=$("$skein" plan configs/llama2-70b-trn1-tp8-pp8.toml --search --json --ranks "$ranks" \
      --set "batch.global_sequences=$batch" --hardware "configs/hardware/$hardware.toml")
    rate=$(tr -d ' \n' <<<"$found" | grep -o '"tokens_per_second":[0-9.e+-]*' | head -1 | cut -d: -f2)
    layout=$(tr -d ' \n' <<<"$found" | grep -o '"set":\[[^]]*\]' | head -1 |
      sed 's/"set":\[//; s/[a-z]*\.//g; s/[]"]//g; s/,/ /g; s/=/ /g')
    awk -v h="$hardware" -v n="$nodes" -v r="$ranks" -v b="$batch" -v rate="$rate" -v base="$base" -v l="$layout" \
      'BEGIN { each = rate / r; printf "%-15s %5d %6d %6d %12.0f %12.1f %10.0f%%   %s\n", h, n, r, b, rate, each, 100 * each / (base == "" ? each : base), l }'
    [ -n "$base" ] || base=$(awk -v rate="$rate" -v r="$ranks" 'BEGIN { print rate / r }')
  done
done
