# Sourced by the scripts of this folder: progress lines, bounded waits and the two ways to end.
# shellcheck shell=bash
SCRIPT_NAME="${SCRIPT_NAME:-$(basename "$0")}"

# say TEXT…: one progress line with the seconds since the script began.
say() { printf '[%ss] %s\n' "$SECONDS" "$*" >&2; }

# fail TEXT…: the closing line of a script that could not do its work; says what to do.
fail() { printf '[%ss] %s: %s\n' "$SECONDS" "$SCRIPT_NAME" "$*" >&2; exit 1; }

# refuse_registry: for scripts that compile. With REPOT_REGISTRY, hack/env.sh neither looks for compilers nor names the target.
refuse_registry() {
  [ -z "${REPOT_REGISTRY:-}" ] || fail "REPOT_REGISTRY is for make demo and make demo-down alone: unset the variable"
}

# PAUSE seconds lie between two lines about the same work, so that no reader waits for more than 15 s for a sign of life.
PAUSE=12

# tick TEXT…: one progress line every PAUSE seconds with the seconds of the work, until its process or the script ends.
tick() {
  local begin=$SECONDS
  while sleep "$PAUSE" >/dev/null 2>&1; do
    kill -0 "$$" 2>/dev/null || exit 0
    say "$* ($((SECONDS - begin)) s)"
  done
}

# start_ticker TEXT…: lines of tick until stop_ticker, or until the script ends. A function that starts a ticker makes TICKER local.
# The ticker has no locks of the script, which are descriptors 7 to 9: the last pause outlives the ticker.
TICKER=""
start_ticker() {
  tick "$@" 7>&- 8>&- 9>&- &
  TICKER=$!
}

# stop_ticker: also without a ticker.
stop_ticker() {
  [ -n "$TICKER" ] || return 0
  kill "$TICKER" 2>/dev/null || true
  wait "$TICKER" 2>/dev/null || true
  TICKER=""
}

# wait_for SECONDS WHAT COMMAND…: polls COMMAND until it succeeds; fails after SECONDS.
wait_for() {
  local limit=$1 what=$2 begin=$SECONDS last=$SECONDS; shift 2
  until "$@" >/dev/null 2>&1; do
    [ "$((SECONDS - begin))" -lt "$limit" ] || fail "$what: not so after ${limit}s"
    if [ "$((SECONDS - last))" -ge "$PAUSE" ]; then
      last=$SECONDS
      say "waiting for $((SECONDS - begin)) s of at most $limit s: $what"
    fi
    sleep 0.3
  done
}

# logged FILE COMMAND…: runs COMMAND with its output in FILE and shows the end of it where COMMAND fails.
logged() {
  local file=$1 TICKER="" status=0; shift
  mkdir -p "$(dirname "$file")"
  start_ticker "at work, log: $file"
  "$@" >"$file" 2>&1 || status=$?
  stop_ticker
  [ "$status" -eq 0 ] || tail -n 30 "$file" >&2
  return "$status"
}

# of_this_checkout: what another checkout of the same packages left in the shared target folder does not pass for this one's. Cargo
# compares times, and names what it compiles by paths within the workspace.
of_this_checkout() {
  local last=${CARGO_TARGET_DIR:?}/.checkout
  if [ -f "$last" ] && [ "$(cat "$last")" = "$PWD" ]; then return; fi
  find Cargo.toml crates tests charts crds docs -type f -exec touch -c {} +
  mkdir -p "$CARGO_TARGET_DIR"
  printf '%s' "$PWD" >"$last"
}

# compile LOG CARGO-COMMAND…: compiles with the output in LOG. Tells before it begins how much there is, and every PAUSE seconds how
# far it is; shows the end of LOG where the command fails.
compile() {
  local file=$1 total TICKER="" status=0; shift
  mkdir -p "$(dirname "$file")"
  : >"$file"
  of_this_checkout
  # Cargo does not say how many packages it will compile; the lock file has the most that there can be.
  total=$(grep -c '^name = ' Cargo.lock)
  say "compiling: $* (at most $total packages; log: $file)"
  (
    while sleep "$PAUSE" >/dev/null 2>&1; do
      # Ends with whoever waits for it, however that ends.
      kill -0 "$$" 2>/dev/null || exit 0
      say "compiling: $(grep -c '^ *Compiling ' "$file") of at most $total packages, now $(awk '$1 == "Compiling" { name = $2 } END { print name }' "$file")"
    done
  ) &
  TICKER=$!
  "$@" >>"$file" 2>&1 || status=$?
  stop_ticker
  [ "$status" -eq 0 ] || tail -n 30 "$file" >&2
  return "$status"
}

# joined MESSAGE JOB…: waits for jobs of this shell, and fails with MESSAGE where one of them failed.
joined() {
  local message=$1 job; shift
  for job in "$@"; do wait "$job" || fail "$message"; done
}

# count_tests FILE: one line with what the tests did whose output is in FILE.
count_tests() {
  awk '/^test result:/ { passed += $4; failed += $6; ignored += $8 }
    END { printf "tests: %d passed, %d failed, %d ignored\n", passed, failed, ignored }' "$1"
}

# answers URL: does this address answer at all within three seconds, whatever the status?
answers() { curl -s -o /dev/null -m 3 "$1" 2>/dev/null; }
