#!/usr/bin/env bash
# Runs one test program for Cargo, notes how long it took, and tells how it ended (descriptor 3); hack/test.sh says so to Cargo.
#   REPOT_TEST_SECONDS=FILE   where that is noted
#   REPOT_TEST_BEGUN=FOLDER   where it is noted which programs some lane has begun
#   REPOT_TEST_ALONE=NAME     programs that are not to be run here
set -uo pipefail
name=$(basename "$1" | sed 's/-[0-9a-f]\{16\}$//')
if [ "$name" = "${REPOT_TEST_ALONE:-}" ]; then exit 0; fi
# Whoever makes the folder runs the program: one succeeds.
if [ -n "${REPOT_TEST_BEGUN:-}" ] && ! mkdir "$REPOT_TEST_BEGUN/$(basename "$1")" 2>/dev/null; then exit 0; fi
"$@"
status=$?
printf '%d s %s %s\n' "$SECONDS" "${CARGO_PKG_NAME:-}" "$name" >>"${REPOT_TEST_SECONDS:-/dev/null}"
if [ "$status" -eq 0 ]; then ended=ok; else ended=FAILED; fi
if [ -n "${REPOT_TEST_BEGUN:-}" ]; then printf '%s %s: %s (%d s)\n' "${CARGO_PKG_NAME:-}" "$name" "$ended" "$SECONDS" >&3; fi
exit $status
