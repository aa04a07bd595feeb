#!/usr/bin/env bash
# Makes sure that there is a node image for kind and prints its name on standard output, and nothing else there.
# Where an image registry answers that is the image that this kind was released with; else one is built from parts.
# The same system, as machines of the local cloud start with it, is repot/machine:dev then.
# REPOT_NODE_IMAGE names another one to use; REPOT_NO_REGISTRY=1 builds from parts without asking.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh
. hack/images/store.sh

MACHINE=repot/machine:dev
# foreign IMAGE: an image from a registry is also what machines start with.
foreign() {
  docker image inspect "$1" >/dev/null 2>&1 || timeout 600 docker pull -q "$1" >&2 || fail "image $1 could not be pulled"
  docker tag "$1" "$MACHINE"
  echo "$1"
}

# From a registry (hack/demo-registry.sh), with the image of machines.
if [ -n "${REPOT_PULLED:-}" ]; then echo "${REPOT_NODE_IMAGE:?}"; exit 0; fi
if [ -n "${REPOT_NODE_IMAGE:-}" ]; then foreign "$REPOT_NODE_IMAGE"; exit 0; fi

kind_module=$(cd hack/tools && go mod download -json sigs.k8s.io/kind | jq -r .Dir)
[ -d "$kind_module" ] || fail "kind's module could not be had; does the Go module proxy answer?"
bounding=$(sed -n 's/^CapBnd:[[:space:]]*//p' /proc/self/status)
# The released image's runc cannot start pods where CAP_SYS_RESOURCE is missing; the one from parts can.
if registry_answers && (((0x$bounding >> 24) & 1)); then
  image=$(sed -n 's/^const Image = "\(.*\)"$/\1/p' "$kind_module/pkg/apis/config/defaults/image.go")
  say "node image: $image"
  foreign "$image"
  exit 0
fi

binaries=(etcd etcdctl etcdutl kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubeadm kubectl
  coredns local-path-provisioner)
hack/tools.sh "${binaries[@]}"
version=$("$REPOT_BIN/kubeadm" version -o short)
lock_images
# What the node image is made of: these files, kind's own and the binaries' versions.
parts=$(content_hash hack/images/node-parts "$kind_module" "$(cd "$REPOT_BIN/.stamps" && grep -H . "${binaries[@]}")" "$(sha256sum <hack/node-image.sh)")
image=repot/node:$parts
archive=$REPOT_CACHE/images/node-$parts.tar
if docker image inspect "$image" "$MACHINE" >/dev/null 2>&1; then echo "$image"; exit 0; fi
if [ -f "$archive" ]; then
  say "loading node image $image"
  timeout 300 docker load -q -i "$archive" >&2
  echo "$image"
  exit 0
fi

debian_base
dir=$(stage node)
set_binaries "$dir" kubelet kubeadm kubectl
cp hack/images/node-parts/node/* "$dir/"
cp -r "$kind_module/images/base/files" "$dir/kind-files"
chmod -R u+w "$dir/kind-files"
rm -rf "$dir/kind-files/LICENSES"
build_image repot/node:bare "$dir" --build-arg "BASE=$DEBIAN_BASE" --build-arg "KUBERNETES_VERSION=$version"
docker tag repot/node:bare "$MACHINE"

# part TAG DOCKERFILE BINARY…: one image of the cluster's own.
part() {
  local tag=$1 dockerfile=$2 dir; shift 2
  dir=$(stage "part-$(basename "${tag%%:*}")")
  set_binaries "$dir" "$@"
  cp hack/images/closure.sh "$dir/"
  cp "$dockerfile" "$dir/Dockerfile"
  build_image "$tag" "$dir" --build-arg "BASE=$DEBIAN_BASE"
}

loaded=""
# Hosted control planes run from the same images under names without a registry: both names go into the node.
mkdir -p "$STAGE"
control_plane_images >"$STAGE/node-control-plane-names"
mapfile -t names <"$STAGE/node-control-plane-names"
for name in "${names[@]}"; do
  loaded+="$name $(docker image inspect -f '{{.Id}}' "$name")"$'\n'
  case $name in etcd:*) hosted_etcd=$name ;; esac
done
for name in $("$REPOT_BIN/kubeadm" config images list --kubernetes-version "$version" 2>/dev/null); do
  case $name in
    */kube-proxy:*) part "$name" hack/images/node-parts/control-plane/kube-proxy.Dockerfile kube-proxy ;;
    */kube-*) docker tag "${name##*/}" "$name" ;;
    */coredns:*) part "$name" hack/images/node-parts/control-plane/coredns.Dockerfile coredns ;;
    */etcd:*) docker tag "$hosted_etcd" "$name" ;;
    */pause:*) continue ;;
  esac
  names+=("$name")
done
# The pause image is the one that the node's containerd is told to use.
name=$(sed -n 's/.*sandbox_image = "\(.*\)"/\1/p' "$dir/kind-files/etc/containerd/config.toml")
dir=$(stage part-pause)
cp hack/images/node-parts/pause/* "$dir/"
cc -Os -static -o "$dir/pause" "$dir/pause.c" || fail "needs a C compiler and a static libc (Debian: gcc libc6-dev)"
build_image "$name" "$dir"
names+=("$name")
part repot/local-path:dev hack/images/node-parts/local-path/Dockerfile local-path-provisioner
names+=(repot/local-path:dev)

say "putting ${#names[@]} images into the node image"
builder=repot-node-build-$$
trap 'docker rm -f "$builder" >/dev/null 2>&1 || true' EXIT
docker run -d --privileged --name "$builder" --entrypoint sleep repot/node:bare 1800 >/dev/null
docker exec -d "$builder" containerd
wait_for 30 "containerd in the build container" docker exec "$builder" ctr version
docker save "${names[@]}" | timeout 300 docker exec -i "$builder" ctr -n k8s.io images import --no-unpack - >/dev/null
docker exec "$builder" sh -c 'kill "$(pidof containerd)"' && wait_for 20 "containerd ends" eval "! docker exec $builder pidof containerd"
printf '%s' "$loaded" | docker exec -i "$builder" sh -c 'rm -rf /run/containerd; cat >/kind/loaded-images'
docker commit -c 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]' "$builder" "$image" >/dev/null
docker rm -f "$builder" >/dev/null
mkdir -p "$(dirname "$archive")"
rm -f "$REPOT_CACHE"/images/node-*.tar
docker save -o "$archive.new" "$image" "$MACHINE" "${names[@]}" && mv "$archive.new" "$archive"
# Node images of older contents, where nothing runs from them any more.
docker images -q repot/node --filter "before=$image" | sort -u | xargs -r docker rmi -f >/dev/null 2>&1 || true
say "node image built: $image ($(du -h "$archive" | cut -f1))"
echo "$image"
