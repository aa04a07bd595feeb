#!/usr/bin/env bash
# Unit tests and tests on real server processes. Tests on clusters need the feature e2e and are hack/e2e.sh's.
#   hack/test.sh [CARGO TEST ARGUMENTS…]
# Without arguments the drill, which mostly waits, runs beside all others; REPOT_TEST_BESIDE= runs it in its turn.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh

# How long all tests may take once they are built. Thrice what they take on two busy cores.
LIMIT=3000

hack/packages.sh protobuf-compiler knot util-linux
hack/tools.sh etcd etcdctl etcdutl kube-apiserver kube-controller-manager kube-scheduler kubectl helm s3s-fs
# Servers that a whole test binary shares end with it, but nobody removes their folders: they are made below this one.
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/repot-test-XXXXXX")
export TMPDIR
beside="" drill=""
[ $# -gt 0 ] || drill=${REPOT_TEST_BESIDE-drill}
clean_up() {
  # The whole group: what Cargo has started does not end with it. It may be over already.
  if [ -n "$beside" ] && kill -- "-$beside" 2>/dev/null; then wait "$beside" || say "the test beside was stopped"; fi
  rm -rf -- "$TMPDIR"
}
trap clean_up EXIT
trap 'exit 130' INT TERM
compile "$REPOT_CACHE/log/test-compile.log" cargo test --workspace --no-run "$@" ||
  fail "cargo test could not compile (log: $REPOT_CACHE/log/test-compile.log)"
# Processes under test log to the same output; their progress is of interest only to who asks.
export RUST_LOG="${RUST_LOG:-error}"
say "running tests"
export REPOT_TEST_SECONDS="$REPOT_CACHE/test-seconds"
: >"$REPOT_TEST_SECONDS"
runner=CARGO_TARGET_${CARGO_BUILD_TARGET//-/_}_RUNNER
export "${runner^^}=$PWD/hack/test-runner.sh"
status=0
if [ -n "$drill" ]; then
  REPOT_TEST_BESIDE="" setsid timeout --kill-after=30 "$LIMIT" cargo test --quiet --workspace --test "$drill" >"$REPOT_CACHE/test-$drill.log" 2>&1 & beside=$!
fi
REPOT_TEST_BESIDE=$drill timeout --kill-after=30 "$LIMIT" cargo test --quiet --workspace --no-fail-fast "$@" 2>&1 |
  tee "$REPOT_CACHE/test.log" || status=$?
if [ -n "$beside" ]; then
  say "waiting for $drill"
  wait "$beside" || status=$?
  beside=""
  tee -a "$REPOT_CACHE/test.log" <"$REPOT_CACHE/test-$drill.log"
fi
say "what took longest:"
sort -rn "$REPOT_TEST_SECONDS" | head -n 12 >&2
count_tests "$REPOT_CACHE/test.log"
[ "$status" -eq 0 ] || fail "tests failed, or took longer than $LIMIT s; the output is in $REPOT_CACHE/test.log"
