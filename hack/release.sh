#!/usr/bin/env bash
# Makes a release of the suite in $REPOT_CACHE/release/VERSION: images and charts as OCI archives, definitions of kinds, the
# plugin, bills of materials, changes, provenance and checksums (docs/operate/release.md). Pushes and signs nothing.
#   hack/release.sh [VERSION]     vMAJOR.MINOR.PATCH; default: the tag of the commit, else the version in Cargo.toml
# RELEASE_DIR=FOLDER is the folder of the release. RELEASE_URI=URL is where users will find its files, for the manifest of krew.
# For tests: RELEASE_PROFILE=dev is quick to compile, RELEASE_PROGRAMS=FOLDER takes programs that are compiled already,
# RELEASE_ALLOW_DIRTY=1 accepts changes that are not committed.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh
refuse_registry
. hack/images/crates.sh
. hack/release/oci.sh
. hack/release/charts.sh
. hack/release/pages.sh
. hack/release/sbom.sh
umask 022
unset KUBEBUILDER_ASSETS

cargo_version() { sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml; }
VERSION=${1:-}
[ -n "$VERSION" ] || VERSION=$(git describe --tags --exact-match --match 'v[0-9]*' 2>/dev/null || echo "v$(cargo_version)")
[[ $VERSION =~ ^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$ ]] ||
  fail "VERSION is '$VERSION': write a semantic version with a v, such as v1.2.3 or v1.2.3-rc.1"
[ "${VERSION#v}" = "$(cargo_version)" ] ||
  fail "VERSION is $VERSION, and Cargo.toml has $(cargo_version), which the programs report: set the version in Cargo.toml"
changes=$(git status --porcelain) || fail "git does not report the changes of the working tree: run this in a clone"
[ -n "${RELEASE_ALLOW_DIRTY:-}" ] || [ -z "$changes" ] ||
  fail "the working tree has changes that are not committed: commit them, so that the release names its source"

profile=${RELEASE_PROFILE:-release}
FINAL=${RELEASE_DIR:-$REPOT_CACHE/release/$VERSION}
# Under way in a folder of its own, so that a release is complete or not there.
OUT=$FINAL.new WORK=$FINAL.work LOG=$REPOT_CACHE/log/release
COMMIT=$(git rev-parse HEAD)
EPOCH=$(git log -1 --format=%ct)
CREATED=$(date -u -d "@$EPOCH" +%Y-%m-%dT%H:%M:%SZ)
export SOURCE_DATE_EPOCH=$EPOCH
[ ! -e "$FINAL" ] || fail "$FINAL exists: remove the folder to make the release again"
# shellcheck disable=SC2086 # The names of crates are words.
mapfile -t crates < <(printf '%s\n' $GARDEN_CRATES $SEED_CRATES $OTHER_CRATES $MACHINE_CRATES $CLOUD_CRATES | awk '!seen[$0]++')

# compile_programs: leaves the programs of the suite in the folder $programs.
compile_programs() {
  local options=() environment=() folder=$profile crate
  programs=${RELEASE_PROGRAMS:-}
  [ -z "$programs" ] || return 0
  for crate in "${crates[@]}" kubectl-repot; do options+=(--bin "$crate"); done
  # As in hack/images.sh: a quick build shares its dependencies with the tests, which have no SOURCE_DATE_EPOCH: each crate that
  # compiles C would be compiled again, with all crates above. An optimised build has no feature for tests, and no path of this
  # machine in its messages.
  case $profile in
    dev) folder=debug options+=(--test generated) environment=(env -u SOURCE_DATE_EPOCH) ;;
    *) RUSTFLAGS+=" --remap-path-prefix=$PWD=/repot --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo" ;;
  esac
  hack/packages.sh protobuf-compiler
  compile "$LOG/cargo.log" timeout 10800 "${environment[@]}" cargo auditable build --locked --workspace --profile "$profile" \
    "${options[@]}" ||
    fail "cargo build failed (log: $LOG/cargo.log)"
  programs=$CARGO_TARGET_DIR/$CARGO_BUILD_TARGET/$folder
}

