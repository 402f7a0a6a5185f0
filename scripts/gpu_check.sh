#!/usr/bin/env bash
# Everything that only a GPU can show, in calls of under 10 minutes each: tests, compute-sanitizer, rates
# of kernels, losses beside the CPU's, training speed beside PyTorch's. docs/gpu.md says how to read it.
#
#   scripts/gpu_check.sh CALL [RESULTS.json]      in a checkout that is built
#   gpu_check.sh CALL [RESULTS.json]              in a folder that scripts/gpu_bundle.sh made
#
#   CALL   A   what is there, the kernels' tests, profiles of steps: the first thing to run (6 minutes)
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
# recorded, and the next one runs. The results are written anew after each, so that a machine which goes
# away takes only what was running. The kernels' tests have a process a suite; a suite that fails runs
# again with the plainest attention, without tuned products, without CUDA graphs, and without early starts.
# Attention's tests run twice more, with SKEIN_ATTENTION=cudnn and with plain.
# Exit code 0: every test passed; 1: one failed, was not there or did not come to its end; 2: no such
# section; 77: there is no GPU. A figure that misses its target is shown, and fails nothing.
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
  A) SECTIONS='kernels-test profile' SECONDS_IN_ALL=${SECONDS_IN_ALL:-380} ;;
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
  OUT=${OUT:-$here/results} "$unpacked/scripts/gpu_check.sh" "${arguments[@]}"
  exit
fi
cd "$here/.." || exit 1
root=$PWD

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
device=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)
bench_options=() fp32_steps=20 sr_steps=200
test_filter='*' attention_filter='*Attention*' tests_seconds=150 suite_seconds=20
goldens_filter='*'
# Beside the default, which takes our kernels for Hopper in the tests, and cuDNN in the bench.
tested_ways='cudnn plain' measured_ways='wgmma plain'
[ -n "$dry" ] || nvidia-smi --query-gpu=compute_cap --format=csv,noheader | grep -q '^9\.0' ||
  tested_ways=plain measured_ways=plain
bits_filter='*/fp32:*/bf16_sr:*/larger_bf16_sr:Interrupted.SignalsSaveAndExitWith75'
# compute-sanitizer slows a kernel down some hundred times: what reduces, scatters and shares memory.
racecheck_filter='RmsNorm.MeetsItsReference:SoftmaxCrossEntropy.MeetsItsReference:SumSquares.AddsUpAllSquares'
racecheck_filter+=':AddToSum.MeetsItsReference:Attention.SharesKeyValueHeads:Embedding.MeetsItsReference'
memcheck_filter=$racecheck_filter:Add.MeetsItsReference:Swiglu.MeetsItsReference:Rope.MatchesTheDefinition
memcheck_filter+=:Adamw.MeetsItsReference:Linear.StoresF32WhenAsked:Zigzag.MeetsItsReference
if [ -n "$dry" ]; then
  skein=build/skein_on_emulated_cuda kernels_test=${KERNELS_TEST:-build/skein_cuda_emulated_test}
  goldens_test=build/decoder_goldens_on_emulated_cuda_test
  train_bench=${TRAIN_BENCH:-build/train_bench_on_emulated_cuda}
  kernel_bench=${KERNEL_BENCH:-build/kernel_bench_on_emulated_cuda}
  device='emulated CUDA' bench_options=(--small --seconds 0.001) fp32_steps=3 sr_steps=3
  tests_seconds=${TESTS_SECONDS:-150} suite_seconds=${TESTS_SECONDS:-20}
  test_filter='Add.*:CudaDevice.*' attention_filter='Attention.ManyDocumentsInARow'
  goldens_filter='*LogProbabilities/llama_multi_head' bits_filter='*SeedsMatter'
