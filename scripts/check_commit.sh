#!/usr/bin/env bash
# Checks the messages of commits: a subject of at most 72 characters, a blank line, and, if the commit changes
# sources, a body that says why. One line a violation.
#
#   scripts/check_commit.sh                the commits that origin/main does not have
#   scripts/check_commit.sh FIRST..LAST    the commits of a range
#   scripts/check_commit.sh FILE           the message of the commit that is being made, as git's hook commit-msg passes it
#
# Merges are not checked. Exit code 0: no violation; 1: violations; 2: no such file or range.
set -euo pipefail
export LC_ALL=C.UTF-8  # characters, not bytes

max_subject=72
failures=0
violation() {
  echo "check_commit: $*" >&2
  failures=$((failures + 1))
}

# NAME MESSAGE CHANGED_FILES
check() {
  local name=$1 message=$2 subject second body
  subject=${message%%$'\n'*}
  second=$(sed -n 2p <<<"$message")
  # Who signed it off is no reason for a change.
  body=$(sed -E '1d; /^[A-Z][A-Za-z-]+-by: /d; /^[[:space:]]*$/d' <<<"$message")
  if [ -z "$subject" ]; then
    violation "$name: the message has no subject: say in one line what is different now"
    return
  fi
  if ((${#subject} > max_subject)); then
    violation "$name: the subject has ${#subject} characters, at most $max_subject: $subject"
  fi
  if [ -n "$second" ]; then
    violation "$name: line 2 is '$second': leave it blank, between the subject and the body"
  fi
  if [ -z "$body" ] && grep -qE '\.(cc|h|cu)$' <<<"$3"; then
    violation "$name: the commit changes sources and has no body: say why, and what was measured: $subject"
  fi
}

if [ -f "${1:-}" ]; then
  # Without the comments of git's template and what follows its scissors.
  message=$(sed '/^# -* >8 -*$/,$d' "$1" | sed '/^#/d')
  if git rev-parse -q --verify MERGE_HEAD >/dev/null; then exit; fi
  case $message in fixup!* | squash!* | amend!*) exit ;; esac
  check 'this commit' "$message" "$(git diff --cached --name-only)"
else
  range=${1:-origin/main..HEAD}
  if [ $# = 0 ] && ! git rev-parse -q --verify origin/main >/dev/null; then
    echo "check_commit: note: no commit checked: there is no origin/main; name a range, such as HEAD~3..HEAD"
    exit
  fi
  if [[ $range != *..* ]] || ! commits=$(git rev-list --no-merges "$range" -- 2>/dev/null); then
    echo "check_commit: there is no file or range '$range': expected one such as origin/main..HEAD" >&2
    exit 2
  fi
  for commit in $commits; do
    check "${commit:0:8}" "$(git log -1 --format=%B "$commit")" "$(git show --format= --name-only "$commit")"
  done
  if ((failures == 0)); then echo "check_commit: $(wc -w <<<"$commits") commits, no violation"; fi
fi
if ((failures)) && [ -f "${1:-}" ]; then
  echo "check_commit: nothing was committed; your message is in $1" >&2
  exit 1
elif ((failures)); then
  echo "check_commit: $failures violations; \`git commit --amend\` rewrites the newest message, \`git rebase -i\` earlier ones" >&2
  exit 1
fi
