# Sourced by hack/release.sh: the pages of the release.
# shellcheck shell=bash

# A link of a page to sources, charts or the README of the repository. The text of the link may span two lines.
LINK_OUTSIDE='\[([^][]*)\]\((\.\./)+(README\.md|charts|crates|hack|tests)[^)]*\)'

# pages: the documentation, with the version of the release in examples and commands. The commands work in the folder of the release.
# A link to a file that the release does not have becomes text.
pages() {
  mkdir -p "$OUT/hack/landscape"
  cp -r docs LICENSE SECURITY.md "$OUT/"
  cp hack/landscape/cloud-agent.yaml "$OUT/hack/landscape/"
  sed -i "s#tag: \"dev\"#tag: \"$VERSION\"#" "$OUT"/docs/operate/examples/*.values.yaml
  find "$OUT/docs" -name '*.md' -exec sed -z -i -E "s#$LINK_OUTSIDE#\1#g" {} +
  sed -i "s#:dev\$#:$VERSION#" "$OUT/hack/landscape/cloud-agent.yaml"
  sed -i "s#version=0\.1\.0#version=${VERSION#v}#; s#v0\.1\.0#$VERSION#g" "$OUT/docs/operate/install-release.md"
  grep -q "version=${VERSION#v}\$" "$OUT/docs/operate/install-release.md" ||
    fail "docs/operate/install-release.md has no command with version=0.1.0: write that version, which a release replaces"
  if grep -nE 'tag: "?dev|/cloud-local-agent:dev' "$OUT"/docs/operate/examples/*.values.yaml "$OUT/hack/landscape/cloud-agent.yaml" >&2; then
    fail "an example of the release has the tag of the repository: write the tag as in the other examples"
  fi
  printf '# Repot %s\n\nBegin with [docs/operate/install-release.md](docs/operate/install-release.md).\n' "$VERSION" >"$OUT/README.md"
  install -m 755 hack/release/push.sh "$OUT/push.sh"
}
