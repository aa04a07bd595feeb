#!/usr/bin/env bash
# Builds the image of one crate for arm64, as a proof that the suite compiles for arm64. `make release` builds for amd64 alone.
#   hack/release/arm64.sh [CRATE]      default: tunnel. The image is an OCI archive in $REPOT_CACHE/release/arm64
#   hack/release/arm64.sh --prepare    takes from the network all that a later run needs: packages, compiler and crates
# Debian trixie-backports has compiler and standard library for both architectures. `SUITE=NAME BACKPORTS= hack/release/arm64.sh`
# takes all packages from a different suite.
# For tests: RELEASE_PROFILE=dev is quick to compile.
set -euo pipefail
cd "$(dirname "$0")/../.."
. hack/env.sh
. hack/progress.sh
. hack/images/store.sh
. hack/release/oci.sh

SUITE=${SUITE:-trixie} BACKPORTS=${BACKPORTS-trixie-backports}
CRATE=${1:-tunnel} PROFILE=${RELEASE_PROFILE:-release}
case $CRATE in --prepare) ;; -*) fail "usage: hack/release/arm64.sh [CRATE | --prepare]" ;; esac
TARGET=aarch64-unknown-linux-gnu
BUILDER=repot/arm64-builder:$SUITE CONTAINER=repot-arm64
OUT=$REPOT_CACHE/release/arm64 WORK=$REPOT_CACHE/release/arm64.work LOG=$REPOT_CACHE/log/release
ARCHITECTURE=arm64
EPOCH=$(git log -1 --format=%ct)
CREATED=$(date -u -d "@$EPOCH" +%Y-%m-%dT%H:%M:%SZ)
# For the end of the script: the folder of debootstrap, the process of `bounded`, and whether there may be a container.
bootstrap="" worker="" running=""

# bounded SECONDS COMMAND…: ends COMMAND after SECONDS, and together with this script. Bash runs a trap only after the command in the
# foreground, so COMMAND runs in the background. `timeout` passes the signal on to the process group of COMMAND.
bounded() {
  local seconds=$1 status=0; shift
  timeout --kill-after 20 "$seconds" "$@" &
  worker=$!
  wait "$worker" || status=$?
  worker=""
  return "$status"
}

