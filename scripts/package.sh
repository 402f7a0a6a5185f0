#!/usr/bin/env bash
# Packs the program for machines that have none of its libraries: as a tar archive that runs wherever it is
# unpacked, as a Debian package, as a Python wheel. All are made of the tree of packaging/stage.sh.
#
#   scripts/package.sh [--no-build] [--archive] [--deb] [--wheel] [OUT_DIR]     OUT_DIR: build/package
#
#   --no-build    takes what is in build/ as it is
#   --archive     skein-VERSION-linux-ARCHITECTURE.tar.gz; what is made where nothing is named
#   --deb         skein_VERSION_ARCHITECTURE.deb
#   --wheel       skein_llm-VERSION-….whl
#
# Beside each file lies its checksum, FILE.sha256: `sha256sum -c FILE.sha256` in its folder.
#
# Left to the other machine: Linux (what stands in REQUIRES), and for GPUs the driver, cuBLASLt, cuDNN and NCCL.
set -euo pipefail
from=$PWD
cd "$(dirname "$0")/.."
build=yes out=$PWD/build/package kinds=()
while [ $# -gt 0 ]; do
  case $1 in
    --no-build) build='' ;;
    --archive | --deb | --wheel) kinds+=("${1#--}") ;;
    -*) echo "package: $1: expected --no-build, --archive, --deb, --wheel or a folder" >&2; exit 2 ;;
    /*) out=$1 ;;
    *) out=$from/$1 ;;
  esac
  shift
done
((${#kinds[@]})) || kinds=(archive)
[ -z "$build" ] || scripts/build.sh release skein

temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
version=$(build/skein version --json | sed -n 's/.*"version": *"\([^"]*\)".*/\1/p')
name=skein-$version-linux-$(uname -m)
packaging/stage.sh "$temporary/$name"
mkdir -p "$out"
for kind in "${kinds[@]}"; do
  case $kind in
    archive)
      made=$out/$name.tar.gz
      tar -C "$temporary" --owner=0 --group=0 --mtime=@0 --sort=name -czf "$made" "$name" ;;
    deb) made=$(packaging/deb.sh "$temporary/$name" "$version" "$out") ;;
    wheel) made=$(packaging/wheel.py "$temporary/$name" "$version" "$out") ;;
  esac
  (cd "$(dirname "$made")" && sha256sum "$(basename "$made")" > "$(basename "$made").sha256")
  echo "$made: $(stat -c %s "$made") bytes, sha256 $(cut -c1-64 "$made.sha256")" >&2
done
echo "needs $(cat "$temporary/$name/REQUIRES")" >&2
