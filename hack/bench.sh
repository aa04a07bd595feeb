#!/usr/bin/env bash
# Measures what docs/understand/bench.md has figures of, and prints its tables. Everything runs as processes on this machine, and ends
# with this script; nothing else should run beside.
#   hack/bench.sh [idle|state|moves|zones|admission|rights|gate|follow]…      all by default
# BENCH_PROFILE=release measures optimised binaries (they are compiled first; default: dev, dependencies with opt-level 1).
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh
refuse_registry

# Far longer than all takes on two cores. One measurement waits for itself, each with a bound of its own.
LIMIT=5400
IDLE_SECONDS=60
profile=${BENCH_PROFILE:-dev}
wanted=${*:-idle state moves zones admission rights gate follow}
# With the whole workspace, as in hack/test.sh: no dependency is compiled again with other features.
suite=(--workspace --profile "$profile" --test idle --test shoot_state --test drill --test aws --test admission --test rights_scale --test real)

# Tests have switches for safety rules (crate `mutation`), which need debug assertions in every profile.
if [ "$profile" = release ]; then export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true; fi

hack/packages.sh protobuf-compiler knot util-linux
hack/tools.sh etcd etcdctl etcdutl kube-apiserver kube-controller-manager s3s-fs moto
# Servers end with the test that has started them; their folders go with this one.
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/repot-bench-XXXXXX")
export TMPDIR RUST_LOG="${RUST_LOG:-error}"
running=""
clean_up() {
  if [ -n "$running" ] && kill -KILL -- "-$running" 2>/dev/null; then say "a measurement was stopped"; fi
  rm -rf -- "$TMPDIR"
}
trap clean_up EXIT
trap 'exit 130' INT TERM
compile "$REPOT_CACHE/log/bench-compile.log" cargo test "${suite[@]}" --no-run ||
  fail "cargo test could not compile (log: $REPOT_CACHE/log/bench-compile.log)"
log=$REPOT_CACHE/bench.log
: >"$log"

# measure WHAT TEST [VARIABLE=VALUE…]: runs one measurement; its lines become rows.
measure() {
  local what=$1 test=$2 before; shift 2
  before=$(wc -l <"$log")
  say "measuring: $what"
  # In the background: a shell that waits can be interrupted. A group of its own, so that all of it can be ended.
  env "$@" REPOT_IDLE_SECONDS="$IDLE_SECONDS" setsid timeout --kill-after=30 "$LIMIT" cargo test --quiet "${suite[@]}" -- \
    --include-ignored --exact --nocapture "$test" >>"$log" 2>&1 &
  running=$!
  wait "$running" || fail "$what: the measurement failed; its output is in $log"
  running=""
  tail -n "+$((before + 1))" "$log" | sed -n 's/^bench: //p' | grep . || fail "$what: nothing was told; its output is in $log"
}

idle() {
  printf '\n| process | looks after | memory of its own | with its program'"'"'s file | open files | time on a processor |\n|---|---|---|---|---|---|\n'
  for shoots in 50 250; do
    measure "a gardenlet with $shoots shoots" a_gardenlet_idles_in_little_memory \
      REPOT_IDLE_SHOOTS=$shoots REPOT_IDLE_CARE=30s
  done
  for large in 0 20; do
    measure "a garden-controller-manager with 250 shoots, $large of them large" \
      a_garden_controller_manager_idles_in_little_memory REPOT_IDLE_LARGE=$large
  done
  for shoots in 50 250; do
    measure "a resource-manager with $shoots shoots" a_resource_manager_idles_in_little_memory \
      REPOT_IDLE_SHOOTS=$shoots MALLOC_ARENA_MAX=1
  done
  for machines in 200 1000; do
    measure "a machine-controller-manager with $machines machines" \
      a_machine_controller_manager_idles_in_little_memory REPOT_IDLE_MACHINES=$machines
  done
}

state() {
  printf '\n| state | collected in | memory for it | read in | memory for it | restored in | memory for it |\n|---|---|---|---|---|---|---|\n'
  for objects in 11 56; do
    measure "a state of $objects large objects" cost::what_a_large_state_costs REPOT_STATE_OBJECTS=$objects
  done
}

moves() {
  printf '\n| | one alone, before and after | median | longest | all together | median to alone | longest to alone |\n|---|---|---|---|---|---|---|\n'
  for count in 5 10; do
    measure "$count moves at once" many_moves_at_once REPOT_MOVES=$count
  done
}

zones() {
  printf '\n| a zone is cut off | last pod out | last machine gone | closed after that | calls for network ACLs | all calls |\n|---|---|---|---|---|---|\n'
  for machines in 10 100; do
    measure "a zone of a shoot with $machines machines" a_zone_of_many_machines_is_closed REPOT_ZONE_MACHINES=$machines
  done
}

admission() {
  printf '\n| Shoots | edit of a Shoot by a user | status of a Shoot by a gardenlet | kubeconfig by a gardenlet |\n|---|---|---|---|\n'
  for count in 250 5000; do
    measure "admission with $count Shoots" admission_stays_cheap_with_many_shoots REPOT_ADMISSION_SHOOTS=$count
  done
}

rights() {
  printf '\n| | ClusterRoles | RoleBindings | right there after a hand-over, longest of 10 | right gone, longest of 10 |\n|---|---|---|---|---|\n'
  measure "rights of 10 seeds with 250 shoots" rights_of_seeds_follow_a_hand_over_within_seconds
}

gate() {
  printf '\n| request | pairs | gate for bytes, median | gate for HTTP/2, median | more, median of pairs | CPU per request, gate for bytes | CPU per request, gate for HTTP/2 |\n|---|---|---|---|---|---|---|\n'
  local most=1000000
  # The bound is for optimised binaries.
  if [ "$profile" = release ]; then most=500; fi
  measure "requests through both gates" gate_cost::what_a_request_costs_at_each_gate REPOT_GATE_MOST_MICROSECONDS=$most
}

follow() {
  printf '\n| value | writes a second of 64 clients | revisions a second of the follower | ratio |\n|---|---|---|---|\n'
  local least=0
  # The bound is for optimised binaries.
  if [ "$profile" = release ]; then least=80; fi
  measure "a follower beside 64 clients" follow_rate::how_fast_a_follower_writes REPOT_FOLLOW_LEAST_PERCENT=$least
}

for part in $wanted; do
  case $part in
    idle | state | moves | zones | admission | rights | gate | follow) "$part" ;;
    *) fail "usage: hack/bench.sh [idle|state|moves|zones|admission|rights|gate|follow]…" ;;
  esac
done
