#!/usr/bin/env bash
# Shows the main job on a landscape that stays: a shoot is made, filled, moved under load, and looked at again. BAD_CASE=1: its seed
# is cut off, another one takes the shoot over, and the seed comes back.
# `make demo-down` takes the landscape away. Run again, it moves the shoot back.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh
hack/landscape.sh up demo
# The demonstration is compiled together with the suite: see hack/images.sh.
IMAGE_ALSO=demo hack/install.sh demo
folder=${IMAGE_PROFILE:-dev}
[ "$folder" != dev ] || folder=debug
"$CARGO_TARGET_DIR/$CARGO_BUILD_TARGET/$folder/demo"
