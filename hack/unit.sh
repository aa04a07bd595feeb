#!/usr/bin/env bash
# Tests that start no server: those beside the code, of the generated manifests, and of starts that are refused.
#   hack/unit.sh [CARGO TEST ARGUMENTS…]     e.g. -- part of a test's name
# A test that wants a server fails here: testkit starts none. So the choice below cannot go wrong in silence.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh
refuse_registry

# How long these tests may take once they are built.
LIMIT=300
# With the whole workspace, as in hack/test.sh: no dependency is compiled again with other features.
suite=(--workspace --lib --bins --test generated --test manifests --test shapes --test refusal)

hack/packages.sh protobuf-compiler
compile "$REPOT_CACHE/log/unit-compile.log" cargo test "${suite[@]}" --no-run ||
  fail "cargo test could not compile (log: $REPOT_CACHE/log/unit-compile.log)"
export REPOT_NO_SERVERS="make unit starts no servers" RUST_LOG="${RUST_LOG:-error}"
say "running unit tests"
status=0
# One module beside the code needs an API server, because it looks into the elector.
timeout --kill-after=30 "$LIMIT" cargo test --quiet "${suite[@]}" --no-fail-fast "$@" -- --skip two_managers:: 2>&1 |
  tee "$REPOT_CACHE/unit.log" || status=$?
count_tests "$REPOT_CACHE/unit.log"
[ "$status" -eq 0 ] || fail "tests failed, or took longer than $LIMIT s; the output is in $REPOT_CACHE/unit.log"
