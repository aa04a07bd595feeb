#!/usr/bin/env bash
# The end-to-end tests on a landscape of their own, which is gone afterwards whatever happens. REPOT_KEEP=1 keeps it for a
# look.
#   hack/e2e.sh once|all [TEST ARGUMENTS…]     further arguments go to the tests, e.g. a part of a test's name
# once: each capability once (make e2e). all: every scenario (make e2e-all).
# REPOT_GATE_HTTP2=1: the gate in front of each etcd-main forwards HTTP/2 (docs/understand/etcd-backup-restore.md). `all` uses this
# gate for the test of the tunnel, whatever the variable says.
# REPOT_WAITS=FILE: where each wait of a test is noted, with its time and bound.
# PART=1…6 runs a part of `all`, of at most 45 minutes: 1 and 2 have the dead seeds, 3 moves, nodes and zones, 4 the rest, 5 the
# installation of a release from a registry (hack/release-test.sh), 6 the upgrade from the previous release (hack/upgrade-test.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh
refuse_registry
# Tests append the time of each wait to this file (docs/understand/testing.md). A test runs in the folder of its package.
[ -z "${REPOT_WAITS:-}" ] || { REPOT_WAITS=$(realpath -m -- "$REPOT_WAITS"); export REPOT_WAITS; }
# Tests that only the set `all` has: what they show, another test shows too, or they show it longer.
ONLY_IN_ALL=(
  a_move_ends_although_the_gardenlets_are_killed_at_five_random_moments
  nodes_survive_the_way_there_and_back_whoever_is_killed
  a_rolling_update_that_is_moved_in_the_middle_goes_on_where_it_was
  a_shoot_sleeps_moves_in_its_sleep_and_wakes
  nodes_that_no_seed_reaches_survive_a_move
  a_shoot_is_taken_over_there_and_back
  a_seed_that_hears_nothing_of_the_garden_alone_saves_what_it_has
  a_seed_that_stands_still_and_wakes_later_does_not_go_on
  a_seed_that_lost_its_power_saves_late_what_is_lost
  a_seed_that_stands_still_while_it_hands_over_does_not_go_on
  a_seed_that_is_told_by_its_bucket_alone_saves_what_it_has
  a_seed_that_is_cut_off_in_the_moment_of_the_change_acknowledges_nothing_after_its_successor
  a_seed_without_its_bucket_saves_late_what_is_lost
  a_seed_without_its_api_server_saves_what_its_shoots_have
  a_seed_whose_gardenlet_and_kubelet_stand_still_saves_what_its_shoots_have
  no_node_is_lost_with_the_seed_that_looked_after_it
  a_takeover_ends_although_the_gardenlet_that_restores_is_killed
  ten_minutes_of_servfail_fence_nobody
  a_stale_secondary_of_one_seed_gives_no_second_writer
  a_deleted_owner_record_ends_no_shoot_and_renew_brings_it_back
  whoever_changes_his_mind_gets_what_he_wanted_last
  a_zone_stays_cut_off_while_its_shoot_moves_and_is_taken_over
  a_zone_that_does_not_let_go_is_cut_off_all_the_same
  a_zone_with_an_instance_that_does_not_end_is_closed_in_its_budget
)
# Tests of e2e_dead_seed that belong to part 2; part 1 has the others.
DEAD_SEEDS_OF_PART_2=(
  a_seed_without_its_bucket_saves_late_what_is_lost
  a_seed_without_its_api_server_saves_what_its_shoots_have
  a_seed_whose_gardenlet_and_kubelet_stand_still_saves_what_its_shoots_have
  a_takeover_ends_although_the_gardenlet_that_restores_is_killed
  no_node_is_lost_with_the_seed_that_looked_after_it
  ten_minutes_of_servfail_fence_nobody
)
# All flows that are drilled. `make test` leaves out those whose tasks are those of others. Crash: a takeover whose destination ends
# after each task.
DRILLED=Create,Migrate,CancelMove,Renew,Restore,TakeOver,Crash,Leave,Hibernate,RestoreAsleep,Delete,ForceDelete
DRILLED+=,Failover,Failback,AnotherZone,RestoreIsolated,TakeOverIsolated,DeleteIsolated
# Journeys of many shoots, and one of a shoot on AWS. A name that no test has would run none and succeed.
JOURNEYS=(
  journeys_are_edited_called_off_and_deleted_on_their_way_while_processes_die
  a_shoot_on_aws_moves_while_a_zone_of_it_is_cut_off
)
for name in "${JOURNEYS[@]}"; do
  grep -q "fn $name(" tests/drill/main.rs || fail "JOURNEYS names $name, and there is no such test"
done

set_of_tests=${1:-} skipped=()
case $set_of_tests in
  once) for name in "${ONLY_IN_ALL[@]}"; do
    grep -q "fn $name(" tests/e2e_*.rs || fail "ONLY_IN_ALL names $name, and there is no such test"
    skipped+=(--skip "$name")
  done ;;
  all) ;;
  *) fail "usage: hack/e2e.sh once|all [TEST ARGUMENTS…]" ;;
