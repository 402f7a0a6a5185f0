#!/usr/bin/env bash
# Makes the root of a container image: the archive's program with its libraries and C library, a shell and
# the certificates of Debian's packages busybox-static and ca-certificates, and one user. No compiler, no
# Python, no package manager, nothing that is written to: the root may be mounted read-only.
#
#   packaging/image_root.sh ARCHIVE.tar.gz DIR
set -euo pipefail
archive=$1 root=$2
for file in /bin/busybox /etc/ssl/certs/ca-certificates.crt; do
  [ -s "$file" ] || { echo "image_root: no $file: install busybox-static and ca-certificates" >&2; exit 1; }
done
mkdir -p "$root"/{bin,dev,etc/ssl/certs,proc,sys,tmp,usr,data}
tar -C "$root/usr" --no-same-owner --strip-components=1 -xzf "$archive"
rm -r "$root/usr/share/man" "$root/usr/share/bash-completion" "$root/usr/share/zsh" "$root/usr/share/fish" \
  "$root/usr/share/doc/skein/docs"
cp /bin/busybox "$root/bin/busybox"
# What a person types who looks around, and `sh` for commands of log.on_event.
for name in sh cat cp df du env find grep head id kill ls mkdir mv nslookup ps rm sleep tail tee top touch vi wc wget; do
  ln -s busybox "$root/bin/$name"
done
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
printf '/usr/share/doc/%s/copyright\n' busybox-static ca-certificates |
  "$(dirname "$0")/licences.sh" "$root/usr/share/doc/skein/licences"
echo 'skein:x:65532:65532::/tmp:/bin/sh' > "$root/etc/passwd"
echo 'skein:x:65532:' > "$root/etc/group"
echo 'hosts: files dns' > "$root/etc/nsswitch.conf"
chmod 1777 "$root/tmp" "$root/data"
bytes() { du -sb --total "$@" | tail -n 1 | cut -f1; }
echo "$root: $(bytes "$root") bytes: the program and its libraries $(bytes --exclude=glibc "$root/usr"), the C library" \
  "$(bytes "$root/usr/lib/skein/glibc"), a shell and certificates $(bytes "$root/bin" "$root/etc")" >&2
