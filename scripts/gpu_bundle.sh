#!/usr/bin/env bash
# Packs what scripts/gpu_check.sh needs for a machine that has a GPU and nothing of what
# scripts/setup.sh installs: the programs, the shared libraries that they need, the goldens.
#
#   scripts/gpu_bundle.sh [--no-build] [DIR]       DIR: build/gpu-bundle
#
#   --no-build    takes what is in build/ as it is
#
# The folder holds gpu_check.sh, to be run there, and an archive that it unpacks. At most 60 MB. What is
# left to the other machine: glibc (how new is printed), the driver, cuBLASLt and cuDNN, python3.
set -euo pipefail
cd "$(dirname "$0")/.."
build=yes
if [ "${1:-}" = --no-build ]; then
  build=''
  shift
fi
dir=${1:-build/gpu-bundle}
max_bytes=60000000
programs=(skein skein_cuda_test decoder_goldens_test bit_identity_test train_bench kernel_bench)

[ -z "$build" ] || scripts/build.sh release "${programs[@]}"
if ! grep -q '^CMAKE_CUDA_COMPILER:.*=/' build/CMakeCache.txt 2>/dev/null; then
  echo "gpu_bundle: build/ has no CUDA backend: nvcc was not found when it was configured" >&2
  exit 1
fi

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage/build/lib" "$stage/bench" "$stage/scripts" "$stage/tests/goldens" "$stage/configs/models"
missing=()
for program in "${programs[@]}"; do
  [ -x "build/$program" ] || { missing+=("$program"); continue; }
  strip --strip-unneeded -o "$stage/build/$program" "build/$program"
done
((${#missing[@]} == 0)) || { echo "gpu_bundle: build/ lacks ${missing[*]}" >&2; exit 1; }

# Everything that the programs load but glibc and the driver.
libraries=$(ldd "${programs[@]/#/build/}")
if grep -q 'not found' <<< "$libraries"; then
  echo "gpu_bundle: ldd says$(grep -m 1 'not found' <<< "$libraries")" >&2
  exit 1
fi
left_there='^(ld-linux-x86-64|libc|libm|libpthread|libdl|librt|libresolv|libutil|libcuda|libnvidia-.*)\.so'
awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' <<< "$libraries" | sort -u | while read -r name path; do
  [[ $name =~ $left_there ]] || strip --strip-unneeded -o "$stage/build/lib/$name" "$path"
done

sed -n 's/^SKEIN_FAMILY(\(.*\))$/\1/p' skein/model/families.def |
  xargs -I{} cp -r tests/goldens/{} "$stage/tests/goldens/"
cp bench/compare_torch.py bench/compare_torch_gpu.sh "$stage/bench/"
cp scripts/gpu_check.sh scripts/gpu_sections.sh "$stage/scripts/"
cp scripts/gpu_results.py scripts/gpu_start.py scripts/within.py "$stage/scripts/"
cp configs/llama2-7b-h200.toml "$stage/configs/"
cp configs/models/llama2-7b.json "$stage/configs/models/"
cp LICENSE "$stage/"
git describe --always --dirty --exclude='*' --abbrev=40 > "$stage/COMMIT" 2>/dev/null || echo unknown > "$stage/COMMIT"
find "$stage/build" -type f -exec objdump -T {} + 2>/dev/null | grep -oP 'GLIBC_\K2\.[0-9.]+' |
  sort -uV | tail -n 1 > "$stage/GLIBC"

rm -rf "$dir"
mkdir -p "$dir"
# The programs side by side: most of each is kernels that the others have too, which xz finds again.
tar -C "$stage" --owner=0 --group=0 --mtime=@0 --sort=name -cf - "${programs[@]/#/build/}" build/lib \
  bench configs scripts tests LICENSE COMMIT GLIBC | xz --lzma2=preset=6,dict=64MiB > "$dir/skein-gpu.tar.xz"
cp scripts/gpu_check.sh "$dir/"

bytes=$(du -sb "$dir" | cut -f1)
if ((bytes > max_bytes)); then
  echo "gpu_bundle: $dir has $bytes bytes, at most $max_bytes may be; the largest files before packing:" >&2
  find "$stage" -type f -printf '%s %P\n' | sort -rn | head -n 10 >&2
  exit 1
fi
echo "$dir: $bytes bytes, commit $(cat "$stage/COMMIT"), needs glibc $(cat "$stage/GLIBC") or later" >&2
echo "there: gpu_check.sh A|B|C|D [RESULTS.json]" >&2
