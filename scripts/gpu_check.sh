#!/usr/bin/env bash
# Everything that only a GPU can show, in calls of under 10 minutes each: tests, compute-sanitizer, rates
# of kernels, losses beside the CPU's, training speed beside PyTorch's. docs/gpu_check.md says how to read it.
#
#   scripts/gpu_check.sh CALL [RESULTS.json]      in a checkout that is built
#   gpu_check.sh CALL [RESULTS.json]              in a folder that scripts/gpu_bundle.sh made
#
#   CALL   A   what is there, the kernels' tests, profiles of steps: the first thing to run (6 minutes,
#              9 where a suite fails)
#          B   rates of kernels; 7B beside PyTorch, with one and two sequences at a time (9)
#          C   fp8, 0.5B beside PyTorch, goldens, losses, bits (9)
#          D   compute-sanitizer; 1B beside PyTorch; how long `skein train` of 7B takes to start; 7B and
#              0.5B with the attention that is not their default (9)
#   RESULTS.json   default bench/results/<device>-<date>-CALL.json, or in $OUT; the log goes beside it
#
# SECTIONS   instead of CALL: some of kernels-test profile kernels train-7b train-7b-micro2 train-fp8
#            train-1b train-0.5b train-7b-wgmma train-0.5b-cudnn start goldens losses bits sanitizer;
#            their time is SECONDS_IN_ALL (560)
# PYTHON     a python3, for PyTorch one that has it (python3)
#
# Every section has a time of its own, and whatever it started ends with it; one that fails or hangs is
# recorded, and the next one runs. The results are written anew after each, and after each run within
# one, and the log as its lines come, so that a machine which goes away takes only what was running. A
# signal (SIGTERM, SIGINT, SIGHUP) ends all that was started and marks the section that it came in;
# after SIGKILL it ends as well, and the results stay as they were. The kernels' tests have a process a
# suite; when all had theirs, a suite that failed runs again with the plainest attention, without tuned
# products, without CUDA graphs, without early starts, waiting for each kernel, and under memcheck.
# Attention's tests run twice more, with SKEIN_ATTENTION=cudnn and with plain.
# Exit code 0: every test passed; 1: one failed, was not there or did not come to its end; 2: no such
# section; 77: there is no GPU; 128 + N: signal N came. A figure that misses its target is shown, and fails nothing.
#
# SKEIN_GPU_CHECK_DRY=1 tries this script out on the CUDA emulation of the tests, with tiny sizes; then
# measurements must pass as well.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd) || exit 1
all_sections='kernels-test profile kernels train-7b train-7b-micro2 train-fp8 train-1b train-0.5b start'
all_sections+=' train-7b-wgmma train-0.5b-cudnn'
all_sections+=' goldens losses bits sanitizer'
arguments=("$@")
call=${SECTIONS:+by-hand}
[ -n "$call" ] || { call=${1:-}; shift; }
# What the sections of a call may take adds up to less than its time.
case $call in
  A) SECTIONS='kernels-test profile' SECONDS_IN_ALL=${SECONDS_IN_ALL:-540} ;;
  B) SECTIONS='kernels train-7b train-7b-micro2' SECONDS_IN_ALL=${SECONDS_IN_ALL:-540} ;;
  C) SECTIONS='goldens losses bits train-fp8 train-0.5b' SECONDS_IN_ALL=${SECONDS_IN_ALL:-540} ;;
  D) SECTIONS='sanitizer train-1b start train-7b-wgmma train-0.5b-cudnn' SECONDS_IN_ALL=${SECONDS_IN_ALL:-540} ;;
  by-hand) ;;
  *) echo "gpu_check: ${call:-no call}: expected A, B, C or D, or SECTIONS" >&2; exit 2 ;;
esac
results=${1:-}
[ -z "$results" ] || results=$(realpath -m "$results")
[ -z "${OUT:-}" ] || OUT=$(realpath -m "$OUT")
for section in $SECTIONS; do
  [[ " $all_sections " == *" $section "* ]] ||
    { echo "gpu_check: no section $section: expected some of $all_sections" >&2; exit 2; }
done

dry=${SKEIN_GPU_CHECK_DRY:-}
if [ -z "$dry" ] && ! compgen -G '/dev/nvidia[0-9]*' > /dev/null && ! nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
  echo "gpu_check: there is no NVIDIA GPU here; nothing was checked" >&2
  exit 77
fi

PYTHON=${PYTHON:-python3}
command -v "$PYTHON" > /dev/null || { echo "gpu_check: $PYTHON is not there: set PYTHON" >&2; exit 1; }