esac
shift
for name in "${DEAD_SEEDS_OF_PART_2[@]}"; do
  grep -q "fn $name(" tests/e2e_dead_seed.rs || fail "DEAD_SEEDS_OF_PART_2 names $name, and e2e_dead_seed has no such test"
done
part=${PART:-}
case $part in
  "") ;;
  [1-6]) [ "$set_of_tests" = all ] || fail "PART divides make e2e-all; make e2e has no parts" ;;
  *) fail "PART is $part; write 1, 2, 3, 4, 5 or 6, or leave PART out to run all six parts" ;;
esac
# has_part N: whether this run includes part N.
has_part() { [ -z "$part" ] || [ "$part" = "$1" ]; }
# Part 6 comes last, after hours, and a shallow clone lacks the commit of the previous release.
if [ "$set_of_tests" = all ] && has_part 6; then
  hack/previous-release.sh --check ||
    fail "part 6 of make e2e-all needs the previous release, see the line above; make e2e-all PART=1 to PART=5 run without it"
fi
# One run at a time. Tests do not hold the lock: where a run was killed, they may live on for a while.
mkdir -p "$REPOT_CACHE"
exec 9>"$REPOT_CACHE/e2e.lock"
flock -n 9 || fail "another run of the end-to-end tests is under way; wait for it, or end it"
# Some tests show more in the set `all` (repot_tests::is_every_scenario): e2e_bad_input, e2e_move and e2e_leader_migration.
export REPOT_E2E_SET=$set_of_tests
# Where every scenario runs, each zone of the local cloud has a host of its own.
[ "$set_of_tests" = once ] || export REPOT_HOSTS=${REPOT_HOSTS:-3}
# A test is a whole story in one future, compiled without optimisation: what Rust gives its thread (2 MiB) is not enough for all.
export RUST_MIN_STACK=16777216
groups=()
clean_up() {
  local code=$? group
  trap - EXIT INT TERM
  # The whole group: what Cargo has started does not end with it. It may be over already.
  for group in "${groups[@]}"; do
    if kill -- "-$group" 2>/dev/null; then
      wait "$group" || say "tests were stopped"
      kill -KILL -- "-$group" 2>/dev/null || say "nothing of them is left"
    fi
  done
  if [ "$code" -ne 0 ]; then hack/report.sh e2e || say "no report could be made"; fi
  [ -n "${REPOT_KEEP:-}" ] || hack/landscape.sh down e2e
  exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT TERM
# What a run left that was killed: shoots, cut roads, nodes that stand still. Nothing can be shown on that.
if [ -z "${REPOT_KEEP:-}" ] && [ -d "$REPOT_CACHE/landscape/e2e" ]; then
  say "an earlier run left its landscape"
  hack/landscape.sh down e2e
fi
# A landscape of its own: the suite comes from the release alone.
install_release() { hack/landscape.sh down e2e && hack/landscape.sh up e2e && hack/release-test.sh; }
# A landscape of its own: the suite comes from the previous release first.
upgrade_release() { hack/landscape.sh down e2e && hack/upgrade-test.sh; }
case $part in
  5) install_release; exit 0 ;;
  6) upgrade_release; exit 0 ;;
esac
# Cargo decides the features of a dependency for all packages of a command together. With the whole workspace and its tests, as in
# hack/test.sh, hack/images.sh and hack/xtask.sh, all targets share one build of each dependency. The price: features that tests need
# (tokio's test-util) are in the images of the test environments. Optimised images are built without these features.
suite=(--workspace --features repot-tests/e2e)
hack/packages.sh protobuf-compiler
compile "$REPOT_CACHE/log/e2e-compile.log" cargo build --bins "${suite[@]}" --test 'e2e_*' ||
  fail "cargo build failed (log: $REPOT_CACHE/log/e2e-compile.log)"
hack/landscape.sh up e2e
export IMAGE_BINARIES=$CARGO_TARGET_DIR/$CARGO_BUILD_TARGET/debug
hack/install.sh e2e
say "running the tests; each prints how long something was not to be had"
# These run beside the leader migration of a shoot on seed-a, as all of them mostly wait. The first has to do with seed-b only.
beside=(e2e_backup_controllers)
# Not where leader migration also stops the gardenlet of seed-a for a while.
[ "$set_of_tests" = all ] || beside+=(e2e_zone)
alone=()
for file in tests/e2e_*.rs; do
  name=$(basename "$file" .rs)
  case " ${beside[*]} e2e_leader_migration e2e_tunnel e2e_upgrade " in *" $name "*) continue ;; esac
  case $name in
    e2e_dead_seed) part_of_file=1 ;;
    e2e_bad_input | e2e_hibernation | e2e_zone_disturbed) part_of_file=4 ;;
    e2e_server_lists | e2e_owner_record) part_of_file=2 ;;
    *) part_of_file=3 ;;
  esac
  if has_part "$part_of_file"; then alone+=(--test "$name"); fi
