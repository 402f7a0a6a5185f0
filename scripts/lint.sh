#!/usr/bin/env bash
# Checks what needs no compiler run of its own: includes, formatting, lengths, widths, opens, blanks, shell scripts,
# traces of one machine, links, idioms; then clang-tidy on what changed. One line a violation.
#
#   scripts/lint.sh [--tidy|--no-tidy] [BUILD_DIR]
#
#   --tidy       clang-tidy on every source (minutes); without it, on the sources that differ from
#                the branch point (origin/main, or the commit before), the first 12 in order of path
#   --no-tidy    without clang-tidy: what scripts/test.sh runs
#   BUILD_DIR    holds compile_commands.json; build
set -euo pipefail
cd "$(dirname "$0")/.."

max_tidied=12  # at about 10 s each, a minute on 2 cores
tidy_all='' no_tidy=''
case ${1:-} in
  --tidy) tidy_all=1 && shift ;;
  --no-tidy) no_tidy=1 && shift ;;
esac
build_dir=${1:-build}

failures=0 num_tidied=0
violation() {
  echo "lint: $*" >&2
  failures=$((failures + 1))
}
# Every line of standard input is a violation: $1.
violations() {
  local line
  while IFS= read -r line; do violation "$line: $1"; done
}

# What git knows or would add, as it is on disk; without git, everything but build outputs.
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  mapfile -t listed < <(git ls-files --cached --others --exclude-standard | sort -u)
else
  mapfile -t listed < <(find . -type f -not -path './build*' -not -path './.*/*' -not -path './runs/*' -printf '%P\n' | sort)
fi
texts=() sources=() scripts=() pages=()
for file in "${listed[@]}"; do
  [ -f "$file" ] || continue
  case $file in
    tests/goldens/* | tests/fuzz/* | */testdata/* | examples/text/*) continue ;;
    LICENSE) continue ;;
    *.cc | *.h | *.cu) sources+=("$file") ;;
    *.sh | .ci/run) scripts+=("$file") ;;
    *.md) pages+=("$file") ;;
  esac
  texts+=("$file")
done

# One version everywhere: the one that scripts/test_tools.sh unpacks, or an installed one.
clang_format=.deps/clang-format-14.0.6/clang_format/data/bin/clang-format
[ -x "$clang_format" ] || clang_format=clang-format-14

check_format() {
  if ! command -v "$clang_format" >/dev/null; then
    echo "lint: note: formatting not checked: no clang-format 14; run scripts/test_tools.sh"
    return
  fi
  violations "run $clang_format -i on it" < <("$clang_format" --dry-run -Werror "${sources[@]}" 2>&1 |
    sed -n 's/^\([^:]*\):\([0-9]*\):.*error: code should.*/\1 \2/p' |
    awk '{ if (!places[$1]++) first[$1] = $2 }
         END { for (file in places) print file ":" first[file] ": " places[file] " places not formatted" }' | sort)
}

check_lengths() {
  local count file
  while read -r count file; do
    [ "$file" != total ] || continue
    if ((count > 800)); then violation "$file: $count lines, at most 800: split it at its seam"
    elif ((count > 400)); then echo "lint: note: $file has $count lines; past 400, look for the seam"; fi
  done < <(wc -l "${sources[@]}" "${scripts[@]}")
}

# Columns are characters. Text that is read as it stands (graphs, JSON) may be wider.
check_widths() {
  violations "more than 100 columns" < <(LC_ALL=C.UTF-8 grep -nHE '^.{101,}$' "${sources[@]}" |
    grep -vE '^[^:]*:[0-9]+:.*(https?://| : (bf16|f32)\[|R"\()' | cut -d: -f1,2)
}

# GCC leaves out calls of functions that only prefetch.
check_prefetches() {
  violations "use prefetch of skein/base/machine/prefetch.h" < <(grep -nHF __builtin_prefetch "${sources[@]}" |
    grep -v '^skein/base/machine/prefetch\.h:' | cut -d: -f1,2)
}

