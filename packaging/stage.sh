#!/usr/bin/env bash
# Makes the tree that an archive, a Debian package, a wheel and an image are made of, out of build/:
#
#   packaging/stage.sh DIR        DIR: empty, or not there
#
#   bin/skein            static; starts libexec/skein (launcher.c)
#   libexec/skein        the program
#   lib/skein            every shared library that it needs but those of glibc
#   lib/skein/glibc      glibc's loader and libraries, for systems whose own are older
#   share                manual page, completions, configurations, documents, licences
#   REQUIRES             what is left to the other machine, in one line
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(realpath -m "$1")
mkdir -p "$root"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --install build --prefix "$root" --strip > "$log" || { cat "$log" >&2; exit 1; }
own=$root/lib/skein
[ -n "$(find "$own" -name 'libarrow.so.*' -print -quit)" ] ||
  { echo "stage: build/ installs its libraries elsewhere than in lib/skein" >&2; exit 1; }
mkdir "$root/libexec" "$own/glibc"
mv "$root/bin/skein" "$root/libexec/skein"

# Libraries: Arrow's, which cmake installs as they are, and all others.
strip --strip-unneeded "$own"/lib*
libraries=$(ldd "$root/libexec/skein")
if grep -q 'not found' <<< "$libraries"; then
  echo "stage: ldd says$(grep -m 1 'not found' <<< "$libraries")" >&2
  exit 1
fi
of_glibc='^(ld-linux-[a-z0-9-]*|libc|libm|libmvec|libpthread|libdl|librt|libresolv|libutil|libanl)\.so'
of_drivers='^(libcuda|libnvidia-.*)\.so'
awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' <<< "$libraries" | sort -u | while read -r library path; do
  [[ ! $library =~ $of_glibc && ! $library =~ $of_drivers ]] || continue
  [ -e "$own/$library" ] || strip --strip-unneeded -o "$own/$library" "$path"
done

# glibc as it is here, with what it loads by itself when it looks up names of hosts and users.
c_library=$(awk '$1 == "libc.so.6" {print $3}' <<< "$libraries")
loader=$(awk '$1 ~ /^\/.*\/ld-linux-/ {print $1}' <<< "$libraries")
beside=$(dirname "$(realpath "$c_library")")
cp -L "$loader" "$own/glibc/"
for name in libc.so.6 libm.so.6 libmvec.so.1 libpthread.so.0 libdl.so.2 librt.so.1 libresolv.so.2 libutil.so.1 \
  libanl.so.1 libnss_files.so.2 libnss_dns.so.2 libnss_compat.so.2; do
  [ ! -e "$beside/$name" ] || cp -L "$beside/$name" "$own/glibc/"
done

# Licences of other people's code: of the libraries above, and of those that are in the program itself,
# which are the headers and the static libraries that ninja knows of.
objects=$(ninja -C build -t inputs skein | grep '\.o$')
headers=$(xargs ninja -C build -t deps <<< "$objects" | sed -n 's|^    ||p')
[ -n "$headers" ] || { echo "stage: ninja knows no header of build/skein: build it with scripts/build.sh" >&2; exit 1; }
{
  awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' <<< "$libraries" | grep -vE "$of_drivers| $root/" | cut -d' ' -f2
  ninja -C build -t inputs skein | sed -n '\|^/.*\.a$|p'
  (cd build && sort -u <<< "$headers" | xargs -d '\n' realpath) | grep -v "^$(pwd -P)/\(skein\|build\|cmake\)/"
} | packaging/licences.sh "$root/share/doc/skein/licences"

glibc=$(objdump -T "$root/libexec/skein" "$own"/*.so.* | grep -oP 'GLIBC_\K2\.[0-9.]+' | sort -uV | tail -n 1)
kernel=$(readelf -n "$own/glibc/libc.so.6" | sed -n 's/.*OS: Linux, ABI: //p')
"${CC:-cc}" -std=c11 -Os -static -s -Wall -Wextra -Werror "-DNEEDS=\"GLIBC_$glibc\"" "-DLOADER=\"$loader\"" \
  "-DTRIPLET=\"$(uname -m)-linux-gnu\"" packaging/launcher.c -o "$root/bin/skein"
echo "Linux $kernel or later on $(uname -m); glibc where it is $glibc or later, else the one in lib/skein/glibc" \
  > "$root/REQUIRES"
