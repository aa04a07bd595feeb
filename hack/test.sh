#!/usr/bin/env bash
# Unit tests and tests on real server processes. Tests on clusters need the feature e2e and are hack/e2e.sh's.
#   hack/test.sh [CARGO TEST ARGUMENTS…]
#   REPOT_TEST_LIMIT=SECONDS   how long they may take once they are built
# Without arguments they run in four lanes side by side, as most of them wait most of the time; REPOT_TEST_BESIDE= makes it one.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh

# How many seconds all tests may take once they are built. Thrice what they take on two busy cores.
LIMIT=${REPOT_TEST_LIMIT:-3000}

hack/packages.sh protobuf-compiler knot knot-dnsutils haproxy util-linux
hack/tools.sh etcd etcdctl etcdutl kube-apiserver kube-controller-manager kube-scheduler kubectl helm s3s-fs
# Servers that a whole test binary shares end with it, but nobody removes their folders: they are made below this one.
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/repot-test-XXXXXX")
export TMPDIR
# Programs of a lane each, but for the last lane, which has all others.
BESIDE=("drill" "operations real process" "election stopped idle shoot_state")
if [ $# -gt 0 ] || [ -z "${REPOT_TEST_BESIDE-unset}" ]; then BESIDE=(); fi
# Cargo would say so too, but late, and only in this lane's log.
read -ra names <<<"${BESIDE[*]}"
for name in "${names[@]}"; do
  compgen -G "crates/*/tests/$name.rs" >/dev/null || compgen -G "crates/*/tests/$name/main.rs" >/dev/null || [ -e "tests/$name/main.rs" ] ||
    fail "BESIDE names $name, and no program of tests is called so"
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
logs=()
for programs in "${BESIDE[@]}"; do
  read -ra names <<<"$programs"
  log=$REPOT_CACHE/test-${names[0]}.log
  logs+=("$log")
  REPOT_TEST_BESIDE="" setsid timeout --kill-after=30 "$LIMIT" cargo test --quiet --workspace --no-fail-fast "${names[@]/#/--test=}" \
    >"$log" 2>&1 &
  lanes+=($!)
done
# In the background too: a shell that waits can be interrupted, and one that has a program in the foreground cannot.
# shellcheck disable=SC2016  # The inner shell expands it.
LOG=$REPOT_CACHE/test-others.log REPOT_TEST_BESIDE=${BESIDE[*]} setsid timeout --kill-after=30 "$LIMIT" bash -o pipefail -c \
  'cargo test --quiet --workspace --no-fail-fast "$@" 2>&1 | tee "$LOG"' tests "$@" &
lanes+=($!)
failed=()
for lane in "${!lanes[@]}"; do wait "${lanes[$lane]}" || failed+=("${logs[$lane]:-$REPOT_CACHE/test-others.log}"); done
lanes=()
cp "$REPOT_CACHE/test-others.log" "$REPOT_CACHE/test.log"
for log in "${logs[@]}"; do tee -a "$REPOT_CACHE/test.log" <"$log"; done
say "what took longest:"
sort -rn "$REPOT_TEST_SECONDS" | head -n 12 >&2
count_tests "$REPOT_CACHE/test.log"
[ ${#failed[@]} -eq 0 ] || fail "tests failed, or took longer than $LIMIT s; the output is in ${failed[*]}"
