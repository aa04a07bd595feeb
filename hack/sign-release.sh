#!/usr/bin/env bash
# Signs a release with the key of the releaser. Not a part of `make release` and of the tests of changes: only the releaser has the
# key, and no transparency log is asked.
#   hack/sign-release.sh keys PREFIX                          makes PREFIX.key, encrypted by a password, and PREFIX.pub
#   hack/sign-release.sh files RELEASE KEY                    writes RELEASE/SHA256SUMS.sig, which covers all files of the release
#   hack/sign-release.sh verify RELEASE PUBLIC-KEY            checks the signature and all files
#   hack/sign-release.sh images RELEASE KEY REGISTRY [KUBERNETES_REGISTRY]   signs images and charts that push.sh has pushed, and
#                                                             attaches each bill of materials. PLAIN_HTTP=1: registry without TLS
# The command asks for the password of the key, or takes COSIGN_PASSWORD.
set -euo pipefail
invoked_in=$PWD
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh

usage() { fail "usage: hack/sign-release.sh keys PREFIX | files RELEASE KEY | verify RELEASE PUBLIC-KEY | images RELEASE KEY REGISTRY [KUBERNETES_REGISTRY]"; }
# from_caller PATH: a path as the caller wrote it.
from_caller() { case $1 in /*) echo "$1" ;; *) echo "$invoked_in/$1" ;; esac; }
cosign() { "$REPOT_BIN/cosign" "$@"; }

# ask_password: once, because cosign would ask for each signature. A password in COSIGN_PASSWORD is taken, also an empty one.
ask_password() {
  [ -z "${COSIGN_PASSWORD+set}" ] || return 0
  read -rsp "Password of $key: " COSIGN_PASSWORD || fail "no password of $key was given: type the password, or set COSIGN_PASSWORD"
  echo >&2
  export COSIGN_PASSWORD
}

check_files() {
  [ -f "$release/SHA256SUMS" ] || fail "$release/SHA256SUMS is missing: name the folder of a release that make release has finished"
  (cd "$release" && sha256sum --check --quiet --strict SHA256SUMS >&2) ||
    fail "files of $release are missing or differ from SHA256SUMS: make the release again"
}

sign_files() {
  check_files
  cosign sign-blob --yes --key "$key" --tlog-upload=false --output-signature "$release/SHA256SUMS.sig" "$release/SHA256SUMS" >/dev/null ||
    fail "$release/SHA256SUMS was not signed: check the key and its password"
  say "signed: $release/SHA256SUMS.sig"
}

verify_files() {
  # With a root file, cosign does not ask a server for roots, which a key does not need.
  SIGSTORE_ROOT_FILE=/dev/null cosign verify-blob --key "$key" --insecure-ignore-tlog=true --signature "$release/SHA256SUMS.sig" "$release/SHA256SUMS" ||
    fail "the signature of $release/SHA256SUMS is not by $key: do not use the release"
  check_files
  say "the signature is valid, and all files are those of the release"
}

sign_images() {
  local suite=${1%/} kubernetes=${2:-$1}
  kubernetes=${kubernetes%/}
  local options=(--yes --key "$key" --tlog-upload=false)
  local group repository tag digest file image sbom
  [ -z "${PLAIN_HTTP:-}" ] || options+=(--allow-http-registry)
  check_files
  ask_password
  # The tag and the archive of a line are not read: a signature belongs to a digest.
  # shellcheck disable=SC2034
  while IFS=$'\t' read -r group repository tag digest file; do
    case $group in kubernetes) image=$kubernetes/$repository@$digest ;; *) image=$suite/$repository@$digest ;; esac
    cosign sign "${options[@]}" "$image" </dev/null || fail "$image was not signed: push the release first, and log in"
    sbom=$release/sbom/${repository##*/}.cdx.json
    if [ "$group" != chart ]; then
      [ -f "$sbom" ] || fail "$sbom is missing: make the release again"
      cosign attest "${options[@]}" --type cyclonedx --predicate "$sbom" "$image" </dev/null ||
        fail "the bill of materials of $image was not attached: check the rights at the registry"
    fi
    say "signed: $image"
  done <"$release/artifacts.tsv"
}

[ $# -ge 2 ] || usage
hack/tools.sh cosign
case $1 in
  keys)
    prefix=$(from_caller "$2")
    [ ! -e "$prefix.key" ] || fail "$prefix.key exists: choose a different prefix"
    (umask 077 && cosign generate-key-pair --output-key-prefix "$prefix") || fail "no pair of keys was made in $prefix.key"
    ;;
  files | verify | images)
    [ $# -ge 3 ] || usage
    release=$(from_caller "$2") key=$(from_caller "$3")
    [ -f "$key" ] || fail "there is no key $key; make a pair with: hack/sign-release.sh keys PREFIX"
    case $1 in
      files) sign_files ;;
      verify) verify_files ;;
      images) [ $# -ge 4 ] || usage; sign_images "$4" "${5:-}" ;;
    esac
    ;;
  *) usage ;;
esac
