#!/usr/bin/env bash
# Makes a relocatable archive: what cmake --install installs, and every shared library that the program
# needs but those of glibc. It runs wherever it is unpacked.
#
#   scripts/package.sh [--no-build] [OUT_DIR]       OUT_DIR: build/package
#
#   --no-build    takes what is in build/ as it is
#
# Left to the other machine: Linux on x86-64, glibc (how new is printed and stands in REQUIRES), and for
# GPUs the driver, cuBLASLt, cuDNN and NCCL.
set -euo pipefail
from=$PWD
cd "$(dirname "$0")/.."
build=yes
if [ "${1:-}" = --no-build ]; then
  build=''
  shift
fi
out=${1:-"$PWD/build/package"}
[[ $out = /* ]] || out=$from/$out
[ -z "$build" ] || scripts/build.sh release skein

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
version=$(build/skein version --json | sed -n 's/.*"version": *"\([^"]*\)".*/\1/p')
name=skein-$version-linux-$(uname -m)
root=$stage/$name
cmake --install build --prefix "$root" --strip > "$stage/install.log" || { cat "$stage/install.log" >&2; exit 1; }
library_dir=$(dirname "$(find "$root" -name 'libarrow.so.*' -print -quit)")

# Libraries, and the licences that Debian keeps of each.
libraries=$(ldd "$root/bin/skein")
if grep -q 'not found' <<< "$libraries"; then
  echo "package: ldd says$(grep -m 1 'not found' <<< "$libraries")" >&2
  exit 1
fi
left_there='^(ld-linux-x86-64|libc|libm|libmvec|libpthread|libdl|librt|libresolv|libutil|libcuda|libnvidia-.*)\.so'
licences=$root/share/doc/skein/licences
mkdir -p "$licences"
awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' <<< "$libraries" | sort -u | while read -r library path; do
  [[ $library =~ $left_there ]] && continue
  [ -e "$library_dir/$library" ] || strip --strip-unneeded -o "$library_dir/$library" "$path"
  package=$(dpkg -S "$(realpath "$path")" 2>/dev/null || dpkg -S "${path#/usr}" 2>/dev/null) || continue
  package=${package%%:*}
  [ ! -f "/usr/share/doc/$package/copyright" ] || cp "/usr/share/doc/$package/copyright" "$licences/$package"
done

glibc=$(objdump -T "$root/bin/skein" "$library_dir"/*.so.* | grep -oP 'GLIBC_\K2\.[0-9.]+' | sort -uV | tail -n 1)
echo "Linux on $(uname -m), glibc $glibc or later" > "$root/REQUIRES"
mkdir -p "$out"
tar -C "$stage" --owner=0 --group=0 --mtime=@0 --sort=name -czf "$out/$name.tar.gz" "$name"
echo "$out/$name.tar.gz: $(stat -c %s "$out/$name.tar.gz") bytes, needs $(cat "$root/REQUIRES")" >&2
