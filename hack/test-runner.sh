#!/usr/bin/env bash
# Runs one test program for Cargo and notes how long it took; hack/test.sh says so to Cargo.
#   REPOT_TEST_SECONDS=FILE   where that is noted
#   REPOT_TEST_BESIDE=NAMES   programs that run beside the others and are not to be run here
set -uo pipefail
name=$(basename "$1" | sed 's/-[0-9a-f]\{16\}$//')
case " ${REPOT_TEST_BESIDE:-} " in *" $name "*)
  echo "$name runs beside the other tests"
  exit 0
  ;;
esac
"$@"
status=$?
printf '%d s %s %s\n' "$SECONDS" "${CARGO_PKG_NAME:-}" "$name" >>"${REPOT_TEST_SECONDS:-/dev/null}"
exit $status
