#!/usr/bin/env bash
# Tries scripts/demo.sh in a fresh system of a distribution, in a chroot, and says which packages it brought
# and how many of them bring a service. Needs root, mmdebstrap, and a network.
#
#   scripts/check_distribution.sh SUITE [--user] [--packages | --tests REGEX] [--bind FOLDER]… [--keep]
#
#   SUITE          bookworm (Debian 12), trixie (Debian 13); noble (Ubuntu 24.04) needs ubuntu-keyring
#   --user         as an ordinary user who may use sudo; otherwise as root
#   --packages     scripts/setup.sh alone and then scripts/test_tools.sh: what comes, in minutes
#   --tests REGEX  then scripts/test.sh with the tests that match: "." for all
#   --bind FOLDER  a folder of this machine that is seen inside at the same place: a compiler cache, which
#                  CCACHE_DIR names
#   --keep         leaves the system where it was made, and says where
#
# SKEIN_DEMO_SECONDS is 10 where it is not set. Variables of ccache, pip and proxies are handed on, and the
# certificates that this machine trusts. Exit code 1: the demo or a test failed, or a service came.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=${1:?SUITE: bookworm, trixie or noble}
shift
as=root tests='' keep='' only_packages='' folders=()
while [ $# -gt 0 ]; do
  case $1 in
    --user) as=builder ;;
    --keep) keep=yes ;;
    --packages) only_packages=yes ;;
    --tests) tests=$2; shift ;;
    --bind) folders+=("$(realpath "$2")"); shift ;;
    *) echo "check_distribution: unknown option $1" >&2; exit 2 ;;
  esac
  shift
done
[ "$(id -u)" = 0 ] || { echo "check_distribution: a chroot needs root" >&2; exit 2; }
command -v mmdebstrap >/dev/null || { echo "check_distribution: no mmdebstrap: apt-get install mmdebstrap" >&2; exit 2; }

say() { printf '\ncheck_distribution: %s\n' "$*" >&2; }
root=$(mktemp -d "${TMPDIR:-/var/tmp}/skein-$suite-XXXXXX")
chmod 755 "$root"
finish() {
  local status=$?
  if [ -n "$keep" ]; then say "the system is in $root"; else rm -rf "$root"; fi
  exit $status
}
trap finish EXIT

say "a fresh $suite in $root"
mmdebstrap --quiet --variant=apt --dpkgopt=force-unsafe-io --include=ca-certificates,sudo "$suite" "$root"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
printf '127.0.0.1 localhost %s\n' "$(hostname)" >"$root/etc/hosts"  # sudo asks for it
useradd --root "$root" --create-home --shell /bin/bash builder
echo 'builder ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/builder"
home=$(chroot "$root" sh -c "echo ~$as")
mkdir "$root$home/skein"
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  git ls-files -z --cached --others --exclude-standard
else
  find . -type f -not -path './build*' -not -path './.*/*' -not -path './runs/*' -print0
fi | tar --null --ignore-failed-read -T - -c | tar -x -C "$root$home/skein"
[ "$as" = root ] || chroot "$root" chown -R builder: "$home"

# Runs a command inside, in a namespace of mounts that ends with it.
inside() {  # USER COMMAND…
  # shellcheck disable=SC2016  # for the inner shell
  unshare --mount --propagation private bash -euc '
    root=$1 user=$2 home=$3 num=$4; shift 4
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --rbind /sys "$root/sys"
    for folder in "${@:1:num}"; do mkdir -p "$root$folder"; mount --bind "$folder" "$root$folder"; done
    shift "$num"
    handed=$(compgen -e | grep -E "^(CCACHE_|PIP_|SKEIN_|[a-zA-Z_]*_(proxy|PROXY)$)" | tr "\n" ",")
    exec chroot "$root" sudo --preserve-env="${handed%,}" -H -u "$user" -- env -C "$home/skein" "$@"' \
    bash "$root" "$1" "$home" "${#folders[@]}" "${folders[@]}" "${@:2}"
}
packages() { chroot "$root" dpkg-query -W -f '${Package}\n' | sort; }
# Those of the named packages that bring a unit of systemd's or a script of init. Not those that every
# installed system has (procps, whose script sets kernel parameters at boot, and which cmake needs).
services() {
  local package
  while read -r package; do
    case $(chroot "$root" dpkg-query -W -f '${Priority}' "$package") in required | important) continue ;; esac
    if chroot "$root" dpkg-query -L "$package" | grep -qE '^(/usr)?/lib/systemd/system/[^/]*\.(service|socket|timer)$|^/etc/init\.d/.'; then
      echo "$package"
    fi
  done
}
report() {  # BEFORE WHAT: prints what came since BEFORE; fails where a service did
  local added came
  added=$(comm -13 <(echo "$1") <(packages))
  came=$(services <<<"$added")
  say "$2 on $suite as $as: $(wc -w <<<"$added") packages came, services among them: $(wc -w <<<"$came")"
  tr '\n' ' ' <<<"$added" | fold -s -w 120
  echo
  [ -z "$came" ] || { say "services came with $(tr '\n' ' ' <<<"$came")"; return 1; }
}

before=$(packages)
if [ -n "$only_packages" ]; then
  inside "$as" scripts/setup.sh
  report "$before" scripts/setup.sh
  before=$(packages)
  inside "$as" scripts/test_tools.sh
  inside "$as" tests/services.py --check
  report "$before" scripts/test_tools.sh
  exit
fi
export SKEIN_DEMO_SECONDS=${SKEIN_DEMO_SECONDS:-10} SKEIN_CUDA=OFF
say "scripts/demo.sh as $as, $SKEIN_DEMO_SECONDS s of training"
inside "$as" scripts/demo.sh
report "$before" scripts/demo.sh

if [ -n "$tests" ]; then
  before=$(packages)
  say "scripts/test.sh, tests that match $tests"
  inside "$as" scripts/test.sh -R "$tests"
  report "$before" "what tests need"
fi
say "good"
