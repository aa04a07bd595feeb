#!/usr/bin/env bash
# Runs one test program for Cargo, notes how long it took, and tells how it ended (descriptor 3); hack/test.sh says so to Cargo.
# Beside other programs a program may fail only because the machine stood still. Such a program is run a second time, and is named if it
# passes then. A program that guards safety runs once: a violation that shows once in many runs must fail the run that shows it.
#   REPOT_TEST_SECONDS=FILE   where that is noted
#   REPOT_TEST_BEGUN=FOLDER   where it is noted which programs some lane has begun
#   REPOT_TEST_ALONE=NAME     programs that are not to be run here
#   REPOT_TEST_UNSTEADY=FILE  where it is noted which failed and passed then
set -uo pipefail
# Packages that neither decide who owns a shoot nor act or store data by the right of an owner. A new package runs once.
REPEATABLE=(cloud-local-agent network-local testkit tunnel xtask)
name=$(basename "$1" | sed 's/-[0-9a-f]\{16\}$//')
if [ "$name" = "${REPOT_TEST_ALONE:-}" ]; then exit 0; fi
# Whoever makes the folder runs the program: one succeeds.
if [ -n "${REPOT_TEST_BEGUN:-}" ] && ! mkdir "$REPOT_TEST_BEGUN/$(basename "$1")" 2>/dev/null; then exit 0; fi
"$@"
status=$? ended=ok
if [ "$status" -ne 0 ] && [ -n "${REPOT_TEST_UNSTEADY:-}" ] && [[ " ${REPEATABLE[*]} " == *" ${CARGO_PKG_NAME:-} "* ]]; then
  printf '%s %s: FAILED (%d s), is run again\n' "${CARGO_PKG_NAME:-}" "$name" "$SECONDS" >&3
  "$@"
  status=$? ended='ok when run again'
  [ "$status" -ne 0 ] || printf '%s %s\n' "${CARGO_PKG_NAME:-}" "$name" >>"$REPOT_TEST_UNSTEADY"
fi
printf '%d s %s %s\n' "$SECONDS" "${CARGO_PKG_NAME:-}" "$name" >>"${REPOT_TEST_SECONDS:-/dev/null}"
[ "$status" -eq 0 ] || ended=FAILED
if [ -n "${REPOT_TEST_BEGUN:-}" ]; then printf '%s %s: %s (%d s)\n' "${CARGO_PKG_NAME:-}" "$name" "$ended" "$SECONDS" >&3; fi
exit $status
