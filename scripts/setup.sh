#!/usr/bin/env bash
# Installs what the build and the tests need, from Debian and PyPI. Safe to run again: it does nothing
# where nothing is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

# What a command prints is shown where it fails: apt and pip say much that nobody asked for.
quietly() {
  local output status=0
  output=$("$@" 2>&1) || status=$?
  [ $status = 0 ] || printf '%s\nsetup: failed (exit code %d): %s\n' "$output" $status "$*" >&2
  return $status
}

packages=(
  build-essential cmake ninja-build ccache pkg-config git
  libdnnl-dev libgloo-dev libhwy-dev libsentencepiece-dev
  nlohmann-json3-dev libtomlplusplus-dev libcli11-dev libspdlog-dev libfmt-dev
  libxxhash-dev libutf8proc-dev zlib1g-dev libzstd-dev libcurl4-openssl-dev libssl-dev libfasttext-dev
  libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev etcd-server
  clang-14 libclang-rt-14-dev libomp-14-dev clang-format-14 clang-tidy-14
  python3 python3-pip unzip
  slurmctld slurmd slurm-client munge openmpi-bin
)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if ((${#missing[@]})); then
  sudo=()
  [ "$(id -u)" = 0 ] || sudo=(sudo)
  echo "setup: installing ${missing[*]}" >&2
  quietly "${sudo[@]}" apt-get update
  DEBIAN_FRONTEND=noninteractive quietly "${sudo[@]}" apt-get install -y --no-install-recommends "${missing[@]}"
fi

# Arrow comes out of the pyarrow wheel: its headers and shared libraries, no Python at run time.
arrow_version=26.0.1
arrow_dir=.deps/pyarrow-$arrow_version
if [ ! -f "$arrow_dir/.done-with-s3" ]; then
  echo "setup: unpacking Arrow $arrow_version from the pyarrow wheel" >&2
  rm -rf "$arrow_dir" .deps/wheel
  mkdir -p .deps/wheel "$arrow_dir"
  quietly python3 -m pip download --no-deps --only-binary=:all: --python-version 3.11 \
    --implementation cp --platform manylinux_2_28_x86_64 -d .deps/wheel "pyarrow==$arrow_version"
  unzip -q .deps/wheel/pyarrow-*.whl 'pyarrow/include/*' 'pyarrow/libarrow.so.*' 'pyarrow/libarrow_s3.so.*' \
    'pyarrow/libparquet.so.*' -d "$arrow_dir"
  rm -rf .deps/wheel
  touch "$arrow_dir/.done-with-s3"
fi

# promtool and Prometheus judge what the program serves and the rules in configs/monitoring. They are
# unpacked, not installed: the package would start a service.
if [ ! -f .deps/prometheus/.done ]; then
  echo "setup: unpacking Prometheus from Debian's package" >&2
  rm -rf .deps/prometheus
  mkdir -p .deps/prometheus
  (cd .deps/prometheus && quietly apt-get download prometheus && dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb)
  touch .deps/prometheus/.done
fi

# The CUDA backend is compiled against the headers of cuDNN's frontend, out of its wheel.
frontend_version=1.32.0
frontend_dir=.deps/cudnn-frontend-$frontend_version
if command -v nvcc >/dev/null && [ "${SKEIN_CUDA:-}" != OFF ] && [ ! -f "$frontend_dir/.done" ]; then
  echo "setup: unpacking the headers of cuDNN's frontend $frontend_version from its wheel" >&2
  rm -rf "$frontend_dir" .deps/wheel
  mkdir -p .deps/wheel "$frontend_dir"
  quietly python3 -m pip download --no-deps --only-binary=:all: --python-version 3.11 \
    --implementation cp --platform manylinux_2_28_x86_64 -d .deps/wheel "nvidia-cudnn-frontend==$frontend_version"
  unzip -q .deps/wheel/nvidia_cudnn_frontend-*.whl 'include/*' -d "$frontend_dir"
  rm -rf .deps/wheel
  touch "$frontend_dir/.done"
fi

# What judges the JobSets of `skein launch`: the published schemas of JobSet and of Kubernetes.
schemas_dir=.deps/kubernetes-schemas-1
if [ ! -f "$schemas_dir/.done" ]; then
  echo "setup: installing the schemas of JobSet and Kubernetes" >&2
  rm -rf "$schemas_dir"
  quietly python3 -m pip install --target "$schemas_dir" \
    kubeflow-trainer-api==2.3.0 kubernetes-validate==1.37.0 PyYAML
  touch "$schemas_dir/.done"
fi

# What the tests read and write objects with: a store that speaks S3's protocol, and AWS's own client.
moto_dir=.deps/moto-5.2.5
if [ ! -f "$moto_dir/.done" ]; then
  echo "setup: installing moto 5.2.5, which stands in for S3" >&2
  rm -rf "$moto_dir"
  quietly python3 -m pip install --target "$moto_dir" "moto[s3]==5.2.5" flask flask-cors
  touch "$moto_dir/.done"
fi
