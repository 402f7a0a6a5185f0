#!/usr/bin/env bash
# scripts/check_includes.sh finds each kind of violation, and nothing in a tree that has none.
set -euo pipefail
check=$(realpath "$(dirname "$0")/../../scripts/check_includes.sh")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

write() {  # FILE LINE…
  mkdir -p "$tree/skein/${1%/*}"
  printf '%s\n' "${@:2}" >"$tree/skein/$1"
}

# A tree without violations.
write base/error.h '// Errors, for people.' '//' '// Throws.' '#pragma once' '' '#include <string>'
write ir/graph.h '// The graph.' '#pragma once' '#include "skein/tensor/shape.h"' '#include "skein/base/error.h"'
write ops/add/add_cuda.cu '#include <cuda_runtime.h>' '#include "skein/ir/graph.h"'
write ops/simd/simd-inl.h '// Included several times.' '#ifdef X'
write passes/lower.cc '#include "skein/ops/ops.h"' '#include "skein/comm/communicator.h"'
write train/loop/trainer.cc '#include "skein/ops/ops.h"' '#include "skein/runtime/device.h"' \
  'fail("exit(1) and \"abort()\" in text");  // never exit(1)' 'on_exit(); communicator->abort(); set_exit(1);'
write comm/communicator.h '// Talks.' '#pragma once' 'struct C { virtual void abort() = 0; };'
write backends/backend_cuda.cc '#include "skein/runtime/cuda/cuda_device.h"' '#include "skein/ops/ops.h"'
write runtime/cpu/cpu_device.cc '#include "skein/runtime/cpu/cpu_device.h"'
write runtime/cuda/stream.cc '#include <cublasLt.h>' '#include <cudnn_frontend.h>'
write comm/nccl/nccl.cc '#include <nccl.h>'
write cli/main.cc '#include "skein/launch/node/supervisor.h"' '#include "skein/base/error.h"' 'std::exit(1);'
write ir/graph_test.cc '#include "skein/ops/ops.h"' '#include "skein/runtime/cpu/cpu_device.h"' '_exit(3);'
write data/lanes/lane_fuzz.cc 'std::abort();'

expect() {  # OUTPUT_PATTERN; the empty one: no violation
  local output status=0
  output=$("$check" "$tree" 2>&1) || status=$?
  if [ -z "$1" ] && [ $status = 0 ] && [ -z "$output" ]; then return; fi
  if [ -n "$1" ] && [ $status = 1 ] && [ "$(wc -l <<<"$output")" = 1 ] && grep -q -- "$1" <<<"$output"; then return; fi
  echo "expected ${1:-no violation}, found (exit code $status): ${output:-nothing}" >&2
  failures=$((failures + 1))
}

violation() {  # NEW_FILE OUTPUT_PATTERN LINE…: the violation is in the last line
  write "$1" "${@:3}"
  expect "^skein/$1:$(($# - 2)): $2"
  rm "$tree/skein/$1"
}

expect ''

# Rooms: upwards, sideways, unknown.
violation base/log.cc 'includes "skein/tensor/shape.h": base may include only itself' '#include "skein/tensor/shape.h"'
violation tensor/view.cc 'includes "skein/ir/graph.h": tensor may .* base$' '#include "skein/ir/graph.h"'
violation ir/verify.cc 'includes "skein/ops/ops.h": ir may include itself and tensor, base$' '' '#include "skein/ops/ops.h"'
violation ops/add/add.cc 'includes "skein/runtime/device.h": ops may' '#include "skein/runtime/device.h"'
violation model/llama.cc 'includes "skein/passes/lower.h": model may' '  #  include <skein/passes/lower.h>'
violation optim/update.cc 'includes "skein/model/llama.h": optim may' '#include "skein/model/llama.h"'
violation schedule/estimate.cc 'includes "skein/ops/ops.h": schedule may' '#include "skein/ops/ops.h"'
violation passes/plan.cc 'includes "skein/runtime/device.h": passes may' '#include "skein/runtime/device.h"'
violation runtime/executor.cc 'includes "skein/ops/ops.h": runtime may' '#include "skein/ops/ops.h"'
violation comm/gloo/gloo.cc 'includes "skein/ir/graph.h": comm may' '#include "skein/ir/graph.h"'
violation data/lanes/lane.cc 'includes "skein/checkpoint/format/manifest.h": data may' '#include "skein/checkpoint/format/manifest.h"'
violation checkpoint/save/checkpoint_writer.cc 'includes "skein/data/lanes/lane.h": checkpoint may' '#include "skein/data/lanes/lane.h"'
violation train/loop/loop.cc 'includes "skein/launch/node/supervisor.h": train may' '#include "skein/launch/node/supervisor.h"'
violation launch/node/supervisor.cc 'includes "skein/train/loop/trainer.h": launch may' '#include "skein/train/loop/trainer.h"'
violation train/loop/loop.cc 'includes "skein/attic/box.h": there is no room "attic"' '#include "skein/attic/box.h"'
violation attic/box.cc 'there is no room "attic"' 'int box;'
violation train/loop/loop.cc 'includes "../data/lanes/lane.h": write the path from the root' '#include "../data/lanes/lane.h"'

