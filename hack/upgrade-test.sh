#!/usr/bin/env bash
# Shows that the suite can be upgraded from the previous release while a shoot moves and a second shoot is taken over, and that a seed
# can be taken back (tests/e2e_upgrade.rs). Part 6 of hack/e2e.sh, on landscape e2e, which must not be up.
#   hack/upgrade-test.sh
# The images of the release have its tag, those of this version the tag `dev`.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh
NAME=e2e
. hack/landscape/settings.sh
[ ! -f "$STATE/landscape.env" ] || fail "landscape e2e is up, maybe with this version: hack/landscape.sh down e2e"
# A test is a whole story in one future: see hack/e2e.sh.
export RUST_MIN_STACK=${RUST_MIN_STACK:-16777216}

say "providing the previous release"
release=$(hack/previous-release.sh)
tag=${release%% *} previous=${release#* }
# As in hack/e2e.sh, so that all targets share one build of each dependency.
suite=(--workspace --features repot-tests/e2e)
hack/packages.sh protobuf-compiler
compile "$REPOT_CACHE/log/e2e-compile.log" cargo build --bins "${suite[@]}" --test e2e_upgrade ||
  fail "cargo build failed (log: $REPOT_CACHE/log/e2e-compile.log)"
# One host plays all zones, as no zone is closed.
REPOT_HOSTS=1 hack/landscape.sh up "$NAME"
set -a && . "$STATE/landscape.env" && set +a
say "installing release $tag"
# The scripts of the release may print nothing for a while.
start_ticker "installing release $tag"
IMAGE_TAG=$tag IMAGE_BINARIES=$previous/bin "$previous/tree/hack/install.sh" "$NAME"
stop_ticker
before=hack/upgrade/from-$tag.sh
if [ -x "$before" ]; then
  say "preparing the upgrade: $before"
  "$before" "$previous/tree"
fi
# Before any machine: a machine takes its images along from its host, and pulls none later.
say "putting the images of this version beside those of release $tag"
IMAGE_FORMER_TAG=$tag IMAGE_BINARIES=$CARGO_TARGET_DIR/$CARGO_BUILD_TARGET/debug hack/images.sh --garden "$GARDEN_CLUSTER" \
  --seed "$SEED_A_CLUSTER" --seed "$SEED_B_CLUSTER" --cloud "$INFRA_CLUSTER"
say "upgrading from release $tag; the test prints each step"
REPOT_PREVIOUS_TAG=$tag cargo test "${suite[@]}" --test e2e_upgrade -- --nocapture 9>&- || fail "the upgrade from release $tag failed"
say "upgraded from release $tag"
