#!/usr/bin/env bash
# Checks what a file of skein/ may include and call. One line a violation; exit code 1 if any.
#
#   scripts/check_includes.sh [ROOT]      ROOT: a folder that holds skein/; this repository
#
#   1. rooms      a room includes itself and the rooms below it, transitively ("rooms" in the script);
#                 so does a room inside a room ("inner" in the script; "." is what lies at its top)
#   2. backends   runtime/<kind>/ is included only by itself and by backends/backend_<kind>.cc
#   3. CUDA       its headers only in *_cuda.{cu,cc,h}, runtime/cuda/ and comm/nccl/
#   4. exits      exit, _exit, abort, terminate: only in cli/
#   5. headers    begin with a comment that says what they are, then #pragma once
#                 (*-inl.h, which are included several times, have no #pragma once)
#   6. names      no two headers have one name, nor define types of one name in one namespace: the
#                 linker would take one type's functions for the other's, without a word
#   7. tests      gtest and what tests share (tests/) are included by tests alone
#   8. folders    hold at most 30 files, tests not counted
#
# Tests (*_test.cc, *_fuzz.cc) are free of 1, 2 and 4.
set -euo pipefail
cd "${1:-"$(dirname "$0")/.."}"

mapfile -t files < <(find skein -type f \( -name '*.h' -o -name '*.cc' -o -name '*.cu' \) | sort)
((${#files[@]})) || { echo "check_includes: no sources in $PWD/skein" >&2; exit 1; }

awk '
BEGIN {
  # Who may include whom; what follows from it transitively is allowed too.
  rooms = "cli: launch train serve health prepare embed;  serve: infer;  health: launch train;  train: plan evaluate;" \
          "plan: evaluate record replica supervise;  infer: evaluate;  evaluate: compile chat;  embed: compile;" \
          "compile: weights passes backends;  backends: ops runtime;  weights: config runtime;  record: config runtime;" \
          "config: model optim data checkpoint;" \
          "passes: schedule ops;  model: ops;  optim: ops;  schedule: ir comm;  ops: stablehlo comm;  stablehlo: ir;" \
          "launch: record supervise replica;  replica: checkpoint;  supervise: store;  runtime: stablehlo comm;" \
          "ir: tensor;  comm: tensor store;  prepare: chat;  chat: data jinja;  objects: base;  data: tensor bpe objects;  checkpoint: tensor objects;  tensor: base;  store: base;  bpe: base;  jinja: base;  base:"
  read_order("", rooms)

  # The same inside a room. A room that is not here has no order inside.
  read_order("base", "machine: text;  numbers: shared;  shared: text;  text: files;  files: threads;  threads: .;  .:")
  read_order("bpe", ".: steps;  steps: expression;  expression: unicode;  unicode:")
  read_order("checkpoint", "save: find;  find: format;  hugging_face: format;  format:")
  read_order("cli", ".: commands;  commands: evaluate help inputs plan train;  evaluate:;  help: shared;  inputs: shared;  plan: shared;  train: shared;  shared:")
  read_order("config", "run: .;  .:")
  read_order("data", "learn: tokenizer;  lanes: tokenizer;  tokenizer: corpus;  corpus:")
  read_order("data/tokenizer", ".: sentencepiece;  sentencepiece: folder;  folder: byte_level;  byte_level:")
  read_order("evaluate", "packed: prepare encode tasks;  prepare: results documents;  results: requests execution;  requests: metrics documents .;  metrics: tasks .;  tasks: yaml;  yaml:;  documents:;  encode:;  execution:;  .:")
  read_order("jinja", ".: syntax;  syntax: library;  library: values;  values:")
  read_order("launch", "node: place;  jobs: .;  place: .;  .:")
  read_order("passes", ".: parallel overlap;  parallel: memory;  overlap: memory;  memory:")
  read_order("plan", "compilers: .;  goodput: .;  search: .;  .:")
  read_order("prepare", "clean: .;  dedup: .;  .: read;  read:")
  read_order("prepare/clean", ".: filters language;  filters: words;  language: words;  words:")
  read_order("prepare/dedup", ".: clusters hashing;  clusters:;  hashing:")
  read_order("prepare/read", ".: inputs;  inputs: bytes;  bytes:")
  read_order("record", "watch: report;  report: log;  log: files;  files:")
  read_order("record/report", "html: compare;  compare: .;  .:")
  read_order("serve", ".: api http;  api:;  http:")
  read_order("supervise", "goodput: simulation;  simulation: .;  .:")
  read_order("train", "explain: loop;  loop: start;  start:")
}

# `rows`: "a: b c;  b: c;  c:", of the folders of `place`.
function read_order(place, rows,   i, j, k, n, num, lines, sides, below, name) {
  num = split(rows, lines, / *; */)
  for (i = 1; i <= num; i++) {
    split(lines[i], sides, / *: */)
    name[i] = sides[1]
    names[place] = names[place] " " name[i]
    n = split(sides[2], below, " ")
    may[place, name[i], name[i]] = 1
    for (j = 1; j <= n; j++) may[place, name[i], below[j]] = 1
  }
  for (k = 1; k <= num; k++)
    for (i = 1; i <= num; i++)
      for (j = 1; j <= num; j++)
        if (((place, name[i], name[k]) in may) && ((place, name[k], name[j]) in may)) may[place, name[i], name[j]] = 1
}

function report(what) {
  print FILENAME ":" FNR ": " what
  violations++
}

function shown(place, name) {
  return place == "" ? name : name == "." ? "the top of " place : place "/" name
}

function allowed(place, from,   i, n, list, name) {
  n = split(names[place], name, " ")
  for (i = 1; i <= n; i++)
    if (((place, from, name[i]) in may) && name[i] != from) list = list (list ? ", " : "") shown(place, name[i])
  return shown(place, from) (list ? " may include itself and " list : " may include only itself")
}

# The rooms inside rooms that both this file and skein/`path` lie in: `parts` are those of the path.
function check_inner(path, parts, depth,   level, place, from, to) {
  place = parts[2]
  for (level = 3; place == join(folders, level - 1); level++) {
    from = level < num_folders ? folders[level] : "."
    to = level < depth ? parts[level] : "."
    if (from != to && (place in names) && !((place, from, to) in may))
      report("includes \"" path "\": " allowed(place, from))
    if (from != to || from == ".") return
    place = place "/" from
  }
}

function join(names, last,   i, path) {
  path = names[2]
  for (i = 3; i <= last; i++) path = path "/" names[i]
  return path
}

function check_include(path,   parts, depth, to) {
  if (path ~ /(^|\/)\.\.?\//) report("includes \"" path "\": write the path from the root, skein/...")
  if (path ~ /^(cuda|cublas|cudnn|curand|nccl|nvml|nvToolsExt)[A-Za-z0-9_]*\.(h|hpp|cuh)$/ ||
      path ~ /^(cub|cuda|cooperative_groups|cutlass|cute|nvtx3|thrust)\//)
    if (FILENAME !~ /_cuda\.(cu|cc|h)$/ && FILENAME !~ /^skein\/(runtime\/cuda|comm\/nccl)\//)
      report("includes \"" path "\": CUDA headers belong in *_cuda.{cu,cc,h}, runtime/cuda and comm/nccl")
  if (path ~ /^(gtest|gmock|tests)\// && !is_test)
    report("includes \"" path "\": only tests do; what they share lies in tests/")
  depth = split(path, parts, "/")
  if (parts[1] != "skein" || depth < 3 || is_test) return
  to = parts[2]
  if (!(("", to, to) in may)) report("includes \"" path "\": there is no room \"" to "\"")
  else if (!(("", room, to) in may)) report("includes \"" path "\": " allowed("", room))
  check_inner(path, parts, depth)
  if (to == "runtime" && depth > 3 && FILENAME != "skein/backends/backend_" parts[3] ".cc" &&
      index(FILENAME, "skein/runtime/" parts[3] "/") != 1)
    report("includes \"" path "\": a backend header is for runtime/" parts[3] "/ and" \
           " backends/backend_" parts[3] ".cc; others go through skein/backends/backend.h")
}

# This file lies in an inner room that is known, which is not full.
function check_place(   level, place, inner) {
  for (level = 3; level <= num_folders; level++) {
    place = join(folders, level - 1)
    inner = level < num_folders ? folders[level] : "."
    if ((place in names) && !((place, inner, inner) in may))
      report(inner == "." ? "lies in none of the rooms of " place ":" names[place] \
                          : "there is no room \"" place "/" inner "\": list it in scripts/check_includes.sh")
  }
  if (!is_test && FILENAME !~ /_testing\.h$/ && ++num_files[place] == 31) report(place "/ holds more than 30 files: give it rooms")
}

function check_name(name) {
  if (name in headers) report("has the name of " headers[name] ": a reader would take one for the other")
  headers[name] = FILENAME
}

FNR == 1 {
  num_folders = split(FILENAME, folders, "/")
  room = folders[2]
  is_test = FILENAME ~ /_(test|fuzz)\.cc$/
  is_header = FILENAME ~ /\.h$/
  in_opening = is_header
  if (!(("", room, room) in may)) report("there is no room \"" room "\": list it in scripts/check_includes.sh")
  check_place()
  if (is_header) check_name(folders[num_folders])
  if (is_header && $0 !~ /^\/\/ *[A-Za-z0-9`*]/)
    report("a header begins with a comment that says what it is; found: " ($0 == "" ? "an empty line" : $0))
}

# The first line that is neither comment nor blank.
in_opening && !/^[ \t]*(\/\/.*)?$/ {
  in_opening = 0
  if ($0 !~ /^#pragma once/ && FILENAME !~ /-inl\.h$/)
    report("expected #pragma once after the opening comment; found: " $0)
}

is_header && /^namespace [a-z_:0-9]+ \{/ { space = $2 }

is_header && /^(struct|class|enum class) [A-Za-z0-9_]+[^;(]*\{/ {
  type = space "::" ($1 == "enum" ? $3 : $2)
  if (type in defined && defined[type] != FILENAME) report("defines " type ", as " defined[type] " does")
  defined[type] = FILENAME
}

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
  split($0, quoted, /["<>]/)
  check_include(quoted[2])
  next
}

!is_test && room != "cli" && /(exit|Exit|abort|terminate)[ \t]*\(/ {
  code = $0
  gsub(/\\./, "", code)
  gsub(/"[^"]*"/, "\"\"", code)
  sub(/\/\/.*/, "", code)
  gsub(/void [A-Za-z0-9_:]*\(/, "", code)  # a function of that name, declared or defined
  if (match(code, /(^|[^A-Za-z0-9_.>])(_?exit|_Exit|quick_exit|abort|std::terminate)[ \t]*\(/)) {
    call = substr(code, RSTART, RLENGTH)
    gsub(/^[^A-Za-z_]|[ \t]*\(/, "", call)
    report("calls " call "(): only skein/cli ends the process; throw Error or return a Result")
  }
}

END {
  if (violations) exit 1
}
' "${files[@]}"
