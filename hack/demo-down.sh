#!/usr/bin/env bash
# Takes the demonstration's landscape away; the caches stay.
set -euo pipefail
cd "$(dirname "$0")/.."
exec hack/landscape.sh down demo
