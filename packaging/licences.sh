#!/usr/bin/env bash
# Copies the licences of what FILEs, one a line of standard input, are of into a folder:
#
#   packaging/licences.sh DIR < FILES
#
#   PACKAGE                the copyright file of the Debian package that a file is of
#   WHEEL-VERSION.NAME     each file of licences/ of the wheel that a file below .deps is of
#   common-licenses/NAME   texts of /usr/share/common-licenses that these files name
#
# A file that belongs to neither is named in a warning.
set -euo pipefail
directory=$1
mkdir -p "$directory"
deps=$(realpath -m "$(dirname "$0")/../.deps")
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
xargs -rd '\n' realpath -m | sort -u > "$temporary/files"

# Wheels that scripts/setup.sh unpacked.
sed -n "s|^$deps/\([^/]*\)/.*|\1|p" "$temporary/files" | sort -u | while read -r wheel; do
  texts=("$deps/$wheel"/*.dist-info/licenses/*)
  [ -f "${texts[0]}" ] || { echo "licences: .deps/$wheel holds no licence: run scripts/setup.sh" >&2; exit 1; }
  for text in "${texts[@]}"; do cp "$text" "$directory/$wheel.$(basename "$text")"; done
done

# Debian packages. Where /lib is a link to /usr/lib, dpkg may know a file by either name.
sed "\|^$deps/|d" "$temporary/files" > "$temporary/others"
sed 'p; s|^/usr/|/|' "$temporary/others" | xargs -rd '\n' dpkg -S 2> "$temporary/unknown" > "$temporary/owners" ||
  [ $? = 123 ]  # for a file that no package has; the check below names it
sed -n 's|^\([a-z0-9.+-]*\)[:,].*|\1|p' "$temporary/owners" | sort -u |
  while read -r package; do
    [ ! -f "/usr/share/doc/$package/copyright" ] || cp "/usr/share/doc/$package/copyright" "$directory/$package"
  done
sed 's|.*: /|/|; s|^/usr/|/|' "$temporary/owners" | sort -u > "$temporary/known"
sed 's|^/usr/|/|' "$temporary/others" | sort -u | comm -23 - "$temporary/known" > "$temporary/without"
[ ! -s "$temporary/without" ] ||
  echo "licences: no package is known of $(wc -l < "$temporary/without") files, such as" \
    "$(head -n 1 "$temporary/without"): add their licences by hand" >&2

# Debian keeps these once, and names them.
{ grep -rhoE '/usr/share/common-licenses/[A-Za-z0-9+-]+(\.[0-9]+)*' "$directory" || [ $? = 1 ]; } | sort -u |
  while read -r text; do
    [ ! -f "$text" ] || install -D -m 644 "$text" "$directory/common-licenses/$(basename "$text")"
  done