# suite_images: a static program in an empty image, as in hack/images/own/Dockerfile.
suite_images() {
  local crate root program
  for crate in "${crates[@]}"; do
    say "image repot/$crate"
    root=$WORK/root/$crate
    mkdir -p "$root/etc" "$root/tmp"
    chmod 1777 "$root/tmp"
    cp hack/images/own/etc/* "$root/etc/"
    [ -x "$programs/$crate" ] || fail "there is no program $programs/$crate"
    strip -o "$root/$crate" "$programs/$crate"
    for program in $(programs_beside "$crate"); do install -D -m 755 "$REPOT_BIN/$program" "$root/usr/local/bin/$program"; done
    pack_image suite "repot/$crate" "$VERSION" "$root" \
      '{"User": "65532:65532", "Env": ["PATH=/usr/local/bin:/"], "Entrypoint": ["/'"$crate"'"]}'
    write_sbom "repot/$crate" "$VERSION" "$root"
  done
}

# edge_image: HAProxy of Debian, as in hack/images/edge/Dockerfile.
edge_image() {
  local root=$WORK/root/edge
  say "image repot/edge"
  hack/release/debian.sh root edge "$root"
  mkdir -p "$root/etc" "$root/tmp"
  chmod 1777 "$root/tmp"
  printf 'root:x:0:0::/:/sbin/nologin\nedge:x:65532:65532::/:/sbin/nologin\n' >"$root/etc/passwd"
  printf 'root:x:0:\nedge:x:65532:\n' >"$root/etc/group"
  pack_image suite repot/edge "$VERSION" "$root" '{"User": "65532:65532", "Entrypoint": ["/usr/sbin/haproxy"]}'
  write_sbom repot/edge "$VERSION" "$root"
}

# kubernetes_image NAME TAG CONFIG FOLDER PROGRAM…: FOLDER has the programs in the image.
kubernetes_image() {
  local name=$1 tag=$2 config=$3 folder=$4 root=$WORK/root/$1 program; shift 4
  say "image $name"
  mkdir -p "$root"
  for program in "$@"; do install -D -m 755 "$REPOT_BIN/$program" "$root$folder/$program"; done
  pack_image kubernetes "$name" "$tag" "$root" "$config"
  write_sbom "$name" "$tag" "$root"
}

# version_of PROGRAM SCRIPT ARGUMENT…: the version in the output of a program, as the script of sed finds the version.
version_of() {
  local program=$1 script=$2 version; shift 2
  version=$("$REPOT_BIN/$program" "$@" | sed -n "$script")
  [[ $version =~ ^v[0-9]+(\.[0-9]+)+$ ]] || fail "$REPOT_BIN/$program reports no version: build the program again (hack/tools.sh $program)"
  echo "$version"
}

# kubernetes_images: the parts of Kubernetes that control planes and nodes of shoots run, from the pinned modules. Names and
# commands are those of hack/images/node-parts/control-plane.
kubernetes_images() {
  local version name root programs=/usr/local/bin
  version=$(version_of kubeadm p version -o short)
  for name in kube-apiserver kube-controller-manager kube-scheduler; do
    kubernetes_image "$name" "$version" '{}' "$programs" "$name"
  done
  version=$(version_of etcd 's/^etcd Version: /v/p' --version)
  kubernetes_image etcd "$version" '{}' "$programs" etcd etcdctl etcdutl
  version=$(version_of coredns 's/^CoreDNS-/v/p' -version)
  kubernetes_image coredns "$version" '{"Entrypoint": ["/coredns"]}' "" coredns
  version=$(version_of kubeadm p version -o short)
  root=$WORK/root/kube-proxy
  hack/release/debian.sh root kube-proxy "$root"
  for name in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
    ln -s xtables-nft-multi "$root/usr/sbin/$name"
  done
  mkdir -p "$root/run" "$root/tmp"
  kubernetes_image kube-proxy "$version" '{"Env": ["PATH=/usr/local/bin:/usr/sbin"]}' "$programs" kube-proxy
}

# definitions: all kinds of a garden and of a seed, as the charts install them.
definitions() {
  local cluster file
  mkdir -p "$OUT/crds"
  for cluster in garden seed; do
    for file in crds/"$cluster"/*.yaml; do
      echo ---
      cat "$file"
    done >"$OUT/crds/$cluster.yaml"
  done
}

# plugin: the archive for krew and for users without krew.
plugin() {
  local root=$WORK/plugin archive=kubectl-repot-$VERSION-linux-amd64.tar.gz
  mkdir -p "$root" "$OUT/plugin"
  strip -o "$root/kubectl-repot" "$programs/kubectl-repot"
  cp LICENSE crates/cli/kubectl-repot/kubectl_complete-repot "$root/"
  tar_folder "$root" "$WORK/plugin.tar" LICENSE kubectl-repot kubectl_complete-repot
  gzip -n -c "$WORK/plugin.tar" >"$OUT/plugin/$archive"
  [ -n "${RELEASE_URI:-}" ] || { say "no manifest for krew: RELEASE_URI does not name where users find the files"; return 0; }
  # A platform without an archive in this release has no place in the manifest.
  awk '/^  - selector:/ { selector = $0; next }
    selector != "" { skip = /arch: arm64/; if (!skip) print selector; selector = "" }
    !skip' crates/cli/kubectl-repot/krew.yaml |
    sed -e "/^#/d; s#VERSION#${VERSION#v}#g; s#uri: BASE_URI#uri: ${RELEASE_URI%/}/plugin#; s#BASE_URI#${RELEASE_URI%/}#" \
      -e "s#SHA256_AMD64#$(sha256 "$OUT/plugin/$archive")#" >"$OUT/plugin/krew.yaml"
}

# provenance: the artifacts, their source and their builder, as an in-toto statement. The signature of SHA256SUMS covers it.
provenance() {
  jq -RnS --arg version "$VERSION" --arg commit "$COMMIT" --arg finished "$(date -u +%Y-%m-%dT%H:%M:%SZ)" --arg profile "$profile" \
    --arg rustc "$(rustc --version)" --arg go "$(go env GOVERSION)" --arg debian "$(sha256 hack/release/debian-packages.txt)" \
    --arg lock "$(sha256 Cargo.lock)" --arg modules "$(cat hack/tools/go.sum hack/tools/*/go.sum | sha256sum | cut -d' ' -f1)" '
    {_type: "https://in-toto.io/Statement/v1", predicateType: "https://slsa.dev/provenance/v1",
     subject: [inputs / "\t" | {name: "\(.[1]):\(.[2])", digest: {sha256: (.[3] | ltrimstr("sha256:"))}}],
     predicate: {
       buildDefinition: {buildType: "urn:repot:make-release",
         externalParameters: {version: $version}, internalParameters: {profile: $profile, rustc: $rustc, go: $go},
         resolvedDependencies: [
           {name: "source", digest: {gitCommit: $commit}}, {name: "Cargo.lock", digest: {sha256: $lock}},
           {name: "hack/tools/**/go.sum", digest: {sha256: $modules}},
           {name: "hack/release/debian-packages.txt", digest: {sha256: $debian}}]},
       runDetails: {builder: {id: "urn:repot:releaser"}, metadata: {invocationId: $commit, finishedOn: $finished}}}}' \
    "$OUT/artifacts.tsv" >"$OUT/provenance.json"
}

checksums() {
  (cd "$OUT" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum) >"$WORK/SHA256SUMS"
  mv "$WORK/SHA256SUMS" "$OUT/"
}

hack/packages.sh jq binutils dpkg
hack/tools.sh oras cargo-auditable rust-audit-info etcd etcdctl etcdutl helm aws-cloud-controller-manager \
  kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubeadm coredns
rm -rf "$OUT" "$WORK"
mkdir -p "$OUT" "$WORK" "$LOG"
trap 'rm -rf "$WORK"' EXIT
compile_programs
suite_images
edge_image
kubernetes_images
say "charts"
pack_charts "${VERSION#v}"
definitions
plugin
pages
hack/release/changelog.sh "$VERSION" >"$OUT/CHANGELOG.md"
provenance
checksums
mv "$OUT" "$FINAL"
say "release $VERSION is in $FINAL ($(du -sh "$FINAL" | cut -f1)); next: hack/sign-release.sh $FINAL KEY (docs/operate/release.md)"
