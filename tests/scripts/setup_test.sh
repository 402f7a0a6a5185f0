#!/usr/bin/env bash
# scripts/setup.sh says what it installs and nothing of what apt and pip print, unless one of them fails.
set -euo pipefail
setup=$(realpath "$(dirname "$0")/../../scripts/setup.sh")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# A machine that has nothing, and whose programs are noisy; the one that FAILING names fails.
mkdir -p "$tree/scripts" "$tree/bin" "$tree/.deps/prometheus"
cp "$setup" "$tree/scripts/"
touch "$tree/.deps/prometheus/.done"  # the stub of apt-get makes no package
for noisy in apt-get python3; do
  cat >"$tree/bin/$noisy" <<EOF
#!/bin/sh
echo "noise of $noisy"
echo "WARNING: noise" >&2
while [ \$# -gt 0 ]; do
  [ "\$1" != --target ] || mkdir -p "\$2"
  shift
done
[ "\${FAILING:-}" != $noisy ]
EOF
done
for silent in dpkg-query unzip; do printf '#!/bin/sh\n' >"$tree/bin/$silent"; done
printf '#!/bin/sh\nexec "$@"\n' >"$tree/bin/sudo"
chmod +x "$tree"/bin/*

expect() {  # FAILING EXIT_CODE PATTERN…: lines that match each of them; without FAILING, no others than setup's
  local output status=0 pattern
  output=$(FAILING=$1 SKEIN_CUDA=OFF PATH=$tree/bin:$PATH "$tree/scripts/setup.sh" 2>&1) || status=$?
  local wrong=
  [ $status = "$2" ] || wrong=yes
  for pattern in "${@:3}"; do grep -q "$pattern" <<<"$output" || wrong=yes; done
  [ -n "$1" ] || ! grep -qv '^setup: ' <<<"$output" || wrong=yes
  [ -n "$wrong" ] || return 0
  echo "FAILING=$1: expected exit code $2 and ${*:3}; found (exit code $status): $output" >&2
  failures=$((failures + 1))
}

expect apt-get 1 'noise of apt-get' 'WARNING: noise' 'setup: failed (exit code 1).*: apt-get update'
expect python3 1 'noise of python3' 'setup: failed (exit code 1): python3 -m pip download'
expect '' 0 '^setup: installing build-essential' '^setup: unpacking Arrow' '^setup: installing moto'
exit $((failures > 0))
