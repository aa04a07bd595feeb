# Sourced by the scripts that make images: images are made again only where what goes into them has changed.
# shellcheck shell=bash
STAGE=$REPOT_CACHE/stage
DEBIAN_BASE=repot/debian:bookworm

# One run makes images at a time: they share the folder in which builds are put together. Longer than a cold build.
lock_images() {
  mkdir -p "$STAGE"
  exec 7>"$STAGE/lock"
  flock -w 3000 7 || fail "another run has made images for 50 minutes; look for it with: ps -ef"
}

# content_hash DIR [TEXT…]: a digest over names, modes and contents of a folder, and over TEXT.
content_hash() {
  local dir=$1; shift
  {
    printf '%s\n' "$@"
    (cd "$dir" && find . -type f -printf '%p %m\n' -o -type l -printf '%p %l\n' | LC_ALL=C sort)
    (cd "$dir" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0r sha256sum)
  } | sha256sum | cut -c1-16
}

image_label() { docker image inspect -f '{{index .Config.Labels "repot.content"}}' "$1" 2>/dev/null || true; }

# build_image TAG DIR [BUILD OPTION…]: docker build, skipped where TAG was made from the same content.
build_image() {
  local tag=$1 dir=$2 hash base=""; shift 2
  # From a registry: hack/demo-registry.sh.
  if [ -n "${REPOT_PULLED:-}" ]; then
    docker image inspect "$tag" >/dev/null 2>&1 || fail "the registry has no image $tag"
    return
  fi
  case "$*" in *BASE=*) base=$(docker image inspect -f '{{.Id}}' "$DEBIAN_BASE") ;; esac
  # shellcheck disable=SC2086 # none or one
  hash=$(content_hash "$dir" "$@" $base)
  [ "$(image_label "$tag")" != "$hash" ] || return 0
  say "building image $tag"
  logged "$REPOT_CACHE/log/image-${tag//[\/:]/-}.log" \
    timeout 900 docker build -q --label "repot.content=$hash" "$@" -t "$tag" "$dir" || fail "could not build image $tag"
}

# stage NAME: an empty folder for a build; set_binaries puts tools into its bin/.
stage() { rm -rf "${STAGE:?}/$1"; mkdir -p "$STAGE/$1/bin"; printf '%s' "$STAGE/$1"; }
set_binaries() {
  local dir=$1 name; shift
  [ -z "${REPOT_PULLED:-}" ] || return 0
  for name in "$@"; do cp -L "$REPOT_BIN/$name" "$dir/bin/$name"; done
}

# debian_base: the image that others take packages from; from a registry where one answers, else from the package archive.
debian_base() {
  local root mirror
  [ -z "${REPOT_PULLED:-}" ] || return 0
  if docker image inspect "$DEBIAN_BASE" >/dev/null 2>&1; then return; fi
  if registry_answers && timeout 120 docker pull -q debian:bookworm-slim >/dev/null 2>&1; then
    docker tag debian:bookworm-slim "$DEBIAN_BASE"
    return
  fi
  [ "$(id -u)" = 0 ] || fail "no image registry answers, and debootstrap needs root: run this as root"
  hack/packages.sh debootstrap
  say "bootstrapping a small Debian (no image registry answers)"
  root=$(mktemp -d "$REPOT_CACHE/debian.XXXXXX")
  logged "$REPOT_CACHE/log/debootstrap.log" timeout 600 debootstrap --variant=minbase bookworm "$root" ||
    { rm -rf "$root"; fail "debootstrap failed; does the Debian archive answer?"; }
  # The suites with fixes, from wherever debootstrap took the packages.
  mirror=$(awk '$1 == "deb" { print $2; exit }' "$root/etc/apt/sources.list")
  printf 'deb %s bookworm%s main\n' "$mirror" "" "$mirror" -updates "$mirror-security" -security >"$root/etc/apt/sources.list"
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/*
  tar -C "$root" -c . | docker import - "$DEBIAN_BASE" >/dev/null
  rm -rf "$root"
}

# edge_image: HAProxy. The seeds' front is made of it, and what the object store's road leads through.
edge_image() {
  local dir
  debian_base
  dir=$(stage "edge-${NAME:-images}")
  cp hack/images/edge/Dockerfile hack/images/closure.sh "$dir/"
  build_image repot/edge:dev "$dir" --build-arg "BASE=$DEBIAN_BASE"
}

# pause_image: the name of the image that containerd of machines starts for each Pod.
pause_image() {
  docker run --rm --entrypoint grep repot/machine:dev -ohE '[a-z0-9./-]+/pause:[0-9.]+' /etc/containerd/config.toml | head -n 1
}

# Asked once a run, by pulling the smallest image there is from wherever the engine pulls.
registry_answers() {
  [ -z "${REPOT_NO_REGISTRY:-}" ] || return 1
  if [ -z "${registry_state:-}" ]; then
    if timeout 10 docker pull -q hello-world >/dev/null 2>&1; then registry_state=yes; else registry_state=no; fi
  fi
  [ "$registry_state" = yes ]
}

# control_plane_images: builds what hosted control planes run from, and prints the names.
control_plane_images() {
  local name dir tag version
  version=$("$REPOT_BIN/kubeadm" version -o short)
  for name in kube-apiserver kube-controller-manager kube-scheduler etcd; do
    dir=$(stage "control-plane-$name")
    tag=$name:$version
    if [ "$name" = etcd ]; then
      tag=etcd:$("$REPOT_BIN/etcd" --version | sed -n 's/^etcd Version: /v/p')
      set_binaries "$dir" etcdctl etcdutl
    fi
    set_binaries "$dir" "$name"
    cp hack/images/node-parts/control-plane/Dockerfile "$dir/"
    build_image "$tag" "$dir"
    echo "$tag"
  done
}
