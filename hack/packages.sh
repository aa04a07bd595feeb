#!/usr/bin/env bash
# Installs the Debian packages NAMES that are missing; elsewhere says which to install.
#   hack/packages.sh NAMES…
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/progress.sh

missing=()
for name in "$@"; do
  if command -v dpkg-query >/dev/null; then
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
  else
    missing+=("$name")
  fi
done
[ ${#missing[@]} -gt 0 ] || exit 0
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
  fail "please install: ${missing[*]} (by these names on Debian and Ubuntu; as root this script does it)"
fi
say "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# A package must not start its service here: the landscape runs what it needs, with settings of its own.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy"
fi
lock=(-o DPkg::Lock::Timeout=300)
timeout 600 apt-get "${lock[@]}" install -qq -y --no-install-recommends "${missing[@]}" >/dev/null 2>&1 || {
  timeout 300 apt-get "${lock[@]}" update -qq >/dev/null 2>&1 || say "apt-get update was not complete; trying with what is known"
  timeout 600 apt-get "${lock[@]}" install -qq -y --no-install-recommends "${missing[@]}" >/dev/null ||
    fail "could not install ${missing[*]}; 'apt-get update' shows whether the package archive answers"
}
say "installed ${missing[*]}"
