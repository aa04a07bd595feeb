#!/usr/bin/env bash
# Builds and runs xtask:  hack/xtask.sh layering|flows|language|links|rights|alerts|generate [ARGUMENTS…]
# The whole workspace and one test are named, so that dependencies get the same features as in hack/test.sh: `cargo run -p xtask`
# compiles 69 dependencies and 14 crates of the workspace that `make test` cannot use.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh
refuse_registry
# The page and the check of rights render the charts.
case ${1:-} in rights | generate) hack/tools.sh helm ;; esac
cargo build --quiet --workspace --bin xtask --test generated
exec "$CARGO_TARGET_DIR/$CARGO_BUILD_TARGET/debug/xtask" "$@"