# A name that somebody else may have made is opened in one place, which nothing holds up. What is created under
# a new name (O_EXCL), and a folder, is opened anywhere; else: what lies in /proc and /sys, /dev/null, an output
# that a person names, and what was looked at before (fasttext_classifier).
may_open='^skein/(base/(files/(file|open_file|trace_file)|shared/(own_file|partials))|runtime/op_clocks|comm/shared_memory/peer_memory|cli/main|launch/node/crew|prepare/clean/language/fasttext_classifier|evaluate/execution/(confined_process|python_sandbox))\.cc:'
may_lock='^skein/(base/shared/(file_lock|partials)|ops/cuda/algorithm_cache)\.cc:'
check_opens() {
  local programs=()
  mapfile -t programs < <(printf '%s\n' "${sources[@]}" | grep '^skein/' | grep -vE '_(test|fuzz)\.cc$')
  ((${#programs[@]})) || return 0
  violations "open it with skein/base/files/open_file.h" < <(grep -nHE '(^|[^A-Za-z0-9_])::open(at)?\(|[^A-Za-z0-9_.>:]open(at)?\([^)]*O_|std::ifstream|[^A-Za-z0-9_]fopen\(' "${programs[@]}" |
    grep -vE 'O_EXCL|O_DIRECTORY' | grep -vE "$may_open" | cut -d: -f1,2)
  violations "lock it with skein/base/shared/file_lock.h" < <(grep -nHE '::flock\(' "${programs[@]}" |
    grep -vE "$may_lock" | cut -d: -f1,2)
}

# The library throws where a text is not UTF-8: file names, and what others wrote.
check_json_texts() {
  violations "use json_text or exact_json of skein/base/text/json_text.h" < <(grep -nE '[.>]dump\(' "${sources[@]}" |
    grep '^skein/' | grep -vE '^skein/base/text/json_text\.cc:|^[^:]*_(test|fuzz)\.cc:' | cut -d: -f1,2)
}

check_blanks() {
  violations "a blank at the end of the line" < <(grep -nIE '[[:blank:]]+$' "${texts[@]}" | cut -d: -f1,2)
  violations "a tab" < <(grep -nIP '\t' "${texts[@]}" | cut -d: -f1,2)
}

check_scripts() {
  local script output parsed=()
  for script in "${scripts[@]}"; do
    [ -x "$script" ] || violation "$script: not executable; run chmod +x on it"
    if output=$(bash -n "$script" 2>&1); then parsed+=("$script"); else violation "${output%%$'\n'*}"; fi
  done
  if command -v shellcheck >/dev/null; then
    violations "shellcheck" < <(shellcheck --severity=warning --format=gcc "${parsed[@]}")
  else
    echo "lint: note: shellcheck is not installed; scripts were only parsed"
  fi
}

# Paths of one machine and places to install from: what the repository says must hold anywhere.
check_traces() {
  local paths='(^|[^A-Za-z0-9_.~}/-])/(work|home|root|Users|opt/judge)(/|[^A-Za-z0-9_-]|$)'
  local hosts='[a-z0-9]\.(pypi|pythonhosted|debian)\.org|//pypi\.org|//proxy\.[a-z]|index[-_]url|trusted[-_]host|://[0-9]+\.[0-9.]+[:/]'
  violations "a path of one machine" < <(grep -nIE "$paths" "${texts[@]}")
  violations "a registry host or setting" < <(grep -nIiE "$hosts" "${texts[@]}" | grep -vE '://(127\.0\.0\.1|0\.0\.0\.0)|^scripts/lint\.sh:')
}

# Tables of figures are made from files in bench/results/.
check_measured() {
  [ ! -d bench/results/rows ] || violations "see scripts/measured.py" < <(scripts/measured.py --check 2>&1)
  [ ! -d bench/results/certificates ] || violations "see scripts/certificates.py" < <(scripts/certificates.py --check 2>&1)
}

# Markdown links to files, mentions of pages of docs/ anywhere, and paths in backquotes in docs/.
check_links() {
  local page target file path
  # shellcheck disable=SC2016  # backquotes of Markdown
  for page in "${pages[@]}"; do
    while IFS= read -r target; do
      target=${target%%#*}
      if [[ $target =~ ^[a-z]+: || -z $target ]]; then continue; fi
      [ -e "$(dirname "$page")/$target" ] || violation "$page: the link to $target leads nowhere"
    done < <(sed -E '/^ *```/,/^ *```/d; s/`[^`]*`//g' "$page" | grep -oP '\]\(\K[^) ]+')
  done
  while IFS=: read -r file target; do
    [ -e "$target" ] || violation "$file: speaks of $target, which does not exist"
  done < <(grep -ohIHE '\bdocs/[a-z0-9_]+\.md' "${texts[@]}" | sort -u)
  # shellcheck disable=SC2016  # backquotes of Markdown
  for page in docs/*.md; do
    # These write files of their own, which tests/scripts/doc_snippets_test.py compiles.
    [[ $page != docs/adding_* ]] || continue
    while IFS= read -r path; do
      case $path in
        *[[:upper:]…\<]* | *'{'*) continue ;;  # a placeholder
        *\**) compgen -G "$path" >/dev/null && continue ;;
        *) [ ! -e "$path" ] || continue ;;
      esac
      violation "$page: names $path, which does not exist"
    done < <(sed -E '/^ *```/,/^ *```/d' "$page" |
      grep -oP '`\K(skein|scripts|tests|bench|configs|docs)/[^` ]*' | sed -E 's/:[0-9]+$//' | sort -u)
  done
}

# Idioms of pages that a stranger does not understand, above a share of the words: docs/style.md.
check_idioms() {
  local output
  output=$(scripts/check_prose.py) || violations "write it as docs/style.md says" <<<"${output:-scripts/check_prose.py ended early}"
}

# The sources to tidy, one a line: those that changed, and the source beside a header that changed.
changed_sources() {
  local base file
  base=$(git merge-base HEAD origin/main 2>/dev/null) || base=
  if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then base=$(git rev-parse -q --verify HEAD~1) || return 0; fi
  { git diff --name-only "$base"; git ls-files --others --exclude-standard; } | while IFS= read -r file; do
    case $file in
      *.cc) echo "$file" ;;
      *.h) echo "${file%.h}.cc" ;;
    esac
  done | sort -u
}

check_tidy() {
  local database=$build_dir/tidy/compile_commands.json built chosen output
  if ! command -v clang-tidy-14 >/dev/null; then
    echo "lint: note: clang-tidy skipped: no clang-tidy-14 here; run scripts/test_tools.sh (Debian 13 has none)"
    return
  fi
  if [ ! -f "$build_dir/compile_commands.json" ]; then
    echo "lint: note: clang-tidy skipped: no $build_dir/compile_commands.json; run cmake first"
    return
  fi
  mkdir -p "$build_dir/tidy"
  scripts/tidy_database.py "$build_dir/compile_commands.json" >"$database"
  built=$(sed -n "s|^ *\"file\": \"$PWD/\(.*\)\",*$|\1|p" "$database" | sort -u)
  if [ -n "$tidy_all" ]; then
    mapfile -t chosen <<<"$built"
  else
    mapfile -t chosen < <(comm -12 <(changed_sources) - <<<"$built")
    if ((${#chosen[@]} > max_tidied)); then
      echo "lint: note: clang-tidy on $max_tidied of ${#chosen[@]} changed sources; all: scripts/lint.sh --tidy"
      chosen=("${chosen[@]:0:max_tidied}")
    fi
  fi
  if ((${#chosen[@]} == 0)); then
    echo "lint: note: clang-tidy skipped: no source changed; all: scripts/lint.sh --tidy"
    return
  fi
  num_tidied=${#chosen[@]}
  # shellcheck disable=SC2016  # for the inner shell
  output=$(printf '%s\0' "${chosen[@]}" | xargs -0 -P "$(nproc)" -I{} \
    sh -c 'found=$(clang-tidy-14 -p "$1" --quiet "$2" 2>/dev/null) || printf "%s\n" "${found:-$2: error: did not run}"' sh "$build_dir/tidy" {})
  violations "clang-tidy" < <(grep -E '(error|warning): ' <<<"$output" | sed "s|^$PWD/||" | sort -u)
}

violations "see scripts/check_includes.sh" < <(scripts/check_includes.sh)
check_format
check_lengths
check_widths
check_prefetches
check_opens
check_json_texts
check_blanks
check_scripts
check_measured
check_traces
check_links
check_idioms
[ -n "$no_tidy" ] || check_tidy

if ((failures)); then
  echo "lint: $failures violations" >&2
  exit 1
fi
echo "lint: ${#texts[@]} files, $num_tidied of them through clang-tidy: no violation"
