#!/usr/bin/env bash
# Provides the previous release for the test of an upgrade (hack/upgrade-test.sh): sources and compiled programs.
#   hack/previous-release.sh            prints the tag, and the folder with the sources in tree/ and the programs in bin/
#   hack/previous-release.sh --check    only whether this clone has the release
# hack/previous-release has the tag and the commit. The clone must have the commit: this script fetches nothing, and a clone may lack
# the tag. The result stays in $REPOT_CACHE/previous until the file names a different commit.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh

release=$(grep -v '^#' hack/previous-release || true)
[[ $release =~ ^v[0-9]+\.[0-9]+\.[0-9]+\ [0-9a-f]{40}$ ]] ||
  fail "hack/previous-release must have one line with a tag and a commit, such as v1.2.3 and 40 hexadecimal digits"
tag=${release% *} commit=${release#* }
git cat-file -e "$commit^{commit}" 2>/dev/null ||
  fail "this clone has no commit $commit of release $tag; clone the whole history: git fetch --unshallow"
tagged=$(git rev-parse --quiet --verify "refs/tags/$tag^{commit}" || true)
[ -z "$tagged" ] || [ "$tagged" = "$commit" ] ||
  fail "tag $tag names commit $tagged, and hack/previous-release names $commit: correct the file"
[ "${1:-}" != --check ] || exit 0
folder=$REPOT_CACHE/previous/$commit tree=$REPOT_CACHE/previous/$commit/tree

# The images of the release get the tag of the release, so that nodes have both versions. `edge` is made in the same way in both.
extract() {
  local values
  say "extracting release $tag (commit $commit)"
  rm -rf "$REPOT_CACHE/previous"
  mkdir -p "$tree"
  git archive "$commit" | tar -x -C "$tree"
  for values in "$tree"/charts/*/values.yaml; do
    case $values in */charts/seed/values.yaml) ;; *) sed -i "s/^\( *tag: \)dev\$/\1$tag/" "$values" ;; esac
  done
  sed -i "s#image: repot/cloud-local-agent:dev#image: repot/cloud-local-agent:$tag#" "$tree/hack/landscape/cloud-agent.yaml"
  grep -q "tag: $tag" "$tree/charts/gardenlet/values.yaml" || fail "the charts of release $tag have no tag to replace: $tree/charts"
  touch "$folder/extracted"
}

# The folder of Cargo is the one of this checkout: dependencies of the same version and features are not compiled again. Debug
# information would make each of them a different one. `generated` is named for the features, as in hack/images.sh.
build() {
  local log=$REPOT_CACHE/log/previous-compile.log programs=$CARGO_TARGET_DIR/$CARGO_BUILD_TARGET/debug program
  hack/packages.sh protobuf-compiler
  (cd "$tree" && CARGO_PROFILE_DEV_DEBUG=0 compile "$log" timeout 3000 cargo build --workspace --bins --test generated) ||
    fail "release $tag could not be compiled (log: $log)"
  mkdir -p "$folder/bin"
  for program in "$programs"/*; do
    if [ -f "$program" ] && [ -x "$program" ]; then strip -o "$folder/bin/$(basename "$program")" "$program"; fi
  done
  touch "$folder/compiled"
}

[ -f "$folder/extracted" ] || extract
[ -f "$folder/compiled" ] || build
say "release $tag is in $folder"
echo "$tag $folder"
