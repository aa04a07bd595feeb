#!/usr/bin/env bash
# Builds the image of one crate for arm64, as a proof that the suite compiles for arm64. `make release` builds for amd64 alone.
#   hack/release/arm64.sh [CRATE]      default: tunnel. The image is an OCI archive in $REPOT_CACHE/release/arm64
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
TARGET=aarch64-unknown-linux-gnu
BUILDER=repot/arm64-builder:$SUITE CONTAINER=repot-arm64
OUT=$REPOT_CACHE/release/arm64 WORK=$REPOT_CACHE/release/arm64.work LOG=$REPOT_CACHE/log/release
ARCHITECTURE=arm64
EPOCH=$(git log -1 --format=%ct)
CREATED=$(date -u -d "@$EPOCH" +%Y-%m-%dT%H:%M:%SZ)

# builder_image: Debian with rustc and cargo for this machine, and the standard library and libc for arm64.
builder_image() {
  local root mirror
  if docker image inspect "$BUILDER" >/dev/null 2>&1; then return; fi
  hack/packages.sh debootstrap
  say "bootstrapping Debian $SUITE"
  root=$(mktemp -d "$REPOT_CACHE/debian.XXXXXX")
  logged "$LOG/arm64-debootstrap.log" timeout 900 debootstrap --variant=minbase "$SUITE" "$root" ||
    fail "debootstrap failed; log: $LOG/arm64-debootstrap.log"
  mirror=$(awk '$1 == "deb" { print $2; exit }' "$root/etc/apt/sources.list")
  [ -z "$BACKPORTS" ] || echo "deb $mirror $BACKPORTS main" >>"$root/etc/apt/sources.list"
  tar -C "$root" -c . | docker import - "$BUILDER-base" >/dev/null
  rm -rf "$root"
  say "installing the compiler for $TARGET"
  logged "$LOG/arm64-builder.log" timeout 1800 docker build -t "$BUILDER" - <<END || fail "no compiler for arm64; log: $LOG/arm64-builder.log"
FROM $BUILDER-base
RUN dpkg --add-architecture arm64 && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y \
  --no-install-recommends ${BACKPORTS:+-t $BACKPORTS} rustc cargo libstd-rust-dev libstd-rust-dev:arm64 gcc libc6-dev \
  gcc-aarch64-linux-gnu libc6-dev-arm64-cross protobuf-compiler ca-certificates
END
}

# compile_crate: with the crates that cargo has fetched here, so that the container needs no network.
compile_crate() {
  local home=${CARGO_HOME:-$HOME/.cargo} needed have
  needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
  have=$(docker run --rm "$BUILDER" rustc --version | awk '{ print $2 }')
  [ "$(printf '%s\n' "$needed" "$have" | sort -V | head -n 1)" = "$needed" ] ||
    fail "Debian $SUITE has rustc $have, and the workspace needs $needed: choose a newer suite (SUITE=NAME)"
  say "compiling $CRATE for $TARGET with rustc $have"
  cargo fetch --locked --target "$TARGET" --quiet
  mkdir -p "$WORK/target"
  # A container does not end with the command that has started the container.
  trap 'docker rm -f "$CONTAINER" >/dev/null 2>&1 || true' EXIT
  trap 'exit 130' INT TERM
  docker rm -f "$CONTAINER" >/dev/null 2>&1 || true
  logged "$LOG/arm64-cargo.log" timeout 5400 docker run --rm --name "$CONTAINER" --network none -v "$PWD:/repot:ro" -v "$home/registry:/cargo/registry" \
    -v "$WORK/target:/target" -w /repot -e CARGO_HOME=/cargo -e CARGO_TARGET_DIR=/target \
    -e RUSTFLAGS="-C target-feature=+crt-static" -e CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
    -e CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc \
    "$BUILDER" cargo build --profile "$PROFILE" --locked --offline --target "$TARGET" --bin "$CRATE" ||
    fail "$CRATE does not compile for arm64; log: $LOG/arm64-cargo.log"
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
# Of a run that has not ended.
rm -rf "$WORK/layouts"
rm -rf "$OUT" && mkdir -p "$OUT"
builder_image
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
