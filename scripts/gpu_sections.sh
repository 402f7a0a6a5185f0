#!/usr/bin/env bash
# What each section of scripts/gpu_check.sh runs, which reads this file and brings all that it uses.
# shellcheck disable=SC2154  # for that reason

tests_of() {  # tests_of SUITE: as a filter
  awk -v suite="$1." '/^[^ ]/ { found = $1 == suite; next } found { printf "%s%s:", suite, $1 }' "$work/tests"
}

# again NAME SECONDS COMMAND…: as long as there is time of the one that all of them share.
again() {
  local name="kernels-test $1" limit=$2 left=$((again_until - SECONDS))
  shift 2
  ((left > 0)) || { record again "$name" 'no time' '' "nothing is left of $again_seconds s for failed suites"; return; }
  run again "$name" $((limit < left ? limit : left)) "$@"
}

# sanitize TOOL: sets $sanitize to the words that run the kernels' tests under it.
sanitize() {
  sanitize=(env "LD_LIBRARY_PATH=$libraries" "$sanitizer" --tool "$1" --error-exitcode 9)
  [ "$1" != memcheck ] || sanitize+=(--report-api-errors no)  # our own probing of the GPU makes calls that fail
  sanitize+=("$(absolute "$kernels_test")" --gtest_brief=1)
}

# What failed or hung, in other ways, each of which leaves one thing out; then under memcheck.
run_again() {  # run_again PROGRAM SUITE…
  local program=$1 suite variable again_until=$((SECONDS + again_seconds))
  shift
  for suite in "$@"; do
    for variable in SKEIN_ATTENTION=plain SKEIN_TUNE=off SKEIN_GRAPHS=off SKEIN_EARLY_STARTS=off \
      CUDA_LAUNCH_BLOCKING=1; do
      again "$suite, $variable" "$suite_seconds" env "$variable" "$program" \
        "--gtest_filter=$(tests_of "$suite")" --gtest_brief=1
    done
  done
  sanitize memcheck
  for suite in "$@"; do
    [ -n "$sanitizer" ] || { record again "kernels-test $suite, memcheck" skipped '' "$no_sanitizer"; continue; }
    again "$suite, memcheck" "$memcheck_seconds" "${sanitize[@]}" "--gtest_filter=$(tests_of "$suite")"
  done
}

# After an illegal access no call of a process succeeds, so each suite has its own.
check_kernels() {
  is_there test kernels-test "$kernels_test" || return
  local program suite limit until=$((SECONDS + tests_seconds)) failed=()
  program=$(wrap "$kernels_test")
  within 20 "$program" --gtest_list_tests --gtest_filter="$test_filter" > "$work/tests" 2>> "$log"
  local suites
  mapfile -t suites < <(sed -n 's/^\([^ ]*\)\.\( .*\)\?$/\1/p' "$work/tests")
  ((${#suites[@]} > 0)) || { record test kernels-test failed '' "$kernels_test lists no tests"; return; }
  for suite in "${suites[@]}"; do
    limit=$((until - SECONDS))
    run test "kernels-test $suite" $((limit > suite_seconds ? limit : suite_seconds)) "$program" \
      "--gtest_filter=$(tests_of "$suite")" --gtest_brief=1 || failed+=("$suite")
  done
  local way
  for way in $tested_ways; do
    run test "kernels-test Attention, SKEIN_ATTENTION=$way" 40 env SKEIN_ATTENTION=$way "$program" \
      --gtest_filter="$attention_filter" --gtest_brief=1
  done
  run_again "$program" "${failed[@]}"
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
  local sanitize one left until
  [ -n "$sanitizer" ] || { record test sanitizer skipped '' "$no_sanitizer"; return; }
  is_there test sanitizer "$kernels_test" || return
  sanitize memcheck
  run test memcheck 90 "${sanitize[@]}" --gtest_filter="$memcheck_filter"
  # Each by itself, the slowest at last: it takes no other's result along.
  sanitize racecheck
  until=$((SECONDS + 90))
  for one in ${racecheck_filter//:/ }; do
    left=$((until - SECONDS))
    run test "racecheck $one" $((left > 10 ? left : 10)) "${sanitize[@]}" --gtest_filter="$one"
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
  figures=kernels run measurement kernels 80 "$(wrap "$kernel_bench")" --device cuda "${bench_options[@]}"
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
  [ -z "$dry" ] || size=tiny limit=${TRAIN_SECONDS:-$limit}
  run measurement "$section" "$limit" env "SKEIN=$(wrap "$train_bench")" "RUNS=$work/runs" "AFTER_RUN=$after_run" \
    "LIMIT=$run_seconds" "$@" ${dry:+"MODES=${MODES:-}" SEQUENCES=2} bench/compare_torch_gpu.sh "$size"
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
  local config=configs/llama2-7b-h200.toml options=() memory_mib
  memory_mib=$(ask_gpu memory.total) memory_mib=${memory_mib%% *}
  if [ -n "$dry" ]; then
    config=$work/start.toml
    write_job > "$config"
    options=(--set run.steps=5)
  elif [[ $memory_mib =~ ^[0-9]+$ ]] && ((memory_mib < 120000)); then
    options=(--set precision.moments=bf16 --set memory.recompute=selective --set batch.micro_sequences=1)
  fi
  run measurement start 120 env "STARTS=$work/starts" "AFTER_RUN=$after_run" "$PYTHON" scripts/gpu_start.py \
    "$(wrap "$skein")" "$work/start" "$config" --set device.kind=cuda "${options[@]}"
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
