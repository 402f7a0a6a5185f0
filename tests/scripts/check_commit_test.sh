#!/usr/bin/env bash
# scripts/check_commit.sh finds each kind of violation in a message, in a range and in a hook, and nothing elsewhere.
set -euo pipefail
check=$(realpath "$(dirname "$0")/../..")/scripts/check_commit.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cd "$tree"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
failures=0

# CODE OUTPUT_PATTERN ARGUMENT…
expect() {
  local output status=0
  output=$("$check" "${@:3}" 2>&1) || status=$?
  if [ "$status" = "$1" ] && grep -q -- "$2" <<<"$output"; then return; fi
  echo "expected exit code $1 and '$2', found $status: $output" >&2
  failures=$((failures + 1))
}
# FILE MESSAGE: a commit that changes the file
commit() {
  echo "$RANDOM" >>"$1"
  git add "$1"
  git commit -q --cleanup=verbatim -F - <<<"$2"
}

git init -q -b main
commit page.md 'The first page'
expect 0 'note: no commit checked: there is no origin/main'
git update-ref refs/remotes/origin/main HEAD
expect 0 '0 commits, no violation'

seventy_two=$(printf 'a%.0s' {1..72})
commit page.md "$seventy_two"
commit page.md "${seventy_two//a/ü}"
commit x.cc $'A subject\n\nWhy it is so.'
expect 0 '3 commits, no violation'
commit page.md "${seventy_two}a"
expect 1 "the subject has 73 characters, at most 72: aaa"
git reset -q --hard HEAD~1
commit x.cc 'A change of a source'
expect 1 'changes sources and has no body.*: A change of a source'
git reset -q --hard HEAD~1
commit x.h $'A change\n\nSigned-off-by: a <a@example.org>'
expect 1 'changes sources and has no body'
expect 0 '1 commits, no violation' HEAD~2..HEAD~1
git reset -q --hard HEAD~1
commit x.cc $'A change\nof a source'
expect 1 "line 2 is 'of a source'"
git reset -q --hard HEAD~1
expect 2 "no file or range 'nowhere..HEAD'" nowhere..HEAD
expect 2 "no file or range 'nowhere'" nowhere

# Merges have the subject that git gives them.
git checkout -q -b "a_branch_whose_name_is_so_long_that_the_subject_of_the_merge_has_no_room"
commit y.cc $'A subject\n\nWhy.'
git checkout -q main
git merge -q --no-ff -m "Merge branch 'a_branch_whose_name_is_so_long_that_the_subject_of_the_merge_has_no_room'" -
expect 0 '4 commits, no violation'

# As a hook: what is staged counts, and comments of the template do not.
printf '%s\n' 'A subject' '' '# Please enter the message' >message
echo more >>page.md
git add page.md
expect 0 '' message
echo more >>x.cc
git add x.cc
expect 1 'this commit: the commit changes sources and has no body' message
printf '%s\n' 'fixup! A subject' >message
expect 0 '' message
printf '%s\n' '# Please enter the message' >message
expect 1 'this commit: the message has no subject' message

((failures == 0)) || { echo "$failures checks failed" >&2; exit 1; }
