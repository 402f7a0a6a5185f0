#!/usr/bin/env bash
# scripts/lint.sh finds each kind of violation, and nothing in a tree that has none.
set -euo pipefail
root=$(realpath "$(dirname "$0")/../..")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# Forbidden words are put together here, so that this file has none of them.
host=pypi
home=home
pages=docs

mkdir -p "$tree"/{scripts,skein/base,docs,build}
cp "$root"/scripts/{lint.sh,check_includes.sh,check_prose.py,tidy_database.py} "$tree/scripts/"
cp "$root"/.clang-{format,tidy} "$tree/"
[ ! -d "$root/.deps" ] || ln -s "$root/.deps" "$tree/.deps"  # clang-format
printf '%s\n' '// Numbers for people.' '#pragma once' '' 'int f();' >"$tree/skein/base/units.h"
printf '%s\n' 'How we write.' >"$tree/$pages/style.md"
printf '%s\n' "See [units](../skein/base/units.h), [web](https://example.org) and $pages/page.md." >"$tree/$pages/page.md"

expect() {  # OUTPUT_PATTERN; the empty one: no violation
  local output status=0
  output=$("$tree/scripts/lint.sh" 2>&1) || status=$?
  if [ -z "$1" ] && [ $status = 0 ]; then return; fi
  if [ -n "$1" ] && [ $status = 1 ] && grep -q 'lint: 1 violations' <<<"$output" && grep -q -- "$1" <<<"$output"; then return; fi
  echo "expected ${1:-no violation}, found (exit code $status): $output" >&2
  failures=$((failures + 1))
}

violation() {  # NEW_FILE OUTPUT_PATTERN LINE…
  printf '%s\n' "${@:3}" >"$tree/$1"
  [[ $1 != *.sh ]] || chmod +x "$tree/$1"
  expect "$1.*$2"
  rm "$tree/$1"
}

expect ''
violation skein/base/x.cc 'includes "skein/ir/graph.h"' '#include "skein/ir/graph.h"'
violation skein/base/x.cc 'not formatted' 'int  x;'
violation skein/base/x.cc 'more than 100 columns' "// $(printf 'word %.0s' {1..25})word"
violation skein/base/x.cc 'use json_text or exact_json' 'std::string f(Json j) { return j.dump(); }'
violation "$pages/x.md" 'a blank at the end' 'int x; '
violation "$pages/x.md" 'a tab' $'a\tb'
violation scripts/x.sh 'syntax error' 'if true'
violation "$pages/x.md" 'a path of one machine' "see /$home/me/notes"
violation "$pages/x.md" 'a registry host' "from https://$host.org/simple"
violation "$pages/x.md" 'leads nowhere' 'See [that](that.md).'
violation "$pages/x.md" 'names skein/base/unit.h, which' 'See `skein/base/unit.h`, `skein/base/*.h --all`, `skein/NAME/x.h`.'
violation "$pages/x.md" 'names scripts/\*.py2' '`scripts/*.py2` and `scripts/lint.sh --tidy`.'
violation "$pages/x.md" ':1: go on: "goes on": write it as' 'The run goes' 'on, `what is not`.'
violation "$pages/x.md" ':7: what is: "What lies"' '```' 'anew' '```' '<!-- prose: off -->' 'anew <!-- prose: on -->' 'What lies there?' 'What lies there.'
violation skein/base/x.cc ':1: anew: "anew": write it as' 'const char* f() { return "Begin anew, or goodness"; }  // anew'
violation skein/base/x.cc "speaks of $pages/that.md" "// Format: $pages/that.md"
violation skein/base/x.cc 'open it with' 'int f(const char* path) { return ::open(path, 0); }'
violation skein/base/x.cc 'open it with' 'std::ifstream file("x");'
violation skein/base/x.cc 'lock it with' 'int f(int fd) { return ::flock(fd, 2); }'
mapfile -t long < <(printf 'int x%d;\n' {1..801})
violation skein/base/x.cc '801 lines' "${long[@]}"

# Tables of figures are those of bench/results/rows/.
mkdir -p "$tree/bench/results/rows" "$tree/bench/journal"
cp "$root/scripts/measured.py" "$tree/scripts/"
echo '# A story' >"$tree/bench/journal/story.md"
printf '%s' '{"group": "speed", "order": 1, "what": "w", "figure": "1", "unit": "s", "cpu": "", "command": "c",' \
  '"date": "2026-01-01", "commit": "0", "story": "story"}' >"$tree/bench/results/rows/x.json"
echo '# GPUs' >"$tree/$pages/gpu.md"
printf '%s\n' '<!-- measured: begin speed -->' '<!-- measured: end -->' >"$tree/$pages/measured.md"
expect "$pages/measured.md: out of date"
"$tree/scripts/measured.py"
expect ''
sed -i 's/"figure": "1"/"figure": "2"/' "$tree/bench/results/rows/x.json"
expect "$pages/measured.md: out of date"
sed -i 's/"story"}/"none"}/' "$tree/bench/results/rows/x.json"
expect 'there is no bench/journal/none.md'
rm -r "$tree/bench" "$tree/scripts/measured.py" "$tree/$pages/measured.md" "$tree/$pages/gpu.md"

# clang-tidy: on every source of compile_commands.json.
printf '%s\n' 'int* f() { return 0; }' >"$tree/skein/base/tidy.cc"
printf '%s\n' '[{' "\"directory\": \"$tree\"," '"command": "c++ -c skein/base/tidy.cc",' \
  "\"file\": \"$tree/skein/base/tidy.cc\"" '}]' >"$tree/build/compile_commands.json"
output=$("$tree/scripts/lint.sh" --tidy 2>&1) && output="no violation: $output"
wanted='^lint: skein/base/tidy.cc:1:19: error: use nullptr'
command -v clang-tidy-14 >/dev/null || wanted='^lint: note: clang-tidy skipped: no clang-tidy-14'
grep -q "$wanted" <<<"$output" ||
  { echo "expected one from clang-tidy, found: $output" >&2; failures=$((failures + 1)); }

((failures == 0)) || { echo "$failures checks failed" >&2; exit 1; }
