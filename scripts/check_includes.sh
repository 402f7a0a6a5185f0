#!/usr/bin/env bash
# Checks what a file of skein/ may include and call. One line a violation; exit code 1 if any.
#
#   scripts/check_includes.sh [ROOT]      ROOT: a folder that holds skein/; this repository
#
#   1. rooms      a room includes itself and the rooms below it, transitively ("rooms" in the script)
#   2. backends   runtime/<kind>/ is included only by itself and by backends/backend_<kind>.cc
#   3. CUDA       its headers only in *_cuda.{cu,cc,h}, runtime/cuda/ and comm/nccl/
#   4. exits      exit, _exit, abort, terminate: only in cli/
#   5. headers    begin with a comment that says what they are, then #pragma once
#                 (*-inl.h, which are included several times, have no #pragma once)
#   6. names      no two headers define a type of one name in one namespace: the linker would take
#                 one's functions for the other's, without a word
#   7. tests      gtest and what tests share (tests/) are included by tests alone
#
# Tests (*_test.cc, *_fuzz.cc) are free of 1, 2 and 4.
set -euo pipefail
cd "${1:-"$(dirname "$0")/.."}"

mapfile -t files < <(find skein -type f \( -name '*.h' -o -name '*.cc' -o -name '*.cu' \) | sort)
((${#files[@]})) || { echo "check_includes: no sources in $PWD/skein" >&2; exit 1; }

awk '
BEGIN {
  # Who may include whom; what follows from it transitively is allowed too.
  rooms = "cli: launch train infer health prepare;  health: backends;  train: plan record replica;  plan: compile replica;  infer: compile;" \
          "compile: weights passes backends;  backends: ops runtime;  weights: config runtime;  record: config runtime;" \
          "config: model optim data checkpoint;" \
          "passes: schedule ops;  model: ops;  optim: ops;  schedule: ir comm;  ops: ir comm;" \
          "launch: runtime supervise replica;  replica: checkpoint;  supervise: store;  runtime: ir comm;" \
          "ir: tensor;  comm: tensor store;  prepare: data;  objects: base;  data: tensor bpe objects;  checkpoint: tensor objects;  tensor: base;  store: base;  bpe: base;  base:"
  num_rooms = split(rooms, lines, / *; */)
  for (i = 1; i <= num_rooms; i++) {
    split(lines[i], sides, / *: */)
    name[i] = sides[1]
    n = split(sides[2], below, " ")
    may[name[i], name[i]] = 1
    for (j = 1; j <= n; j++) may[name[i], below[j]] = 1
  }
  for (k = 1; k <= num_rooms; k++)
    for (i = 1; i <= num_rooms; i++)
      for (j = 1; j <= num_rooms; j++)
        if (((name[i], name[k]) in may) && ((name[k], name[j]) in may)) may[name[i], name[j]] = 1
}

function report(what) {
  print FILENAME ":" FNR ": " what
  violations++
}

function allowed(from,   i, list) {
  for (i = 1; i <= num_rooms; i++)
    if (((from, name[i]) in may) && name[i] != from) list = list (list ? ", " : "") name[i]
  return list ? from " may include itself and " list : from " may include only itself"
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
  if (!((to, to) in may)) report("includes \"" path "\": there is no room \"" to "\"")
  else if (!((room, to) in may)) report("includes \"" path "\": " allowed(room))
  if (to == "runtime" && depth > 3 && FILENAME != "skein/backends/backend_" parts[3] ".cc" &&
      index(FILENAME, "skein/runtime/" parts[3] "/") != 1)
    report("includes \"" path "\": a backend header is for runtime/" parts[3] "/ and" \
           " backends/backend_" parts[3] ".cc; others go through skein/backends/backend.h")
}

FNR == 1 {
  split(FILENAME, folders, "/")
  room = folders[2]
  is_test = FILENAME ~ /_(test|fuzz)\.cc$/
  is_header = FILENAME ~ /\.h$/
  in_opening = is_header
  if (!((room, room) in may)) report("there is no room \"" room "\": list it in scripts/check_includes.sh")
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
