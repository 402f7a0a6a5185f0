#!/usr/bin/env bash
# What the tests and checks need beside the build: scripts/test.sh calls it. Safe to run again.
#
# Tools are installed (compilers, GoogleTest). Services (Slurm, munge, etcd, Open MPI, Prometheus) are
# unpacked below .deps, with what they depend on, and never installed: nothing of them starts with the
# machine. tests/services.py says with which environment they run there.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

names=$(packages test) || exit 2
mapfile -t tools <<<"$names"
install_packages "${tools[@]}"

# Downloads packages into FOLDER and unpacks them there.
unpack_packages() {
  local folder=$1
  (cd "$folder" && quietly apt-get download "${@:2}") || return
  for package in "$folder"/*.deb; do quietly dpkg-deb -x "$package" "$folder" || return; done
  rm -f "$folder"/*.deb
}

# What a package needs to run: everything that it depends on and that is not installed, and what was
# built together with it, which may be installed here and removed tomorrow. None of it is configured.
needed_packages() {
  local listed
  listed=$(apt-get -s -o Dir::State::status=/dev/null install --no-install-recommends "$@" 2>&1) || {
    printf '%s\ntest_tools: apt knows no %s: run apt-get update\n' "$listed" "$*" >&2
    return 1
  }
  awk '/^Inst /{print $2}' <<<"$listed" | while read -r package; do
    case $package in
      systemd | libsystemd-shared | init-system-helpers | mount | adduser | passwd | ucf | debconf | perl* | procps) ;;
      *slurm* | *munge* | *openmpi* | *pmix* | *prrte* | etcd*) echo "$package" ;;
      *) dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || echo "$package" ;;
    esac
  done
}

# Programs that Debian names by its alternatives (slurmd-wlm, mpirun.openmpi) under their own names.
link_programs() {
  local program name
  mkdir -p "$1/bin"
  for program in "$1"/usr/sbin/* "$1"/usr/bin/* "$1"/sbin/* "$1"/bin/*; do
    [ -f "$program" ] || continue
    name=$(basename "$program")
    name=${name%-wlm}
    [ "$1/bin/$name" -ef "$program" ] || ln -sf "../${program#"$1"/}" "$1/bin/${name%.openmpi}"
  done
}

services=.deps/services
if [ ! -f "$services/.done" ] || ! tests/services.py --check >/dev/null 2>&1; then
  echo "test_tools: unpacking Slurm, munge, etcd, Open MPI and Prometheus below .deps" >&2
  rm -rf "$services"
  mkdir -p "$services"
  mapfile -t wanted < <(packages service)
  names=$(needed_packages "${wanted[@]}")
  mapfile -t needed <<<"$names"$'\n'"$(packages monitor)"
  unpack_packages "$services" "${needed[@]}"
  rm -rf "$services"/{etc/init.d,lib/systemd,usr/lib/systemd,usr/share/doc,usr/share/man}
  link_programs "$services"
  tests/services.py --check
  touch "$services/.done"
fi

# clang-format of one version everywhere, so that all systems agree on what is formatted.
format_version=14.0.6
format_dir=.deps/clang-format-$format_version
if [ ! -f "$format_dir/.done" ]; then
  echo "test_tools: unpacking clang-format $format_version from its wheel" >&2
  unpack_wheel "clang-format==$format_version" manylinux2014_x86_64 "$format_dir" 'clang_format/data/bin/*'
  chmod +x "$format_dir/clang_format/data/bin/clang-format"
  touch "$format_dir/.done"
fi

# What judges the JobSets of `skein launch`: the published schemas of JobSet and of Kubernetes.
schemas_dir=.deps/kubernetes-schemas-1
if [ ! -f "$schemas_dir/.done" ]; then
  echo "test_tools: installing the schemas of JobSet and Kubernetes below .deps" >&2
  rm -rf "$schemas_dir"
  quietly python3 -m pip install --target "$schemas_dir" \
    kubeflow-trainer-api==2.3.0 kubernetes-validate==1.37.0
  touch "$schemas_dir/.done"
fi

# What the tests read and write objects with: a store that speaks S3's protocol, and AWS's own client.
moto_dir=.deps/moto-5.2.5
if [ ! -f "$moto_dir/.done" ]; then
  echo "test_tools: installing moto 5.2.5, which stands in for S3, below .deps" >&2
  rm -rf "$moto_dir"
  quietly python3 -m pip install --target "$moto_dir" "moto[s3]==5.2.5" flask flask-cors
  touch "$moto_dir/.done"
fi

# The PJRT plugins that judge the PJRT backend: XLA for CPUs, of two versions.
unpack_plugin() { # NAME VERSION
  local folder=.deps/$1-plugin-$2
  [ ! -f "$folder/.done" ] || return 0
  echo "test_tools: unpacking the PJRT plugin $1 $2 from its wheel" >&2
  unpack_wheel "$1==$2" manylinux_2_27_x86_64 "$folder" '*.so'
  touch "$folder/.done"
}
unpack_plugin lammps-jax-pjrt-cpu 0.11.2
unpack_plugin xla-cpu-pjrt 0.0.1