done
# A run takes hours: it shows all that fails, and fails at its end.
failed=()
# on_both_seeds FAILURE CARGO-ARGUMENTS… -- TEST-ARGUMENTS…: one test after the other.
on_both_seeds() {
  local what=$1; shift
  cargo test --no-fail-fast "${suite[@]}" "$@" --test-threads=1 --nocapture 9>&- || failed+=("$what")
}
if [ "${#alone[@]}" -gt 0 ]; then
  not_here=("${skipped[@]}")
  if [ "$part" = 1 ]; then for name in "${DEAD_SEEDS_OF_PART_2[@]}"; do not_here+=(--skip "$name"); done; fi
  on_both_seeds "the tests on both seeds" "${alone[@]}" -- "${not_here[@]}" "$@"
fi
if [ "$part" = 2 ]; then
  on_both_seeds "the dead seeds of part 2" --test e2e_dead_seed -- "${DEAD_SEEDS_OF_PART_2[@]}" "$@"
fi
if has_part 4; then
  say "running the tests of leader migration, and beside them ${beside[*]}"
  for name in "${beside[@]}"; do
    setsid cargo test "${suite[@]}" --test "$name" -- --nocapture "${skipped[@]}" "$@" >"$REPOT_CACHE/log/$name.log" 2>&1 9>&- &
    groups+=($!)
  done
  cargo test "${suite[@]}" --test e2e_leader_migration -- --nocapture "${skipped[@]}" "$@" 9>&- || failed+=(e2e_leader_migration)
  for index in "${!beside[@]}"; do
    wait "${groups[$index]}" || failed+=("${beside[$index]}")
    cat "$REPOT_CACHE/log/${beside[$index]}.log"
  done
  groups=()
fi
if [ "$set_of_tests" = all ] && has_part 4; then
  say "without roads from seeds to machines: kubelets are reached by the tunnel, and etcd through the gate for HTTP/2"
  REPOT_TUNNEL=true REPOT_GATE_HTTP2=1 hack/install.sh e2e
  hack/landscape.sh strand e2e
  REPOT_GATE_HTTP2=1 cargo test "${suite[@]}" --test e2e_tunnel -- --nocapture "$@" 9>&- || failed+=("the tunnel")
fi
# lost_its_lock CLUSTER NAMESPACE POD: whether that is how it ended the last time.
lost_its_lock() {
  "$REPOT_BIN/kubectl" --kubeconfig "$REPOT_CACHE/landscape/e2e/$1.kubeconfig" -n "$2" logs "$3" --previous --tail=20 </dev/null 2>/dev/null |
    grep "could not be renewed for" >/dev/null
}
# The suite is made to survive its own end, so that no test notices one. Events outlive the pods that tests delete.
say "looking for processes of the suite that ended by themselves"
ended=""
for cluster in garden seed-a seed-b infra; do
  while read -r namespace pod starts; do
    case $namespace in garden | garden-exposure | extension-*) ;; *) continue ;; esac
    say "$cluster: $namespace/$pod was started $starts times"
    # A lock may be lost because the machine stood still.
    [ "$starts" -le 2 ] || lost_its_lock "$cluster" "$namespace" "$pod" || ended=yes
  done < <("$REPOT_BIN/kubectl" --kubeconfig "$REPOT_CACHE/landscape/e2e/$cluster.kubeconfig" get events -A --field-selector reason=Started \
    -o jsonpath='{range .items[?(@.count>1)]}{.metadata.namespace} {.involvedObject.name} {.count}{"\n"}{end}')
done
[ -z "$ended" ] || failed+=("a process of the suite ended again and again")
# On servers without clusters, and therefore last: the clusters would only take its time away.
if [ "$set_of_tests" = all ] && has_part 3; then
  [ "${#failed[@]}" -eq 0 ] || hack/report.sh e2e || say "no report could be made"
  hack/landscape.sh down e2e
  say "drilling all flows"
  REPOT_DRILL_FLOWS=$DRILLED hack/test.sh --test drill -- --nocapture 9>&- || failed+=("the drill of all flows")
  say "journeys"
  hack/test.sh --test drill -- --nocapture --test-threads=1 --ignored "${JOURNEYS[@]}" 9>&- || failed+=("journeys")
fi
if [ "$set_of_tests" = all ] && has_part 5; then
  say "installing a release"
  install_release || failed+=("the installation of a release")
fi
if [ "$set_of_tests" = all ] && has_part 6; then
  say "upgrading from the previous release"
  upgrade_release || failed+=("the upgrade from the previous release")
fi
[ "${#failed[@]}" -eq 0 ] || fail "failed: $(printf '%s; ' "${failed[@]}")"
