#!/usr/bin/env bash
# Shows the main job on a landscape that stays: a shoot is made, filled, moved under load, and looked at again. BAD_CASE=1: its seed
# is cut off, another one takes the shoot over, and the seed comes back.
# `make demo-down` takes the landscape away. Run again, it moves the shoot back.
# REPOT_REGISTRY=REGISTRY pulls what hack/demo-registry.sh has pushed there, and builds nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh
folder=${IMAGE_PROFILE:-dev}
[ "$folder" != dev ] || folder=debug
program=$CARGO_TARGET_DIR/$CARGO_BUILD_TARGET/$folder/demo
if [ -n "${REPOT_REGISTRY:-}" ]; then
  hack/demo-registry.sh pull "$REPOT_REGISTRY"
  REPOT_NODE_IMAGE=$(cat "$REPOT_CACHE/demo/node")
  export REPOT_NODE_IMAGE REPOT_PULLED=1 REPOT_REPOSITORY=$PWD
  program=$REPOT_CACHE/demo/demo
fi
hack/landscape.sh up demo
# The demonstration is compiled together with the suite: see hack/images.sh.
IMAGE_ALSO=demo hack/install.sh demo
"$program"