# A bundle unpacks itself, and runs what it holds.
if [ -f "$here/skein-gpu.tar.xz" ]; then
  unpacked=$(mktemp -d)
  trap 'rm -rf "$unpacked"' EXIT
  "$PYTHON" -W ignore -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' \
    "$here/skein-gpu.tar.xz" "$unpacked" || exit 1
  # In place of this process, so that a signal reaches what works; that removes the folder at its end.
  [ "$call" = by-hand ] || export -n SECTIONS
  export OUT=${OUT:-$here/results} SKEIN_GPU_CHECK_UNPACKED=$unpacked
  exec "$unpacked/scripts/gpu_check.sh" "${arguments[@]}"
fi
cd "$here/.." || exit 1
root=$PWD began=$(date +%s) work=$(mktemp -d) || exit 1
clean_up() {
  rm -rf "$work"
  [ -z "$results" ] || rm -f "$results".*.new
  [ -z "${SKEIN_GPU_CHECK_UNPACKED:-}" ] || ! [ "$SKEIN_GPU_CHECK_UNPACKED" -ef "$root" ] || rm -rf "$root"
}
trap clean_up EXIT

deadline=$((SECONDS + ${SECONDS_IN_ALL:-560}))
if [ -f GLIBC ]; then
  needed=$(cat GLIBC) found=$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)
  if [ "$(printf '%s\n' "$needed" "$found" | sort -V | head -n 1)" != "$needed" ]; then
    echo "gpu_check: this bundle needs glibc $needed or later, and here is $found" >&2
    exit 1
  fi
fi

# ---- the programs ----
skein=build/skein kernels_test=build/skein_cuda_test goldens_test=build/decoder_goldens_test
train_bench=build/train_bench kernel_bench=build/kernel_bench bits_test=build/bit_identity_test
# ask_gpu FIELDS: of the first GPU; nvidia-smi does not come back where the driver hangs.
ask_gpu() { timeout 20 nvidia-smi "--query-gpu=$1" --format=csv,noheader 2>/dev/null | head -n 1; }
device=$(ask_gpu name)
sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer) no_sanitizer='compute-sanitizer is not there'
bench_options=() fp32_steps=20 sr_steps=200
test_filter='*' attention_filter='*Attention*' goldens_filter='*'
tests_seconds=150 suite_seconds=20 again_seconds=150 memcheck_seconds=40 run_seconds=150
# Beside the default, which takes our kernels for Hopper in the tests, and cuDNN in the bench.
tested_ways='cudnn plain' measured_ways='wgmma plain'
[ -n "$dry" ] || ask_gpu compute_cap | grep -q '^9\.0' ||
  tested_ways=plain measured_ways=plain
bits_filter='*/fp32:*/bf16_sr:*/larger_bf16_sr:Interrupted.SignalsSaveAndExitWith75'
# compute-sanitizer slows a kernel down some hundred times: what reduces, scatters and shares memory.
racecheck_filter='RmsNorm.MeetsItsReference:SoftmaxCrossEntropy.MeetsItsReference:SumSquares.AddsUpAllSquares'
racecheck_filter+=':AddToSum.MeetsItsReference:Attention.SharesKeyValueHeads:Embedding.MeetsItsReference'
racecheck_filter+=:LayerNorm.AddsTheGradientOfTheSum:Orthogonalize.MeetsItsReference
memcheck_filter=$racecheck_filter:Add.MeetsItsReference:Swiglu.MeetsItsReference:Rope.MatchesTheDefinition
memcheck_filter+=:MuonMomentum.MeetsItsReference:MuonApply.MeetsItsReference
memcheck_filter+=:Gelu.MeetsItsReference:Geglu.MeetsItsReference
memcheck_filter+=:Adamw.MeetsItsReference:Linear.StoresF32WhenAsked:Zigzag.MeetsItsReference
if [ -n "$dry" ]; then
  skein=build/skein_on_emulated_cuda kernels_test=${KERNELS_TEST:-build/skein_cuda_emulated_test}
  goldens_test=build/decoder_goldens_on_emulated_cuda_test
  train_bench=${TRAIN_BENCH:-build/train_bench_on_emulated_cuda}
  kernel_bench=${KERNEL_BENCH:-build/kernel_bench_on_emulated_cuda}
  device='emulated CUDA' bench_options=(--small --seconds 0.001) fp32_steps=3 sr_steps=3
  tests_seconds=${TESTS_SECONDS:-150} suite_seconds=${TESTS_SECONDS:-20} again_seconds=${AGAIN_SECONDS:-150}
  run_seconds=${RUN_SECONDS:-150} sanitizer=${COMPUTE_SANITIZER:-} no_sanitizer='the emulation has nothing for it'
  test_filter='Add.*:CudaDevice.*' attention_filter='Attention.ManyDocumentsInARow'
  goldens_filter='*LogProbabilities/llama_multi_head' bits_filter='*SeedsMatter'
