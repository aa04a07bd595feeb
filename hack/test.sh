#!/usr/bin/env bash
# Unit tests and tests on real server processes. Tests on clusters need the feature e2e and are hack/e2e.sh's.
#   hack/test.sh [CARGO TEST ARGUMENTS…]
#   REPOT_TEST_LIMIT=SECONDS   how long they may take once they are built
#   REPOT_WAITS=FILE           where each wait of a test is noted, with its time and bound
# Without arguments they run in five lanes side by side, as most of them wait most of the time. Every lane goes through all programs,
# and runs those that no other lane has begun. hack/test-runner.sh says which programs run a second time if they fail.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh
refuse_registry
# Tests append the time of each wait to this file (docs/understand/testing.md). A test runs in the folder of its package.
[ -z "${REPOT_WAITS:-}" ] || { REPOT_WAITS=$(realpath -m -- "$REPOT_WAITS"); export REPOT_WAITS; }

# How many seconds all tests may take once they are built. Thrice what they take on two busy cores.
LIMIT=${REPOT_TEST_LIMIT:-3000}

hack/packages.sh protobuf-compiler knot knot-dnsutils haproxy iptables util-linux jq
hack/tools.sh etcd etcdctl etcdutl kube-apiserver kube-controller-manager kube-scheduler kubectl helm s3s-fs moto aws-cloud-controller-manager otelcol
# Servers that a whole test binary shares end with it, but nobody removes their folders: they are made below this one.
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/repot-test-XXXXXX")
export TMPDIR
# What takes longest begins first, each in a lane. What measures how much a process needs that does nothing runs when all others have
# ended.
FIRST=(drill real contract operations election) ALONE=idle
for name in "${FIRST[@]}" "$ALONE"; do
  [ -n "$(find crates tests -path "*/tests/$name*" -print -quit)" ] || [ -d "tests/$name" ] || fail "no program of tests is called $name"
done
lanes=()
clean_up() {
  # The whole group of each: what Cargo has started does not end with it, and a program with managers in it ends by no SIGTERM.
  for lane in "${lanes[@]}"; do
    if kill -- "-$lane" 2>/dev/null; then
      wait "$lane" || say "tests were stopped"
      kill -KILL -- "-$lane" 2>/dev/null || continue
    fi
  done
  rm -rf -- "$TMPDIR" || say "$TMPDIR is not all gone"
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
export REPOT_TEST_BEGUN="$TMPDIR/begun"
mkdir "$REPOT_TEST_BEGUN"
unsteady=$TMPDIR/unsteady
[ $# -gt 0 ] || export REPOT_TEST_UNSTEADY=$unsteady
logs=()
# By which the runner tells how each program ended, as the output of lanes would be mixed.
exec 3>&2
# lane NAME PROGRAM CARGO-ARGUMENTS…: in the background, also where there is one: a shell that waits can be interrupted, and one that
# has a program in the foreground cannot. The program, if one is named, is the first of the lane.
lane() {
  local log=$REPOT_CACHE/test-$1.log first=$2; shift 2
  logs+=("$log")
  # shellcheck disable=SC2016  # The inner shell expands it.
  FIRST=$first setsid timeout --kill-after=30 "$LIMIT" bash -c 'status=0 tests=(cargo test --quiet --workspace --no-fail-fast)
    [ -z "$FIRST" ] || "${tests[@]}" --test "$FIRST" || status=$?
    "${tests[@]}" "$@" || status=$?
    exit "$status"' tests "$@" >"$log" 2>&1 &
  lanes+=($!)
}
failed=()
# ended: waits for the lanes that were begun since the last time.
ended() {
  local index
  for index in "${!lanes[@]}"; do wait "${lanes[$index]}" || failed+=("${logs[$index]}"); done
  cat "${logs[@]}" >>"$REPOT_CACHE/test.log"
  lanes=() logs=()
}
: >"$REPOT_CACHE/test.log"
if [ $# -gt 0 ]; then
  lane asked "" "$@"
  tail -n +1 -F --pid="${lanes[0]}" "$REPOT_CACHE/test-asked.log" 2>/dev/null &
  shown=$!
else
  for name in "${FIRST[@]}"; do REPOT_TEST_ALONE=$ALONE lane "$name" "$name" --tests; done
  ended
  lane alone "" --test "$ALONE"
  ended
  lane doc "" --doc
fi
ended
# To the end of what it shows.
[ -z "${shown:-}" ] || wait "$shown"
say "what took longest:"
sort -rn "$REPOT_TEST_SECONDS" | head -n 12 >&2
# A bound is about twice the longest measured wait.
if grep -q 'slow: .* took ' "$REPOT_CACHE/test.log"; then
  say "waits of more than half of their bound:"
  grep -o 'slow: .* took .*' "$REPOT_CACHE/test.log" | sort | uniq -c >&2
fi
count_tests "$REPOT_CACHE/test.log"
[ ! -s "$unsteady" ] ||
  say "UNSTEADY, to be fixed: these failed, and passed when run again (output: $REPOT_CACHE/test.log): $(paste -sd, "$unsteady")"
[ $# -gt 0 ] || [ ${#failed[@]} -eq 0 ] || cat "${failed[@]}" >&2
[ ${#failed[@]} -eq 0 ] || fail "tests failed, or took longer than $LIMIT s; the output is in ${failed[*]}"
