#!/usr/bin/env bash
# Installs what the build of build/skein needs and nothing else, from the distribution and PyPI: no
# service, and nothing that only tests need (the tests bring their own). Safe to run again: it does nothing
# where nothing is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

names=$(packages build) || exit 2
mapfile -t needed <<<"$names"
install_packages "${needed[@]}"

# Arrow comes out of the pyarrow wheel: its headers, shared libraries and licences, no Python at run time.
arrow_version=26.0.1
arrow_dir=.deps/pyarrow-$arrow_version
if [ ! -f "$arrow_dir/.done-with-licences" ]; then
  echo "setup: unpacking Arrow $arrow_version from the pyarrow wheel" >&2
  unpack_wheel "pyarrow==$arrow_version" manylinux_2_28_x86_64 "$arrow_dir" 'pyarrow/include/*' \
    'pyarrow/libarrow.so.*' 'pyarrow/libarrow_s3.so.*' 'pyarrow/libparquet.so.*' \
    '*.dist-info/licenses/*'
  touch "$arrow_dir/.done-with-licences"
fi

# The CUDA backend is compiled against the headers of cuDNN's frontend, out of its wheel.
frontend_version=1.32.0
frontend_dir=.deps/cudnn-frontend-$frontend_version
if command -v nvcc >/dev/null && [[ ${SKEIN_CUDA:-} != OFF* ]] && [ ! -f "$frontend_dir/.done-with-licences" ]; then
  echo "setup: unpacking the headers of cuDNN's frontend $frontend_version from its wheel" >&2
  unpack_wheel "nvidia-cudnn-frontend==$frontend_version" manylinux_2_28_x86_64 "$frontend_dir" 'include/*' \
    '*.dist-info/licenses/*'
  touch "$frontend_dir/.done-with-licences"
fi

# The PJRT backend is compiled against the header of PJRT's C interface, which this wheel carries.
pjrt_version=0.0.1
pjrt_dir=.deps/xla-cpu-pjrt-$pjrt_version
if [[ ${SKEIN_PJRT:-} != OFF ]] && [ ! -f "$pjrt_dir/.done-with-licences" ]; then
  echo "setup: unpacking the header of PJRT from the wheel of xla-cpu-pjrt $pjrt_version" >&2
  unpack_wheel "xla-cpu-pjrt==$pjrt_version" manylinux_2_27_x86_64 "$pjrt_dir" '*/include/*'
  # The wheel has no file of its licence; the header begins with it.
  licences=$pjrt_dir/xla_cpu_pjrt-$pjrt_version.dist-info/licenses
  mkdir -p "$licences"
  { sed -n '1,/\*\//p' "$pjrt_dir"/*/*/include/pjrt_c_api.h
    echo 'The licence: /usr/share/common-licenses/Apache-2.0'; } > "$licences/pjrt_c_api.h.txt"
  touch "$pjrt_dir/.done-with-licences"
fi
