#!/usr/bin/env bash
# The documents as a site, in build/site: open build/site/index.html. Fails where a link or an anchor leads nowhere.
#
#   scripts/site.sh
#
# MkDocs and its theme come from PyPI, in these versions, into build/site_tools (once).
set -euo pipefail
cd "$(dirname "$0")/.."
tools=build/site_tools
versions='mkdocs==1.6.1 mkdocs-material==9.8.2'

if [ "$(cat $tools/versions 2>/dev/null)" != "$versions" ]; then
  python3 -m venv --clear $tools
  # shellcheck disable=SC2086  # one word a package
  $tools/bin/pip install --quiet --disable-pip-version-check $versions
  echo "$versions" > $tools/versions
fi
mkdir -p build/site_pages
python3 scripts/site.py build/site_pages/docs
log=build/site_pages/log
# Not --quiet: then warnings would not count as errors.
if ! NO_MKDOCS_2_WARNING=1 $tools/bin/mkdocs build --strict --config-file build/site_pages/mkdocs.yml \
  --site-dir "$PWD/build/site" 2> $log; then
  grep -E 'WARNING|ERROR|Aborted' $log >&2 || cat $log >&2
  exit 1
fi
echo "build/site/index.html: $(find build/site -name '*.html' | wc -l) pages, no broken link"
