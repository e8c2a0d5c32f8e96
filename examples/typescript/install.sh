#!/usr/bin/env bash
# Installs what the lockfile beside it names.
#
#   examples/typescript/install.sh FOLDER
set -euo pipefail
from=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"
cmp -s "$from/package-lock.json" installed && exit
command -v npm >/dev/null || { echo "install.sh: npm is missing: install it first" >&2; exit 1; }
cp "$from"/package*.json .
npm ci --ignore-scripts --no-audit --no-fund --silent
cp "$from/package-lock.json" installed
