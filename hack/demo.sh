#!/usr/bin/env bash
# Shows the main job on a landscape that stays: a shoot is made, filled, moved under load, and looked at again.
# `make demo-down` takes the landscape away. Run again, it moves the shoot back.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh
hack/landscape.sh up demo
hack/install.sh demo
say "compiling the demonstration"
logged "$REPOT_CACHE/log/demo-compile.log" cargo build -p repot-tests --bin demo
"$CARGO_TARGET_DIR/$CARGO_BUILD_TARGET/debug/demo"
