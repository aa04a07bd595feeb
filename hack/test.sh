#!/usr/bin/env bash
# Unit tests and tests on real server processes. Tests on clusters need the feature e2e and are hack/e2e.sh's.
#   hack/test.sh [CARGO TEST ARGUMENTS…]
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh

# How long all tests may take once they are built. Thrice what they take on two busy cores.
LIMIT=3000

hack/packages.sh protobuf-compiler knot util-linux
hack/tools.sh etcd etcdctl etcdutl kube-apiserver kube-controller-manager kube-scheduler kubectl s3s-fs
# Servers that a whole test binary shares end with it, but nobody removes their folders: they are made below this one.
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/repot-test-XXXXXX")
export TMPDIR
trap 'rm -rf -- "$TMPDIR"' EXIT
trap 'exit 130' INT TERM
say "building tests"
cargo test --quiet --workspace --no-run "$@"
# Processes under test log to the same output; their progress is of interest only to who asks.
export RUST_LOG="${RUST_LOG:-error}"
say "running tests"
status=0
timeout --kill-after=30 "$LIMIT" cargo test --quiet --workspace --no-fail-fast "$@" 2>&1 | tee "$REPOT_CACHE/test.log" || status=$?
awk '/^test result:/ { passed += $4; failed += $6; ignored += $8 }
  END { printf "tests: %d passed, %d failed, %d ignored\n", passed, failed, ignored }' "$REPOT_CACHE/test.log"
[ "$status" -eq 0 ] || fail "tests failed, or took longer than $LIMIT s; the output is in $REPOT_CACHE/test.log"
