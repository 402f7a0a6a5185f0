#!/usr/bin/env bash
# The archive of scripts/package.sh in a root that holds nothing else, and in one that holds this machine's
# C library; a driver's libraries. Exit code 77: skipped, a chroot is not possible here. Other places: package_places.py.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec tests/scripts/package_places.py empty system drivers
