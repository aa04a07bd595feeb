#!/usr/bin/env bash
# Builds the images that Repot and its shoots' control planes run from, and loads them into kind clusters: only what changed.
#   hack/images.sh [--seed CLUSTER]… [--garden CLUSTER]… [--cloud CLUSTER]… [CRATE…]
# CLUSTER is a kind cluster's name. With CRATE names only those of Repot's own images are built and loaded.
# IMAGE_ALSO=PROGRAM compiles this program of the workspace in the same command.
# IMAGE_BINARIES=DIR takes compiled binaries from DIR instead of compiling.
# IMAGE_PROFILE=release builds optimised binaries (default: dev). IMAGE_TAG is the tag of Repot's images (default: dev).
# REPOT_PULLED=1: all images come from a registry (hack/demo-registry.sh), and are only loaded.
# IMAGE_FORMER_TAG=TAG gives new machines the images of a second version, too, which an earlier run has built with IMAGE_TAG=TAG.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh
[ -n "${REPOT_PULLED:-}" ] || refuse_registry
. hack/images/store.sh
. hack/images/crates.sh

profile=${IMAGE_PROFILE:-dev} tag=${IMAGE_TAG:-dev}
seeds=() gardens=() clouds=() crates=()
while [ $# -gt 0 ]; do
  case $1 in
    --seed) seeds+=("$2"); shift ;;
    --garden) gardens+=("$2"); shift ;;
    --cloud) clouds+=("$2"); shift ;;
    -*) fail "usage: hack/images.sh [--seed CLUSTER]… [--garden CLUSTER]… [--cloud CLUSTER]… [CRATE…]" ;;
    *) case " $GARDEN_CRATES $SEED_CRATES $OTHER_CRATES $MACHINE_CRATES $CLOUD_CRATES " in *" $1 "*) crates+=("$1") ;; *) fail "no image is made of $1; there are: $GARDEN_CRATES $SEED_CRATES $OTHER_CRATES $MACHINE_CRATES $CLOUD_CRATES" ;; esac ;;
  esac
  shift
done
only_ours=${crates[*]:+yes}
# shellcheck disable=SC2086 # The names of crates are words.
[ -n "$only_ours" ] || mapfile -t crates < <(printf '%s\n' $GARDEN_CRATES $SEED_CRATES $MACHINE_CRATES $CLOUD_CRATES | awk '!seen[$0]++')

# compile_own: leaves the binaries in the folder $binaries.
compile_own() {
  local options=(--profile "$profile") folder=$profile crate
  [ "$profile" != dev ] || folder=debug
  binaries=${IMAGE_BINARIES:-$CARGO_TARGET_DIR/$CARGO_BUILD_TARGET/$folder}
  [ -z "${IMAGE_BINARIES:-}${REPOT_PULLED:-}" ] || return 0
  for crate in "${crates[@]}" ${IMAGE_ALSO:-}; do options+=(--bin "$crate"); done
  # With one test of the workspace, dependencies get the features that tests need (tokio's test-util), and `make test` compiles none
  # of them again. Optimised programs are for users, and get no such feature.
  [ "$profile" != dev ] || options+=(--test generated)
  hack/packages.sh protobuf-compiler
  compile "$REPOT_CACHE/log/cargo.log" timeout 3000 cargo build --workspace "${options[@]}" ||
    fail "cargo build failed (log: $REPOT_CACHE/log/cargo.log)"
}