fi
device=${device:-unknown GPU}
name=$(tr '[:upper:] ' '[:lower:]-' <<< "$device" | tr -cd 'a-z0-9-')-$(date -u +%Y-%m-%d)-$call
results=${results:-${OUT:-bench/results}/$name.json}
mkdir -p "$(dirname "$results")" || exit 1
log=${results%.json}.log
: > "$log" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
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
# wrap PROGRAM: the name of a command that is PROGRAM with its libraries.
wrap() {
  local program=$root/$1 command=$work/bin/${1##*/}
  [[ $1 != /* ]] || program=$1
  mkdir -p "$work/bin"
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "$libraries" "$program" > "$command"
  chmod +x "$command"
  echo "$command"
}

# ---- sections ----
say() { echo "$*" | tee -a "$log" >&2; }
# record KIND NAME STATUS SECONDS NOTE; KIND: test, or measurement
record() {
  printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "${5//[$'\t\n']/ }" >> "$work/records"
  seconds=$SECONDS "$PYTHON" scripts/gpu_results.py > "$work/table" 2>> "$log"
  say "  $2: $3$([ -z "$4" ] || echo ", $4 s")${5:+: $5}"
}
wanted() { [[ " $SECTIONS " == *" $1 "* ]]; }
is_there() {  # is_there KIND NAME PROGRAM: or it is recorded that it is not
  [ -x "$3" ] && return
  record "$1" "$2" 'not there' '' "$3"
  return 1
}
last_line() { grep -v '^ *$' "$work/output" | tail -n 1; }
# run KIND NAME SECONDS COMMAND…: within its time; output goes to the log, and is in $work/output.
run() {
  local kind=$1 what=$2 limit=$3 left=$((deadline - SECONDS)) start=$SECONDS code note=''
  shift 3
  ((left > 10)) || { record "$kind" "$what" 'no time' '' "nothing is left of SECONDS_IN_ALL"; return 1; }
  ((limit < left)) || limit=$left
  echo "== $what: $*" >> "$log"
  "$PYTHON" scripts/within.py "$limit" "$@" > "$work/output" 2>&1
  code=$?
  cat "$work/output" >> "$log"
  if grep -q 'Device not supported' "$work/output"; then  # compute-sanitizer, in some virtual machines
    record "$kind" "$what" skipped '' "$(grep -m 1 'Device not supported' "$work/output")"
  elif ((code == 0)); then
    record "$kind" "$what" passed $((SECONDS - start)) ''
  elif ((code == 2)) && [ "$kind" = measurement ]; then
    record "$kind" "$what" 'not there' '' "$(last_line)"
  elif ((code == 124 || code == 137)); then
    record "$kind" "$what" timeout $((SECONDS - start)) "not done after $limit s"
  else
    note=$(sed -n 's/^\[  FAILED  \] \([^ ,]*\).*/\1/p' "$work/output" | sort -u | head -n 5)
    record "$kind" "$what" failed $((SECONDS - start)) "${note:-$(last_line)}"
  fi
  return $code
}

say "device     $device, driver $(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)"
say "toolkit    $(nvcc --version 2>/dev/null | sed -n 's/.*release \([^,]*\),.*/\1/p')"
say "libraries  ${cuda_libraries:-none found; cuBLASLt and cuDNN must be where the loader looks by itself}"
say "results    $results"
{ nvidia-smi; uname -a; free -g; nproc; } >> "$log" 2>&1

# After an illegal access no call of a process succeeds, so each suite has its own.
check_kernels() {
  is_there test kernels-test "$kernels_test" || return
  local program suite tests limit until=$((SECONDS + tests_seconds)) variable
  program=$(wrap "$kernels_test")
  "$program" --gtest_list_tests --gtest_filter="$test_filter" > "$work/tests" 2>> "$log"
  local suites
  mapfile -t suites < <(sed -n 's/^\([^ ]*\)\.\( .*\)\?$/\1/p' "$work/tests")
  ((${#suites[@]} > 0)) || { record test kernels-test failed '' "$kernels_test lists no tests"; return; }
  for suite in "${suites[@]}"; do
    tests=$(awk -v suite="$suite." '/^[^ ]/ { found = $1 == suite; next } found { printf "%s%s:", suite, $1 }' \
      "$work/tests")
    limit=$((until - SECONDS))
    run test "kernels-test $suite" $((limit > suite_seconds ? limit : suite_seconds)) \
      "$program" --gtest_filter="$tests" --gtest_brief=1 && continue
    for variable in SKEIN_ATTENTION=plain SKEIN_TUNE=off SKEIN_GRAPHS=off SKEIN_EARLY_STARTS=off; do
      run again "kernels-test $suite, $variable" "$suite_seconds" env "$variable" "$program" --gtest_filter="$tests" \
        --gtest_brief=1
    done
  done
  local way
  for way in $tested_ways; do
    run test "kernels-test Attention, SKEIN_ATTENTION=$way" 40 env SKEIN_ATTENTION=$way "$program" \
      --gtest_filter="$attention_filter" --gtest_brief=1
  done
}

check_goldens() {
  is_there test goldens "$goldens_test" || return
  run test goldens 80 env SKEIN_TEST_DEVICE=cuda "SKEIN_TEST_GOLDENS=$root/tests/goldens" \
    "$(wrap "$goldens_test")" --gtest_filter="$goldens_filter"
}

check_bits() {
  is_there test bits "$bits_test" && is_there test bits "$skein" || return
  run test bits 120 env "SKEIN_TEST_PROGRAM=$(wrap "$skein")" "$(wrap "$bits_test")" \
    --gtest_filter="$bits_filter" --gtest_brief=1
}

check_sanitizer() {
  local sanitizer
  [ -z "$dry" ] || { record test sanitizer skipped '' "the emulation has nothing for it"; return; }
  is_there test sanitizer "$kernels_test" || return
  sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer) ||
    { record test sanitizer skipped '' "compute-sanitizer is not there"; return; }
  # Our own probing of the GPU makes calls that fail.
  run test memcheck 90 env "LD_LIBRARY_PATH=$libraries" "$sanitizer" --tool memcheck --report-api-errors no \
    --error-exitcode 9 "$root/$kernels_test" --gtest_filter="$memcheck_filter" --gtest_brief=1
  # Each by itself, the slowest at last: it takes no other's result along.
  local one left until=$((SECONDS + 90))
  for one in ${racecheck_filter//:/ }; do
    left=$((until - SECONDS))
    run test "racecheck $one" $((left > 10 ? left : 10)) env "LD_LIBRARY_PATH=$libraries" "$sanitizer" \
      --tool racecheck --error-exitcode 9 "$root/$kernels_test" --gtest_filter="$one" --gtest_brief=1
  done
}

# The job of tests/testing.h: words of a made-up language, a model of 100 thousand parameters.
write_job() {
  cat <<'JOB'
[model]
hidden_size = 64
intermediate_size = 176
num_hidden_layers = 2
num_attention_heads = 4
num_key_value_heads = 2
max_position_embeddings = 256
[data]
train = "corpus.arrow"
tokenizer = "tokenizer"
sequence_length = 64
[batch]
global_sequences = 4
micro_sequences = 2
[optimizer]
learning_rate = 1e-3
warmup_steps = 4
decay_steps = 1000
[checkpoint]
every_steps = 0
[log]
tensorboard = false
JOB
}
make_job() {
  mkdir -p "$work/job" && cd "$work/job" || return 1
  "$PYTHON" - > documents.jsonl <<'DOCUMENTS' || return 1
import json
import random

draw = random.Random(1)
words = ["".join(draw.choices("etaoinshrdlucm", k=draw.randint(2, 8))) for _ in range(400)]
for _ in range(600):
    print(json.dumps({"text": " ".join(draw.choices(words, k=draw.randint(5, 300)))}))
DOCUMENTS
  "$1" data ingest --out corpus.arrow documents.jsonl || return 1
  "$1" data tokenizer --vocab-size 320 --out tokenizer corpus.arrow || return 1
  write_job > job.toml
}
# train_both SKEIN MODE STEPS
train_both() {
  local kind
  for kind in cpu cuda; do
    (cd "$work/job" && "$1" train job.toml --set "device.kind=$kind" --set "precision.mode=$2" \
      --set "run.steps=$3" --set "run.dir=$2-$kind") || return 1
  done
}
export -f write_job make_job train_both
export work PYTHON

check_losses() {
  is_there test losses "$skein" || return
  local command
  command=$(wrap "$skein")
  run test losses-job 30 bash -c 'make_job "$0"' "$command" || return
  run test losses-fp32 60 bash -c 'train_both "$0" fp32 "$1"' "$command" $fp32_steps
  run test losses-bf16-sr 90 bash -c 'train_both "$0" bf16-sr "$1"' "$command" $sr_steps
}

measure_kernels() {
  is_there measurement kernels "$kernel_bench" || return
  run measurement kernels 80 "$(wrap "$kernel_bench")" --device cuda "${bench_options[@]}"
  grep '^{' "$work/output" > "$work/kernels"
  # To the log, beside the rows of the default.
  local way
  for way in $measured_ways; do
    run measurement "kernels-$way" 15 env SKEIN_ATTENTION=$way "$(wrap "$kernel_bench")" --device cuda \
      --filter attention "${bench_options[@]}"
  done
}

# train SECTION SIZE SECONDS [VARIABLE=VALUE…]: a size beside PyTorch; the emulation has a tiny one.
train() {
  local section=$1 size=$2 limit=$3
  shift 3
  is_there measurement "$section" "$train_bench" || return
  [ -z "$dry" ] || size=tiny
  run measurement "$section" "$limit" env "SKEIN=$(wrap "$train_bench")" "RUNS=$work/runs" LIMIT=150 \
    "$@" ${dry:+MODES= SEQUENCES=2} bench/compare_torch_gpu.sh "$size"
}

# Beside bf16-sr on the same card, which is what its target is a ratio to.
measure_fp8() {
  local precision
  for precision in bf16-sr fp8; do
    train "train-$precision" 7b 35 MODES= ROUNDS=1 "PRECISION=$precision"
  done
}

# `skein train` itself, until its first step has ended, twice.
measure_start() {
  is_there measurement start "$skein" || return
  local config=configs/llama2-7b-h200.toml options=()
  if [ -n "$dry" ]; then
    config=$work/start.toml
    write_job > "$config"
    options=(--set run.steps=5)
  elif (($(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits | head -n 1) < 120000)); then
    options=(--set precision.moments=bf16 --set memory.recompute=selective --set batch.micro_sequences=1)
  fi
  run measurement start 120 "$PYTHON" scripts/gpu_start.py "$(wrap "$skein")" "$work/start" "$config" \
    --set device.kind=cuda "${options[@]}"
  grep '^{' "$work/output" > "$work/starts"
}

# Where the time of a step goes, op by op: to the log.
profile() {
  local size
  is_there measurement profile "$train_bench" || return
  for size in 0.5b 7b; do
    [ -z "$dry" ] || size=tiny
    run measurement "profile-$size" 70 "$(wrap "$train_bench")" --device cuda --size "$size" --sequences 2 \
      --steps 4 --profile
  done
}

# ---- what is known of the machine ----
export results device work
commit=$(cat COMMIT 2>/dev/null || git describe --always --dirty --abbrev=40 2>/dev/null)
driver=$(nvidia-smi 2>/dev/null | sed -n 's/.*Driver Version: \([0-9.]*\).*/\1/p')
cuda=$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: \([0-9.]*\).*/\1/p')
torch=$("$PYTHON" -c 'import torch; print(torch.__version__)' 2>/dev/null)
cudnn=$("$PYTHON" -c 'import torch; print(torch.backends.cudnn.version())' 2>/dev/null)
gpu=$(nvidia-smi --query-gpu=name,memory.total,clocks.max.sm,clocks.max.mem,power.limit --format=csv,noheader 2>/dev/null | head -n 1)
export commit driver cuda torch cudnn gpu
# The clocks, power, temperature and what slows them, to the log.
log_state() {
  nvidia-smi -q -d CLOCK,POWER,TEMPERATURE,PERFORMANCE,ECC >> "$log" 2>&1 || true
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

# ---- what came out ----
seconds=$SECONDS "$PYTHON" scripts/gpu_results.py | tee -a "$log"
code=${PIPESTATUS[0]}
echo "gpu_check: $results" >&2
exit "$code"
