#!/usr/bin/env bash
# Copies the images and charts of this release to a registry, and compares each digest there.
#   ./push.sh REGISTRY [KUBERNETES_REGISTRY]
# REGISTRY gets the images and charts of the suite, KUBERNETES_REGISTRY those of Kubernetes and etcd (default: REGISTRY). Both may
# have a path. Needs oras 1.2 or later; log in first with: oras login. ORAS=FILE names the program. PLAIN_HTTP=1: without TLS.
set -euo pipefail
fail() { printf 'push.sh: %s\n' "$*" >&2; exit 1; }
suite=${1:-} kubernetes=${2:-${1:-}}
suite=${suite%/} kubernetes=${kubernetes%/}
[ -n "$suite" ] || fail "usage: ./push.sh REGISTRY [KUBERNETES_REGISTRY]"
oras=${ORAS:-oras}
command -v "$oras" >/dev/null || fail "oras is not in PATH: install oras 1.2 or later (Debian 13: package oras)"
cd "$(dirname "$0")"
read_options=() write_options=()
if [ -n "${PLAIN_HTTP:-}" ]; then read_options=(--plain-http) write_options=(--to-plain-http); fi

[ -f SHA256SUMS ] || fail "SHA256SUMS is missing: download the whole release again. Nothing was pushed."
sha256sum --check --quiet --strict SHA256SUMS ||
  fail "files of the release are missing or differ from SHA256SUMS: download these files again. Nothing was pushed."

# digest_of IMAGE: the digest at the registry, or nothing if the registry answers that the tag does not exist (404). After a
# different error the tag may have any digest, so nothing may be pushed.
digest_of() {
  local answer
  if answer=$("$oras" resolve "${read_options[@]}" "$1" 2>&1 </dev/null); then
    # Warnings may precede the digest.
    grep -xE 'sha256:[0-9a-f]{64}' <<<"$answer" || fail "oras resolved $1 without a SHA-256 digest, and printed: $answer"
    return
  fi
  # oras ends the message of a 404 with the reference and these words, and the message of a different status with the status.
  case $answer in *":${1##*:}: not found") return ;; esac
  fail "the registry did not report whether $1 exists, so the tag was not written: check the registry and the login, then run the command again. $answer"
}

# Charts are last in the list: a registry that has a chart has the images of the chart.
while IFS=$'\t' read -r group repository tag digest file; do
  case $group in kubernetes) image=$kubernetes/$repository:$tag ;; *) image=$suite/$repository:$tag ;; esac
  there=$(digest_of "$image")
  if [ "$there" = "$digest" ]; then
    echo "$image is there already"
    continue
  fi
  [ -z "$there" ] ||
    fail "$image has digest $there at the registry, and $digest in this release: a tag of a release never changes. Use a different path, or delete the tag if it is wrong."
  "$oras" cp --from-oci-layout "$file:$tag" "${write_options[@]}" "$image" >/dev/null </dev/null ||
    fail "$image could not be pushed: check the registry and the login, then run the command again. Charts come last, so no chart lacks an image."
  there=$(digest_of "$image")
  [ "$there" = "$digest" ] || fail "$image has digest ${there:-none} after the push, and $digest in this release: the registry changes images. Use a registry that keeps manifests."
  echo "$image pushed"
done <artifacts.tsv
echo "the registry has the release; install charts from oci://$suite/charts"
