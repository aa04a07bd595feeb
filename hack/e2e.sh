#!/usr/bin/env bash
# The end-to-end tests on a landscape of their own, which is gone afterwards whatever happens. REPOT_KEEP=1 keeps it for a
# look; further arguments go to the tests, e.g. a part of a test's name.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh
clean_up() {
  local code=$?
  trap - EXIT INT TERM
  if [ "$code" -ne 0 ]; then hack/report.sh e2e || say "no report could be made"; fi
  [ -n "${REPOT_KEEP:-}" ] || hack/landscape.sh down e2e
  exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT TERM
say "compiling the tests"
hack/packages.sh protobuf-compiler
logged "$REPOT_CACHE/log/e2e-compile.log" cargo test --no-run -p repot-tests --features e2e --test 'e2e_*'
hack/landscape.sh up e2e
hack/install.sh e2e
say "running the tests; each prints how long the API could not be written"
cargo test -p repot-tests --features e2e --test 'e2e_*' -- --test-threads=1 --nocapture "$@"
