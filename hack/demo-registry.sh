#!/usr/bin/env bash
# The demonstration from a registry: the images, commands and program that `make demo` builds otherwise.
#   hack/demo-registry.sh push REGISTRY   after `make demo` on this machine
#   hack/demo-registry.sh pull REGISTRY   leaves commands in $REPOT_BIN and the program in $REPOT_CACHE/demo (hack/demo.sh)
# The images are REGISTRY/demo/NAME:VERSION. VERSION is REPOT_VERSION, or v and the version in Cargo.toml. The container engine pulls
# without TLS only from this machine (127.0.0.1), or from a registry that its settings name as insecure.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh
. hack/images/store.sh
. hack/images/crates.sh

registry=${2:-}
registry=${registry%/}
[ -n "$registry" ] || fail "usage: hack/demo-registry.sh push|pull REGISTRY"
version=${REPOT_VERSION:-v$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)}
files=$registry/demo/files:$version
FOLDER=$REPOT_CACHE/demo
# Commands that the scripts and the program start on this machine.
COMMANDS="kind kubectl helm kubeadm etcd"

# local_images: the names on this machine of all images, except the image of kind's nodes.
local_images() {
  local name kubernetes
  # shellcheck disable=SC2086 # The names of crates are words.
  printf 'repot/%s:dev\n' $GARDEN_CRATES $SEED_CRATES $MACHINE_CRATES $CLOUD_CRATES edge dns s3 machine | awk '!seen[$0]++'
  kubernetes=$("$REPOT_BIN/kubeadm" version -o short)
  for name in kube-apiserver kube-controller-manager kube-scheduler; do echo "$name:$kubernetes"; done
  "$REPOT_BIN/etcd" --version | sed -n 's/^etcd Version: /etcd:v/p'
  "$REPOT_BIN/kubeadm" config images list --kubernetes-version "$kubernetes" 2>/dev/null | grep -E '/(kube-proxy|coredns):'
  pause_image
}

# push_image LOCAL NAME
push_image() {
  docker image inspect "$1" >/dev/null 2>&1 || fail "there is no image $1: run make demo first, which builds all images"
  say "pushing $1"
  docker tag "$1" "$registry/demo/$2:$version"
  logged "$REPOT_CACHE/log/demo-push.log" timeout 600 docker push -q "$registry/demo/$2:$version" ||
    fail "$1 could not be pushed to $registry: check the registry and the login (docker login)"
}

# push_all: the files come last, so that a registry with files has all images.
push_all() {
  local program=$CARGO_TARGET_DIR/$CARGO_BUILD_TARGET/debug/demo node dir image name
  [ -z "${REPOT_REGISTRY:-}" ] || fail "REPOT_REGISTRY is for make demo: unset the variable, and name the registry as an argument"
  [ -x "$program" ] || fail "there is no program $program: run make demo first, which builds it"
  hack/docker.sh up
  node=$(hack/node-image.sh)
  dir=$(stage demo-files)
  # shellcheck disable=SC2086 # The names of commands are words.
  set_binaries "$dir" $COMMANDS
  mkdir "$dir/stamps"
  for name in $COMMANDS; do cp "$REPOT_BIN/.stamps/$name" "$dir/stamps/"; done
  strip -o "$dir/demo" "$program"
  git rev-parse HEAD >"$dir/commit"
  push_image "$node" node
  local_images >"$dir/names"
  while read -r image; do
    name=${image##*/}
    name=${name%%:*}
    push_image "$image" "$name"
    echo "$image $name" >>"$dir/images"
  done <"$dir/names"
  printf 'FROM scratch\nCOPY . /demo/\n' >"$dir/Dockerfile"
  docker build -q -t "$files" "$dir" >/dev/null
  logged "$REPOT_CACHE/log/demo-push.log" timeout 600 docker push -q "$files" || fail "the program could not be pushed to $registry"
  say "$registry has the demonstration $version: make demo REPOT_REGISTRY=$registry"
}

# pull_image NAME [LOCAL]: in the background.
pull_image() {
  timeout 600 docker pull -q "$registry/demo/$1:$version" >/dev/null || fail "$registry/demo/$1:$version could not be pulled"
  [ -z "${2:-}" ] || docker tag "$registry/demo/$1:$version" "$2"
}

pull_files() {
  local container
  timeout 600 docker pull -q "$files" >/dev/null ||
    fail "$registry has no demonstration $version, or does not answer: check REPOT_REGISTRY and REPOT_VERSION, or run make demo without both"
  rm -rf "$FOLDER" && mkdir -p "$FOLDER" "$REPOT_BIN/.stamps"
  container=$(docker create "$files" none)
  docker cp "$container:/demo/." "$FOLDER/" >/dev/null
  docker rm "$container" >/dev/null
}

pull_all() {
  local image name commit jobs=() failure="an image could not be pulled from $registry"
  hack/docker.sh up
  say "pulling the demonstration $version from $registry"
  pull_files
  commit=$(git rev-parse HEAD 2>/dev/null || true)
  [ "$commit" = "$(cat "$FOLDER/commit")" ] ||
    say "the images are of commit $(cat "$FOLDER/commit"), and this clone is at ${commit:-no commit}: scripts and programs may not fit"
  tick "pulling images" 7>&- 8>&- 9>&- &
  ticker=$!
  trap 'kill "$ticker" 2>/dev/null || true' EXIT
  pull_image node & jobs+=($!)
  while read -r image name; do
    pull_image "$name" "$image" & jobs+=($!)
    # A few at once, because the engine unpacks the layers on the processors of this machine.
    if [ "${#jobs[@]}" -ge 4 ]; then joined "$failure" "${jobs[@]}"; jobs=(); fi
  done <"$FOLDER/images"
  joined "$failure" "${jobs[@]}"
  kill "$ticker" 2>/dev/null || true
  wait "$ticker" 2>/dev/null || true
  for name in $COMMANDS; do
    # Not into a link to a command of this machine.
    cp "$FOLDER/bin/$name" "$REPOT_BIN/$name.new" && mv -f "$REPOT_BIN/$name.new" "$REPOT_BIN/$name"
    cp "$FOLDER/stamps/$name" "$REPOT_BIN/.stamps/$name"
  done
  echo "$registry/demo/node:$version" >"$FOLDER/node"
  say "pulled $(wc -l <"$FOLDER/images") images, and that of the nodes"
}

case $1 in
  push) push_all ;;
  pull) pull_all ;;
  *) fail "usage: hack/demo-registry.sh push|pull REGISTRY" ;;
esac
