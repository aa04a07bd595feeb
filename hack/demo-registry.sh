#!/usr/bin/env bash
# The demonstration from a registry: the images, commands and program that `make demo` builds otherwise.
#   hack/demo-registry.sh push REGISTRY   after `make demo` on this machine
#   hack/demo-registry.sh pull REGISTRY   leaves commands in $REPOT_BIN and the program in $REPOT_CACHE/demo (hack/demo.sh)
# The images are REGISTRY/demo/NAME:VERSION. VERSION is REPOT_VERSION, or v and the version in Cargo.toml. The container engine pulls
# without TLS only from this machine (127.0.0.1), or from a registry that its settings name as insecure. No line of the output names
# the registry, because logs of CI are public.
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
LOGS=$REPOT_CACHE/log
# For the end of the script, also after a failure.
container="" folder="" jobs=()

clean_up() {
  local job
  stop_ticker
  for job in "${jobs[@]}"; do kill "$job" 2>/dev/null || true; done
  for job in "${jobs[@]}"; do wait "$job" 2>/dev/null || true; done
  [ -z "$container" ] || docker rm -f "$container" >/dev/null 2>&1 || true
  [ -z "$folder" ] || rm -rf "$folder"
}
trap clean_up EXIT
mkdir -p "$LOGS"

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
  timeout 600 docker push -q "$registry/demo/$2:$version" >"$LOGS/demo-push.log" 2>&1 ||
    fail "$1 could not be pushed: check the registry and the login (docker login); log: $LOGS/demo-push.log"
  remove_tag "$2"
}

# remove_tag NAME: the image keeps its local name.
remove_tag() { docker rmi "$registry/demo/$1:$version" >/dev/null 2>&1 || true; }

# push_all: the files come last, so that a registry with files has all images.
push_all() {
  local program=$CARGO_TARGET_DIR/$CARGO_BUILD_TARGET/debug/demo node image name
  refuse_registry
  [ -x "$program" ] || fail "there is no program $program: run make demo first, which builds it"
  hack/docker.sh up
  node=$(hack/node-image.sh)
  start_ticker "pushing images"
  folder=$(stage demo-files)
  # shellcheck disable=SC2086 # The names of commands are words.
  set_binaries "$folder" $COMMANDS
  mkdir "$folder/stamps"
  for name in $COMMANDS; do cp "$REPOT_BIN/.stamps/$name" "$folder/stamps/"; done
  strip -o "$folder/demo" "$program"
  git rev-parse HEAD >"$folder/commit"
  push_image "$node" node
  local_images >"$folder/names"
  while read -r image; do
    name=${image##*/}
    name=${name%%:*}
    push_image "$image" "$name"
    echo "$image $name" >>"$folder/images"
  done <"$folder/names"
  printf 'FROM scratch\nCOPY . /demo/\n' >"$folder/Dockerfile"
  timeout 600 docker build -q -t "$files" "$folder" >"$LOGS/demo-push.log" 2>&1 ||
    fail "the image with the program could not be built; log: $LOGS/demo-push.log"
  timeout 600 docker push -q "$files" >"$LOGS/demo-push.log" 2>&1 || fail "the program could not be pushed; log: $LOGS/demo-push.log"
  remove_tag files
  say "the registry has the demonstration $version: make demo REPOT_REGISTRY=REGISTRY"
}

# pull_image NAME [LOCAL]: as a job of its own. Bash runs a trap only after the command in the foreground.
pull_image() {
  trap 'kill "$!" 2>/dev/null; exit 143' TERM
  timeout 600 docker pull -q "$registry/demo/$1:$version" >"$LOGS/demo-pull-$1.log" 2>&1 &
  wait "$!" || fail "$1:$version could not be pulled; log: $LOGS/demo-pull-$1.log"
  [ -n "${2:-}" ] || return 0
  docker tag "$registry/demo/$1:$version" "$2"
  remove_tag "$1"
}

pull_files() {
  timeout 600 docker pull -q "$files" >"$LOGS/demo-pull-files.log" 2>&1 ||
    fail "the registry has no demonstration $version, or does not answer: check REPOT_REGISTRY and REPOT_VERSION, or run make demo\
 without both; log: $LOGS/demo-pull-files.log"
  rm -rf "$FOLDER" && mkdir -p "$FOLDER" "$REPOT_BIN/.stamps"
  container=$(docker create "$files" none 2>>"$LOGS/demo-pull-files.log") ||
    fail "no container has the files of the demonstration; log: $LOGS/demo-pull-files.log"
  timeout 300 docker cp "$container:/demo/." "$FOLDER/" >>"$LOGS/demo-pull-files.log" 2>&1 ||
    fail "the files of the demonstration could not be copied; log: $LOGS/demo-pull-files.log"
  docker rm "$container" >/dev/null
  container=""
}

pull_all() {
  local image name commit failure="an image could not be pulled, see the line above"
  hack/docker.sh up
  say "pulling the demonstration $version"
  start_ticker "pulling images"
  pull_files
  commit=$(git rev-parse HEAD 2>/dev/null || true)
  [ "$commit" = "$(cat "$FOLDER/commit")" ] ||
    say "the images are of commit $(cat "$FOLDER/commit"), and this clone is at ${commit:-no commit}: scripts and programs may not fit"
  pull_image node & jobs+=($!)
  while read -r image name; do
    pull_image "$name" "$image" & jobs+=($!)
    # A few at once, because the engine unpacks the layers on the processors of this machine.
    if [ "${#jobs[@]}" -ge 4 ]; then joined "$failure" "${jobs[@]}"; jobs=(); fi
  done <"$FOLDER/images"
  joined "$failure" "${jobs[@]}"
  jobs=()
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