# clean_up: a build ends with its client. A container runs in the engine, and does not end with the command that has started the
# container. debootstrap may leave mounts in its folder.
clean_up() {
  trap '' INT TERM
  if [ -n "$worker" ]; then
    kill "$worker" 2>/dev/null || true
    wait "$worker" || true
  fi
  if [ -n "$running" ]; then timeout -s KILL 60 docker rm -f "$CONTAINER" >/dev/null 2>&1 || true; fi
  [ -n "$bootstrap" ] || return 0
  umount -q "$bootstrap/proc" "$bootstrap/sys" 2>/dev/null || true
  rm -rf --one-file-system "$bootstrap" || say "remove $bootstrap by hand"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# builder_image: Debian with rustc and cargo for this machine, and the standard library and libc for arm64.
builder_image() {
  local mirror
  if docker image inspect "$BUILDER" >/dev/null 2>&1; then return; fi
  hack/packages.sh debootstrap
  say "bootstrapping Debian $SUITE"
  bootstrap=$(mktemp -d "$REPOT_CACHE/debian.XXXXXX")
  logged "$LOG/arm64-debootstrap.log" bounded 900 debootstrap --variant=minbase "$SUITE" "$bootstrap" ||
    fail "debootstrap failed or took over 900 s; log: $LOG/arm64-debootstrap.log"
  mirror=$(awk '$1 == "deb" { print $2; exit }' "$bootstrap/etc/apt/sources.list")
  [ -z "$BACKPORTS" ] || echo "deb $mirror $BACKPORTS main" >>"$bootstrap/etc/apt/sources.list"
  # shellcheck disable=SC2016 # The second shell has the arguments.
  logged "$LOG/arm64-import.log" bounded 300 bash -c 'set -o pipefail; tar -C "$1" -c . | docker import - "$2"' - \
    "$bootstrap" "$BUILDER-base" || fail "docker import failed or took over 300 s; log: $LOG/arm64-import.log"
  rm -rf --one-file-system "$bootstrap"
  bootstrap=""
  say "installing the compiler for $TARGET"
  rm -rf "$WORK/builder" && mkdir -p "$WORK/builder"
  cat >"$WORK/builder/Dockerfile" <<END
FROM $BUILDER-base
RUN dpkg --add-architecture arm64 && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y \
  --no-install-recommends ${BACKPORTS:+-t $BACKPORTS} rustc cargo libstd-rust-dev libstd-rust-dev:arm64 gcc libc6-dev \
  gcc-aarch64-linux-gnu libc6-dev-arm64-cross protobuf-compiler ca-certificates
END
  logged "$LOG/arm64-builder.log" bounded 1800 docker build -t "$BUILDER" "$WORK/builder" ||
    fail "the compiler for arm64 was not installed, or not in 1800 s; log: $LOG/arm64-builder.log"
}

# check_compiler: sets rustc to the version in the image.
check_compiler() {
  local needed
  needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
  rustc=$(timeout 120 docker run --rm "$BUILDER" rustc --version | awk '{ print $2 }') ||
    fail "image $BUILDER did not report the version of rustc in 120 s: remove the image (docker rmi $BUILDER), and repeat"
  [ "$(printf '%s\n' "$needed" "$rustc" | sort -V | head -n 1)" = "$needed" ] ||
    fail "Debian $SUITE has rustc $rustc, and the workspace needs $needed: choose a newer suite (SUITE=NAME)"
}

fetch_crates() {
  say "fetching the crates for $TARGET"
  logged "$LOG/arm64-fetch.log" bounded 900 cargo fetch --locked --target "$TARGET" ||
    fail "the crates were not fetched, or not in 900 s; does the registry of crates answer? Log: $LOG/arm64-fetch.log"
}

# compile_crate: with the crates that cargo has fetched here, so that the container needs no network.
compile_crate() {
  local home=${CARGO_HOME:-$HOME/.cargo}
  say "compiling $CRATE for $TARGET with rustc $rustc"
  mkdir -p "$WORK/target"
  running=1
  docker rm -f "$CONTAINER" >/dev/null 2>&1 || true
  logged "$LOG/arm64-cargo.log" bounded 5400 docker run --rm --name "$CONTAINER" --network none -v "$PWD:/repot:ro" -v "$home/registry:/cargo/registry" \
    -v "$WORK/target:/target" -w /repot -e CARGO_HOME=/cargo -e CARGO_TARGET_DIR=/target \
    -e RUSTFLAGS="-C target-feature=+crt-static" -e CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
    -e CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc \
    "$BUILDER" cargo build --profile "$PROFILE" --locked --offline --target "$TARGET" --bin "$CRATE" ||
    fail "$CRATE does not compile for arm64, or not in 5400 s; log: $LOG/arm64-cargo.log"
}

# check_program FILE: a static program for arm64.
check_program() {
  local machine segments
  machine=$(LC_ALL=C readelf -hW "$1" | sed -n 's/^ *Machine: *//p')
  [ "$machine" = AArch64 ] || fail "$1 is for ${machine:-no machine}, and not for AArch64"
  segments=$(LC_ALL=C readelf -lW "$1")
  case $segments in *INTERP*) fail "$1 is not static: it names a loader" ;; esac
}

hack/docker.sh up
hack/packages.sh qemu-user-static jq binutils
hack/tools.sh oras
mkdir -p "$LOG" "$WORK"
builder_image
check_compiler
fetch_crates
if [ "$CRATE" = --prepare ]; then
  say "the compiler and the crates for arm64 are ready"
  exit 0
fi
# Of a run that has not ended.
rm -rf "$WORK/layouts"
rm -rf "$OUT" && mkdir -p "$OUT"
compile_crate
case $PROFILE in dev) folder=debug ;; *) folder=$PROFILE ;; esac
program=$WORK/target/$TARGET/$folder/$CRATE
check_program "$program"
qemu-aarch64-static "$program" --help >/dev/null || fail "$program does not run on arm64"
root=$WORK/root
rm -rf "$root" && mkdir -p "$root/etc" "$root/tmp"
chmod 1777 "$root/tmp"
cp hack/images/own/etc/* "$root/etc/"
cp "$program" "$root/$CRATE"
pack_image suite "repot/$CRATE" "v$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)" "$root" \
  '{"User": "65532:65532", "Env": ["PATH=/usr/local/bin:/"], "Entrypoint": ["/'"$CRATE"'"]}'
say "image for arm64: $(cut -f2-5 "$OUT/artifacts.tsv")"
