#!/usr/bin/env bash
# Deletes downloads, built tools, images kept as files, and build results. Clusters and containers stay: that is
# hack/demo-down.sh's.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh

# An empty or a root path here would delete what is not ours.
case ${REPOT_CACHE:?} in */repot | */repot/*) ;; *) fail "REPOT_CACHE=$REPOT_CACHE does not look like a cache of this project; delete it yourself" ;; esac
# A landscape that is up keeps its state here; without it nothing could take the landscape away.
for state in "$REPOT_CACHE"/landscape/*/landscape.env; do
  [ ! -e "$state" ] || fail "landscape $(basename "$(dirname "$state")") is up; take it away first: make demo-down"
done
hack/docker.sh down
rm -rf "$REPOT_CACHE"
say "deleted $REPOT_CACHE"