# Rooms inside rooms: downwards is right; upwards, sideways, unknown, none.
write train/explain/replica.cc '#include "skein/train/loop/trainer.h"' '#include "skein/train/start/resume.h"'
write data/tokenizer/tokenizer.cc '#include "skein/data/tokenizer/folder/files.h"' '#include "skein/data/corpus/corpus.h"'
write supervise/simulation/simulation.cc '#include "skein/supervise/supervisor.h"'
write train/loop/loop_test.cc '#include "skein/train/explain/replica.h"'
expect ''
violation train/loop/loop.cc 'includes "skein/train/explain/replica.h": train/loop may include itself and train/start$' \
  '#include "skein/train/explain/replica.h"'
violation train/start/resume.cc 'includes "skein/train/loop/trainer.h": train/start may include only itself$' '#include "skein/train/loop/trainer.h"'
violation data/lanes/lane.cc 'includes "skein/data/learn/stats.h": data/lanes may' '#include "skein/data/learn/stats.h"'
violation data/corpus/corpus.cc 'includes "skein/data/tokenizer/folder/files.h": data/corpus may include only itself' \
  '#include "skein/data/tokenizer/folder/files.h"'
violation data/tokenizer/folder/files.cc 'includes "skein/data/tokenizer/tokenizer.h": data/tokenizer/folder may .* data/tokenizer/byte_level$' \
  '#include "skein/data/tokenizer/tokenizer.h"'
violation supervise/supervisor.cc 'includes "skein/supervise/simulation/simulation.h": the top of supervise may include only itself' \
  '#include "skein/supervise/simulation/simulation.h"'
violation prepare/clean/filters/c4.cc 'includes "skein/prepare/clean/clean.h": prepare/clean/filters may .* prepare/clean/words$' '#include "skein/prepare/clean/clean.h"'
violation train/attic/box.cc 'there is no room "train/attic"' 'int box;'
violation train/box.cc 'lies in none of the rooms of train: explain loop start' 'int box;'

# Folders that are full; tests are not counted.
for i in {10..39}; do write "supervise/part_$i.cc" 'int i;'; done
write supervise/part_test.cc 'int i;'
expect ''
violation supervise/rest.cc 'supervise/ holds more than 30 files' 'int i;'
rm "$tree"/skein/supervise/part_*

# Backends and CUDA.
violation train/loop/loop.cc 'includes "skein/runtime/cpu/cpu_device.h": a backend header' '#include "skein/runtime/cpu/cpu_device.h"'
violation runtime/executor.cc 'includes "skein/runtime/null/null_device.h": a backend' '#include "skein/runtime/null/null_device.h"'
violation runtime/cpu/arena.cc 'includes "skein/runtime/cuda/stream.h": a backend' '#include "skein/runtime/cuda/stream.h"'
violation ops/add/add_cpu.cc 'includes "cuda_bf16.h": CUDA headers' '#include <cuda_bf16.h>'
violation runtime/copy.cc 'includes "cublasLt.h": CUDA headers' '#include "cublasLt.h"'
violation comm/gloo/gloo.cc 'includes "nccl.h": CUDA headers' '#include <nccl.h>'
violation ops/add/add.cc 'includes "cub/cub.cuh": CUDA headers' '#include <cub/cub.cuh>'

# Exits.
violation train/loop/loop.cc 'calls exit()' '// exit(1) is' 'if (broken) std::exit(1);'
violation data/lanes/lane.cc 'calls abort()' 'void stop() { abort(); }'
violation launch/node/worker.cc 'calls _exit()' 'else ::_exit (1);'
violation checkpoint/save/checkpoint_writer.cc 'calls std::terminate()' 'log("stop"); std::terminate();'

# Headers.
violation base/x.h 'expected #pragma once' '// What it is.' '#include <string>'
violation base/x.h 'expected #pragma once' '// What it is.' '#ifndef X_H'
violation base/x.h 'a header begins with a comment' '#pragma once'
violation base/x-inl.h 'a header begins with a comment' ''

# Names: the second of two headers that define one.
mkdir -p "$tree/skein/data/corpus"
printf '// A share.\n#pragma once\nnamespace skein {\n\nstruct Share {\n};\n' >"$tree/skein/data/corpus/share.h"
violation base/x.cc 'includes "gtest/gtest.h": only tests do' '#include <gtest/gtest.h>'
violation tensor/shares.h 'defines skein::Share, as skein/data/corpus/share.h does' '// A share.' '#pragma once' 'namespace skein {' '' 'struct Share {'
violation tensor/share.h 'has the name of skein/data/corpus/share.h' '// Others.'
rm "$tree/skein/data/corpus/share.h"

# A folder without sources is a mistake, not a success.
rm -rf "$tree/skein" && mkdir "$tree/skein"
expect 'no sources in'

((failures == 0)) || { echo "$failures checks failed" >&2; exit 1; }
