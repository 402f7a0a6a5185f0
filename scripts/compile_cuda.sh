#!/usr/bin/env bash
# Compiles the CUDA backend with nvcc in build-cuda/, and runs what needs it: the tests of ops on a GPU, which
# are skipped where there is none. Ends with 77, which is skipped, where nvcc is not found.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/local/cuda/bin
command -v nvcc > /dev/null ||
  { echo 'compile_cuda.sh: nvcc is not in PATH nor in /usr/local/cuda/bin: install the CUDA toolkit' >&2; exit 77; }
cmake --preset cuda > /dev/null
cmake --build build-cuda --target skein skein_cuda_test train_bench kernel_bench
ctest --test-dir build-cuda -R '^cuda/ops$' --output-on-failure --no-tests=error