fi
device=${device:-unknown GPU}
name=$(tr '[:upper:] ' '[:lower:]-' <<< "$device" | tr -cd 'a-z0-9-')-$(date -u +%Y-%m-%d)-$call
results=${results:-${OUT:-bench/results}/$name.json}
mkdir -p "$(dirname "$results")" || exit 1
log=${results%.json}.log
: > "$log" || exit 1
export SKEIN_CACHE=$work/cache  # so that a first start is one

# Of our programs only: a python brings its own.
libraries=$root/build/lib
cuda_libraries=$("$PYTHON" - 2>> "$log" <<'FOLDERS'
import glob
import os
import sys

# What the wheels of PyTorch bring, so that both use the same; then the toolkit's.
patterns = [os.path.join(path, "nvidia", "*", "lib") for path in sys.path if path]
patterns += ["/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64"]
print(":".join(folder for pattern in patterns for folder in sorted(glob.glob(pattern))))
FOLDERS
)
[ -n "$dry" ] || libraries+=:$cuda_libraries
libraries+=${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
mkdir -p "$work/bin"
absolute() { if [[ $1 == /* ]]; then echo "$1"; else echo "$root/$1"; fi; }
# wrap PROGRAM: the name of a command that is PROGRAM with its libraries.
wrap() {
  local command=$work/bin/${1##*/}
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "$libraries" "$(absolute "$1")" > "$command"
  chmod +x "$command"
  echo "$command"
}
# For the programs of sections that run several times.
after_run=$work/bin/after_run
printf '#!/bin/sh\nexec %q scripts/gpu_results.py > /dev/null\n' "$PYTHON" > "$after_run"
chmod +x "$after_run"

# ---- sections ----
say() { echo "$*" | tee -a "$log" >&2; }
# rewrite: the results, as they stand. Exit code 1: a test did not pass; 2: they could not be written.
rewrite() {
  local code
  running='' "$PYTHON" scripts/gpu_results.py > "$work/table" 2> "$work/error"
  code=$?
  if ((code > 1)); then
    cat "$work/error" >> "$log"
    say "gpu_check: $results was not written: $(tail -n 1 "$work/error")"
  fi
  return $code
}
# record KIND NAME STATUS SECONDS NOTE; KIND: test, or measurement, or again
record() {
  printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "${5//[$'\t\n']/ }" >> "$work/records"
  kind=test what="after $2"
  rewrite
  say "  $2: $3$([ -z "$4" ] || echo ", $4 s")${5:+: $5}"
}
wanted() { [[ " $SECTIONS " == *" $1 "* ]]; }
is_there() {  # is_there KIND NAME PROGRAM: or it is recorded that it is not
  [ -x "$3" ] && return
  record "$1" "$2" 'not there' '' "$3"
  return 1
}
last_line() { grep -v '^ *$' "$work/output" | tail -n 1; }
# within SECONDS COMMAND…: its time, and its end with ours. In the background, since bash heeds a signal
# only in `wait`, and in a session of its own, where it outlives what kills our group and ends the rest.
within() {
  setsid "$PYTHON" scripts/within.py --parent $$ "$@" &
  wait $!
}
# What the command under way, or that has just ended, wrote to the log; its figures, if they go by $figures.
collect() {
  tail -c "+$begins" "$log" > "$work/output"
  [ -z "${figures:-}" ] || grep '^{' "$work/output" > "$work/$figures"
}
# run KIND NAME SECONDS COMMAND…: within its time; output goes to the log as it comes, and is in
# $work/output then. No pipe: a child that is left behind would keep it open.
run() {
  local limit=$3 left=$((deadline - SECONDS)) code signal note=''
  kind=$1 what=$2 start=$SECONDS
  shift 3
  ((left > 10)) || { record "$kind" "$what" 'no time' '' "nothing is left of SECONDS_IN_ALL"; return 1; }
  ((limit < left)) || limit=$left
  echo "== $what: $*" >> "$log"
  begins=$(($(wc -c < "$log") + 1))
  running_kind=$kind running=$what within "$limit" "$@" >> "$log" 2>&1
  code=$?
  collect
  if grep -q 'Device not supported' "$work/output"; then  # compute-sanitizer, in some virtual machines
    record "$kind" "$what" skipped '' "$(grep -m 1 'Device not supported' "$work/output")"
  elif ((code == 0)); then
    record "$kind" "$what" passed $((SECONDS - start)) ''
  elif ((code == 2)) && [ "$kind" = measurement ]; then
    record "$kind" "$what" 'not there' '' "$(last_line)"
  elif ((code == 124)); then
    record "$kind" "$what" timeout $((SECONDS - start)) "not done after $limit s"
  else
    note=$(sed -n 's/^\[  FAILED  \] \([^ ,]*\).*/\1/p' "$work/output" | sort -u | head -n 5)
    note=${note:-$(last_line)}
    ((code <= 128)) || ! signal=$(kill -l "$code" 2>/dev/null) || note="ended by SIG$signal${note:+: $note}"
    record "$kind" "$what" failed $((SECONDS - start)) "$note"
  fi
  return $code
}
finish() {
  local code
  complete=${1:-} rewrite
  code=$?
  tee -a "$log" < "$work/table"
  echo "gpu_check: $results" >&2
  return $((code > 0))
}
kind=test what='before the first section' start=$SECONDS begins=1
# stop SIGNAL: who sends it may kill soon after, so the results are written before the ends of what runs,
# and once more then, since a run may have written them meanwhile.
stop() {
  local children
  trap '' TERM INT HUP
  children=$(jobs -p)
  # shellcheck disable=SC2086  # one word each
  [ -z "$children" ] || kill -TERM $children 2>/dev/null
  collect
  record "$kind" "$what" interrupted $((SECONDS - start)) "by SIG$1"
  wait
  finish
  exit $((128 + $(kill -l "$1")))
}

export results device work began
for signal in TERM INT HUP; do
  # shellcheck disable=SC2064  # the signal of now
  trap "stop $signal" "$signal"
done
. scripts/gpu_sections.sh

driver=$(ask_gpu driver_version)
say "device     $device, driver $driver"
say "toolkit    $(nvcc --version 2>/dev/null | sed -n 's/.*release \([^,]*\),.*/\1/p')"
say "libraries  ${cuda_libraries:-none found; cuBLASLt and cuDNN must be where the loader looks by itself}"
say "results    $results"
{ timeout 20 nvidia-smi; uname -a; free -g; nproc; } >> "$log" 2>&1

# ---- what is known of the machine ----
commit=$(cat COMMIT 2>/dev/null || git describe --always --dirty --exclude='*' --abbrev=40 2>/dev/null)
cuda=$(timeout 20 nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: \([0-9.]*\).*/\1/p')
gpu=$(ask_gpu name,memory.total,clocks.max.sm,clocks.max.mem,power.limit)
# Of a disk that has not read it yet, PyTorch takes its time.
within 60 "$PYTHON" -c 'import torch; print(torch.__version__, torch.backends.cudnn.version())' \
  > "$work/torch" 2>/dev/null
read -r torch cudnn < "$work/torch"
export commit driver cuda torch cudnn gpu
# The clocks, power, temperature and what slows them, to the log.
log_state() {
  timeout 20 nvidia-smi -q -d CLOCK,POWER,TEMPERATURE,PERFORMANCE,ECC >> "$log" 2>&1 || true
}

log_state
! wanted kernels-test || check_kernels
! wanted profile || profile
! wanted goldens || check_goldens
! wanted losses || check_losses
! wanted kernels || measure_kernels
! wanted train-7b || train train-7b 7b 210
! wanted train-7b-micro2 || train train-7b-micro2 7b 205 MICRO=2 SEQUENCES=16 ROUNDS=1
! wanted train-fp8 || measure_fp8
! wanted train-1b || train train-1b 1b 110 ROUNDS=1
! wanted train-7b-wgmma || train train-7b-wgmma 7b 40 MODES= ROUNDS=1 SKEIN_ATTENTION=wgmma
! wanted train-0.5b-cudnn || train train-0.5b-cudnn 0.5b 40 MODES= ROUNDS=1 SKEIN_ATTENTION=cudnn
! wanted start || measure_start
! wanted train-0.5b || train train-0.5b 0.5b 90 ROUNDS=1
! wanted bits || check_bits
! wanted sanitizer || check_sanitizer
log_state

finish complete
