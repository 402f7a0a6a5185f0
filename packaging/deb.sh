#!/usr/bin/env bash
# A Debian package of a tree of packaging/stage.sh; prints its path.
#
#   packaging/deb.sh STAGE VERSION OUT_DIR
#
# It takes the system's C library, which it names among its dependencies, so neither the launcher nor glibc
# is in it; all other libraries are, in /usr/lib/skein: one package for every release that has that glibc.
# It has no scripts and writes nothing outside its own files: what is purged leaves nothing.
set -euo pipefail
stage=$1 version=$2 out=$(realpath -m "$3")
cd "$(dirname "$0")/.."
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
root=$temporary/root
doc=$root/usr/share/doc/skein
mkdir -p "$root/DEBIAN" "$root/usr/bin" "$root/usr/lib"
cp -a "$stage/share" "$root/usr/share"
cp -a "$stage/lib/skein" "$root/usr/lib/skein"
rm -r "$root/usr/lib/skein/glibc"
cp -a "$stage/libexec/skein" "$root/usr/bin/skein"

# Where and how Debian keeps documents and completions.
rm -r "$doc/LICENSE" "$doc/licences/common-licenses"
mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions"
gzip -9n "$root/usr/share/man/man1/skein.1"
sed "s|@VERSION@|$version|; s|@DATE@|$(date -R -d "@${SOURCE_DATE_EPOCH:-$(stat -c %Y CHANGELOG.md)}")|" \
  packaging/debian/changelog | gzip -9n > "$doc/changelog.gz"
cp packaging/debian/copyright "$doc/copyright"
mkdir -p "$root/usr/share/lintian/overrides"
cp packaging/debian/lintian-overrides "$root/usr/share/lintian/overrides/skein"

find "$root" -type d -exec chmod 755 {} +
find "$root" -type f -exec chmod 644 {} +
chmod 755 "$root/usr/bin/skein"
glibc=$(sed -n 's/.*glibc where it is \([0-9.]*\) or later.*/\1/p' "$stage/REQUIRES")
architecture=$(dpkg --print-architecture)
sed "s|@VERSION@|$version|; s|@ARCHITECTURE@|$architecture|; s|@GLIBC@|$glibc|; s|@SIZE@|$(du -sk "$root/usr" | cut -f1)|" \
  packaging/debian/control > "$root/DEBIAN/control"
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum > DEBIAN/md5sums)
chmod 644 "$root/DEBIAN"/*
package=$out/skein_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$root" "$package" > /dev/null
echo "$package"
