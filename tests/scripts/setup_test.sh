#!/usr/bin/env bash
# scripts/setup.sh installs what the build needs and nothing else, scripts/test_tools.sh installs no
# service; on a system that is not supported both say so in one line and do nothing. They say what they
# install and nothing of what apt and pip print, unless one of them fails.
set -euo pipefail
root=$(realpath "$(dirname "$0")/../..")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# A machine that has nothing, and whose programs are noisy; the one that FAILING names fails. What apt-get
# was asked for is in $tree/asked.
mkdir -p "$tree/scripts" "$tree/tests" "$tree/bin"
cp "$root"/scripts/{setup,test_tools,packages}.sh "$tree/scripts/"
cp "$root/tests/services.py" "$tree/tests/"
real_python=$(command -v python3)
for noisy in apt-get python3 dpkg-deb; do
  cat >"$tree/bin/$noisy" <<EOF
#!/bin/bash
[ $noisy != python3 ] || [[ \$1 != *services.py ]] || exec $real_python "\$@"
[ $noisy != apt-get ] || echo "\$*" >>"$tree/asked"
if [[ "$noisy \$*" == 'apt-get -s '* ]]; then
  printf 'Inst %s (1.0)\n' libmunge2 slurm-wlm-basic-plugins systemd "\${@:6}"
  exit
fi
echo "noise of $noisy"
echo "WARNING: noise" >&2
case "$noisy \$*" in
  'apt-get download '*) touch some.deb ;;
  'dpkg-deb -x '*)
    mkdir -p "\$3"/usr/{sbin,bin} "\$3/lib/systemd"
    touch "\$3"/usr/sbin/{munged,slurmctld-wlm,slurmd-wlm,slurmstepd-wlm}
    touch "\$3"/usr/bin/{etcd,sbatch,srun,scontrol,squeue,scancel,mpirun.openmpi,prometheus,promtool}
    chmod +x "\$3"/usr/*bin/* ;;
esac
folder=
while [ \$# -gt 0 ]; do
  case \$1 in --target | -d) folder=\$2 ;; esac
  shift
done
[ -z "\$folder" ] || { mkdir -p "\$folder" && touch "\$folder/some.whl"; }
[ "\${FAILING:-}" != $noisy ]
EOF
done
cat >"$tree/bin/unzip" <<'EOF'
#!/bin/bash
mkdir -p "${@: -1}/clang_format/data/bin"
touch "${@: -1}/clang_format/data/bin/clang-format"
mkdir -p "${@: -1}/xla_cpu_pjrt/lib/include"
echo '/* The licence of the header. */' >"${@: -1}/xla_cpu_pjrt/lib/include/pjrt_c_api.h"
EOF
printf '#!/bin/sh\n' >"$tree/bin/dpkg-query"
printf '#!/bin/sh\nexec "$@"\n' >"$tree/bin/sudo"
chmod +x "$tree"/bin/*

system() { printf 'PRETTY_NAME="%s"\nID=%s\nVERSION_ID="%s"\n' "$1" "$2" "$3" >"$tree/os-release"; }
fail() {
  echo "setup_test: $*" >&2
  failures=$((failures + 1))
}

expect() {  # SCRIPT FAILING EXIT_CODE PATTERN…: lines that match each; without FAILING, no others than the script's
  local output status=0 pattern wrong=
  rm -rf "$tree/.deps" "$tree/asked"
  output=$(FAILING=$2 OS_RELEASE=$tree/os-release SKEIN_CUDA=OFF PATH=$tree/bin:$PATH "$tree/scripts/$1.sh" 2>&1) || status=$?
  [ $status = "$3" ] || wrong=yes
  for pattern in "${@:4}"; do grep -q -- "$pattern" <<<"$output" || wrong=yes; done
  [ -n "$2" ] || ! grep -qv "^$1: " <<<"$output" || wrong=yes
  [ -z "$wrong" ] ||
    fail "$1 with FAILING=$2: expected exit code $3 and ${*:4}; found (exit code $status): $output"
}
asked() {  # VERB NAME…: apt-get was asked for each
  for name in "${@:2}"; do
    grep -qE -- "$1 .*$name( |\$)" "$tree/asked" || fail "apt-get was not asked to $1 $name: $(cat "$tree/asked")"
  done
}
not_asked() {  # VERB PATTERN
  local found
  found=$(grep -e "^$1" "$tree/asked" | tr ' ' '\n' | grep -xE -- "$2" | tr '\n' ' ') || true
  [ -z "$found" ] || fail "apt-get was asked to $1 $found"
}
only_tests_need='[a-z-]*(slurm|munge|etcd|openmpi|prometheus|gtest|gmock|benchmark|rapidcheck|clang|libomp).*'
services='.*(slurm|munge|etcd|openmpi|prometheus).*'

system 'Debian GNU/Linux 12 (bookworm)' debian 12
expect setup apt-get 1 'noise of apt-get' 'WARNING: noise' 'setup: failed (exit code 1): .*apt-get update'
expect setup python3 1 'noise of python3' 'setup: failed (exit code 1): python3 -m pip download'
expect setup '' 0 '^setup: installing build-essential' '^setup: unpacking Arrow' '^setup: unpacking the header of PJRT'
asked 'install -y' build-essential libdnnl-dev
not_asked 'install' "$only_tests_need"

expect test_tools dpkg-deb 1 'noise of dpkg-deb' 'test_tools: failed (exit code 1): dpkg-deb -x'
expect test_tools '' 0 '^test_tools: installing git' '^test_tools: unpacking Slurm' '^test_tools: installing moto'
asked 'install -y' libgtest-dev clang-14 clang-tidy-14
asked download slurmd slurmctld munge etcd-server openmpi-bin prometheus libmunge2 slurm-wlm-basic-plugins
not_asked 'install' "$services"
not_asked download 'systemd|promtool'
[ "$(readlink "$tree/.deps/services/bin/slurmd")" = ../usr/sbin/slurmd-wlm ] || fail "no .deps/services/bin/slurmd"
[ ! -e "$tree/.deps/services/lib/systemd" ] || fail "units of services are left below .deps"

system 'Debian GNU/Linux 13 (trixie)' debian 13
expect test_tools '' 0 '^test_tools: installing'
asked 'install -y' clang-19
asked download prometheus promtool
not_asked 'install' '.*-14.*'
system 'Ubuntu 24.04.1 LTS' ubuntu 24.04
expect test_tools '' 0 '^test_tools: installing'
asked 'install -y' clang-18
not_asked download promtool

# Elsewhere one line, and nothing is asked for.
for script in setup test_tools; do
  system 'Fedora Linux 41 (Workstation Edition)' fedora 41
  expect $script '' 2 'this is Fedora Linux 41 .*Debian 12, Debian 13 and Ubuntu 24.04'
  system 'Debian GNU/Linux trixie/sid' debian ''
  expect $script '' 2 'this is Debian GNU/Linux trixie/sid'
  rm "$tree/os-release"
  expect $script '' 2 'this is a system without /etc/os-release'
  [ ! -e "$tree/asked" ] || fail "$script asked apt-get on an unknown system: $(cat "$tree/asked")"
done

# The demo builds the program alone; the tests bring their own tools.
! grep -q test_tools "$root"/scripts/{demo,build,setup}.sh || fail "the demo calls scripts/test_tools.sh"
grep -q '^scripts/test_tools.sh$' "$root/scripts/test.sh" || fail "scripts/test.sh does not call scripts/test_tools.sh"
exit $((failures > 0))