build_own() {
  local crate dir program
  [ -z "${REPOT_PULLED:-}" ] || return 0
  for crate in "${crates[@]}"; do
    dir=$(stage "own-$crate")
    rmdir "$dir/bin"
    mkdir -p "$dir/root/etc" "$dir/root/tmp"
    chmod 1777 "$dir/root/tmp"
    cp hack/images/own/etc/* "$dir/root/etc/"
    strip -o "$dir/root/$crate" "$binaries/$crate"
    for program in $(programs_beside "$crate"); do
      mkdir -p "$dir/root/usr/local/bin"
      cp -L "$REPOT_BIN/$program" "$dir/root/usr/local/bin/"
    done
    { cat hack/images/own/Dockerfile; printf 'ENTRYPOINT ["/%s"]\n' "$crate"; } >"$dir/Dockerfile"
    build_image "repot/$crate:$tag" "$dir"
  done
}

build_foreign() {
  control_plane_images >"$STAGE/control-plane-names"
  mapfile -t control_plane <"$STAGE/control-plane-names"
  edge_image
  control_plane+=(repot/edge:dev)
}

# nodes_of CLUSTER: the containers of its nodes.
nodes_of() { docker ps --filter "label=io.x-k8s.kind.cluster=$1" --format '{{.Names}}'; }

# load NODE IMAGE…: imports into the node what it does not have in exactly this version.
load() {
  local node=$1 image id missing=() ids=() have; shift
  have=$(docker exec "$node" sh -c 'cat /kind/loaded-images 2>/dev/null' || true)
  for image in "$@"; do
    id=$(docker image inspect -f '{{.Id}}' "$image")
    case $have in *"$image $id"*) ;; *) missing+=("$image") ids+=("$image $id") ;; esac
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "loading into $node: ${missing[*]}"
  docker save "${missing[@]}" | timeout 300 docker exec -i "$node" ctr -n k8s.io images import - >/dev/null ||
    fail "could not load images into $node"
  { printf '%s\n' "$have" "${ids[@]}"; } | awk 'NF { newest[$1] = $0 } END { for (name in newest) print newest[name] }' |
    docker exec -i "$node" sh -c 'cat >/kind/loaded-images'
}

# load_all LISTER: every cluster at once, each what its role needs.
load_all() {
  local jobs=() cluster images
  for cluster in "${gardens[@]}"; do
    mapfile -t images < <("$1" "$GARDEN_CRATES" garden)
    [ ${#images[@]} -eq 0 ] || { load "$cluster-control-plane" "${images[@]}" & jobs+=($!); }
  done
  for cluster in "${seeds[@]}"; do
    mapfile -t images < <("$1" "$SEED_CRATES $OTHER_CRATES" seed)
    [ ${#images[@]} -eq 0 ] || { load "$cluster-control-plane" "${images[@]}" & jobs+=($!); }
  done
  joined "an image could not be loaded" "${jobs[@]}"
}
foreign_image() {
  docker image inspect "$1" >/dev/null 2>&1 || timeout 300 docker pull -q "$1" >/dev/null || fail "there is no image $1"
}
# What instances start with. It is large and takes no compiling: it is loaded while the other images are made.
load_machines() {
  local cluster node
  for cluster in "${clouds[@]}"; do
    for node in $(nodes_of "$cluster"); do load "$node" repot/machine:dev & machine_jobs+=($!); done
  done
}

# What runs on the hosts of the cloud, and an archive of what runs on instances, for which these look at their host.
load_cloud() {
  local cluster=$1 node own=() version short full jobs=()
  mapfile -t own < <(own_images "$CLOUD_CRATES")
  version=$("$REPOT_BIN/kubeadm" version -o short)
  set -- repot/edge:dev
  for crate in $MACHINE_CRATES; do
    set -- "$@" "repot/$crate:$tag"
    [ -z "${IMAGE_FORMER_TAG:-}" ] || set -- "$@" "repot/$crate:$IMAGE_FORMER_TAG"
  done
  for full in $("$REPOT_BIN/kubeadm" config images list --kubernetes-version "$version" 2>/dev/null); do
    case $full in */kube-proxy:* | */coredns:*) ;; *) continue ;; esac
    foreign_image "$full"
    short=${full##*/}
    docker tag "$full" "$short"
    set -- "$@" "$short"
  done
  full=$(pause_image)
  foreign_image "$full"
  set -- "$@" "$full"
  for node in $(nodes_of "$cluster"); do
    (load "$node" "${own[@]}" && keep_for_machines "$node" "$@") & jobs+=($!)
  done
  joined "images could not be loaded into a node of $cluster" "${jobs[@]}"
}

# keep_for_machines NODE IMAGE…: as an archive, beside which stands what is in it.
keep_for_machines() {
  local node=$1 kept="" ids=() image; shift
  for image in "$@"; do ids+=("$image $(docker image inspect -f '{{.Id}}' "$image")"); done
  # There is none before the first time.
  kept=$(docker exec "$node" cat /var/lib/machine-images/content 2>/dev/null || true)
  [ "$kept" != "$(printf '%s\n' "${ids[@]}")" ] || return 0
  say "archive of images for machines in $node"
  docker exec "$node" mkdir -p /var/lib/machine-images
  docker save "$@" | timeout 300 docker exec -i "$node" sh -c 'cat >/var/lib/machine-images/all.tar.new && mv /var/lib/machine-images/all.tar.new /var/lib/machine-images/all.tar' ||
    fail "could not put the images for machines into $node"
  printf '%s\n' "${ids[@]}" | docker exec -i "$node" sh -c 'cat >/var/lib/machine-images/content'
}
own_images() { local crate; for crate in "${crates[@]}"; do case " $1 " in *" $crate "*) echo "repot/$crate:$tag" ;; esac; done; }
foreign_images() { [ "$2" = garden ] || printf '%s\n' "${control_plane[@]}"; }

hack/docker.sh up
lock_images
tools=(etcd etcdutl etcdctl helm kube-apiserver kube-controller-manager kube-scheduler kubeadm)
# No landscape runs it: it is built only for its own image.
case " ${crates[*]} " in *" cloud-controller-manager-aws "*) tools+=(aws-cloud-controller-manager) ;; esac
hack/tools.sh "${tools[@]}"
# What takes no compiling comes first: a seed that waits for our own images can already be looked at.
control_plane=() machine_jobs=()
load_machines
if [ -z "$only_ours" ]; then
  build_foreign
  load_all foreign_images
fi
compile_own
build_own
load_all own_images
joined "the image of instances could not be loaded" "${machine_jobs[@]}"
for cluster in "${clouds[@]}"; do load_cloud "$cluster"; done
say "images ready: ${crates[*]/#/repot/} ${control_plane[*]}"
