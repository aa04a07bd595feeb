# Sourced by the scripts of this folder: progress lines, bounded waits and the two ways to end.
# shellcheck shell=bash
SCRIPT_NAME="${SCRIPT_NAME:-$(basename "$0")}"

# say TEXT…: one progress line with the seconds since the script began.
say() { printf '[%ss] %s\n' "$SECONDS" "$*" >&2; }

# fail TEXT…: the closing line of a script that could not do its work; says what to do.
fail() { printf '[%ss] %s: %s\n' "$SECONDS" "$SCRIPT_NAME" "$*" >&2; exit 1; }

# wait_for SECONDS WHAT COMMAND…: polls COMMAND until it succeeds; fails after SECONDS.
wait_for() {
  local limit=$1 what=$2 end; shift 2
  end=$((SECONDS + limit))
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || fail "$what: not so after ${limit}s"
    sleep 0.3
  done
}

# logged FILE COMMAND…: runs COMMAND with its output in FILE and shows the end of it where COMMAND fails.
logged() {
  local file=$1; shift
  mkdir -p "$(dirname "$file")"
  if ! "$@" >"$file" 2>&1; then
    tail -n 30 "$file" >&2
    return 1
  fi
}

# answers URL: does this address answer at all within three seconds, whatever the status?
answers() { curl -s -o /dev/null -m 3 "$1" 2>/dev/null; }
