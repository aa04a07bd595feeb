# Sourced by hack/release.sh: a bill of materials for each image, as CycloneDX 1.5. The lists come from the programs in the image:
# cargo-auditable and Go write the dependencies into each program.
# shellcheck shell=bash

# rust_parts: the crates of a program, from the output of rust-audit-info. Crates of kind `build` ran in the build only.
rust_parts() {
  jq -c '.packages[]
    | {type: "library", name, version, scope: (if .kind == "build" then "excluded" else "required" end)}
    + (if .source == "local" then {} else {purl: "pkg:cargo/\(.name)@\(.version)"} end)'
}

# go_parts: the modules of a program, from the output of `go version -m`. A replaced module counts by its replacement.
go_parts() {
  awk -F'\t' '
    # The modules of hack/tools have no version of their own.
    ($2 == "dep" || $2 == "mod") && $3 !~ /^repot\.local\// { if (line != "") print line; line = $3 "\t" $4 }
    $2 == "=>" { line = $3 "\t" $4 }
    END { if (line != "") print line }' |
    jq -Rc '(. / "\t") as [$name, $version] | {type: "library", name: $name, version: $version, scope: "required",
      purl: "pkg:golang/\($name)@\($version)"}'
}

# dependencies_of FILE: the parts of a program of Go or Rust. The language is known before the list is read, so that a list that
# cannot be read completely ends the release.
dependencies_of() {
  local file=$1 list parts
  if list=$(go version -m "$file" 2>"$WORK/go.error"); then
    parts=$(go_parts <<<"$list") || fail "the modules in $file cannot be listed: $list"
  elif list=$("$REPOT_BIN/rust-audit-info" "$file" 2>"$WORK/rust.error"); then
    parts=$(rust_parts <<<"$list") || fail "the crates in $file cannot be listed: $list"
  else
    fail "$file has no list of its dependencies: build it with cargo auditable or Go. $(cat "$WORK/go.error" "$WORK/rust.error")"
  fi
  [ -n "$parts" ] || fail "$file has an empty list of its dependencies: build it with cargo auditable or Go"
  printf '%s\n' "$parts"
}

# debian_parts IMAGE: the packages whose files are in the image.
debian_parts() {
  awk -v image="$1" '!/^#/ && ("," $4 ",") ~ ("," image ",") { print $1 "\t" $2 }' hack/release/debian-packages.txt |
    jq -Rc '(. / "\t") as [$name, $version] | {type: "library", name: $name, version: $version, scope: "required",
      purl: "pkg:deb/debian/\($name)@\($version | @uri)?arch=amd64&distro=bookworm"}'
}

# program_parts ROOT: the dependencies of all programs of an image. Programs of Debian are below usr/sbin.
program_parts() {
  local files file
  files=$(find "$1" -maxdepth 1 -type f -perm -u+x && { [ ! -d "$1/usr/local/bin" ] || find "$1/usr/local/bin" -type f; }) ||
    fail "the programs below $1 cannot be listed"
  while read -r file; do
    [ -z "$file" ] || dependencies_of "$file"
  done <<<"$files"
}

# write_sbom REPOSITORY TAG ROOT: call after pack_image, which adds the digest to artifacts.tsv.
write_sbom() {
  local repository=$1 tag=$2 root=$3 name=${1##*/} digest
  digest=$(awk -F'\t' -v name="$repository" '$2 == name { print $4 }' "$OUT/artifacts.tsv")
  [ -n "$digest" ] || fail "$OUT/artifacts.tsv has no digest of image $repository"
  # Not as parts of a list with `||`, in which a failed command would not end the release.
  debian_parts "$name" >"$WORK/parts.json"
  program_parts "$root" >>"$WORK/parts.json"
  [ -s "$WORK/parts.json" ] || fail "image $repository has no programs with a list of dependencies, and no packages of Debian"
  mkdir -p "$OUT/sbom"
  jq -sS --arg name "$repository" --arg tag "$tag" --arg digest "$digest" --arg created "$CREATED" '
    "pkg:oci/\($name | split("/") | last)@\($digest | @uri)?tag=\($tag)" as $image
    | {bomFormat: "CycloneDX", specVersion: "1.5", version: 1,
       metadata: {timestamp: $created, component: {type: "container", "bom-ref": $image, name: $name, version: $tag,
         purl: $image, hashes: [{alg: "SHA-256", content: ($digest | ltrimstr("sha256:"))}]}},
       components: (unique_by([.name, .version, .purl]) | map(. + {"bom-ref": (.purl // "\(.name)@\(.version)")}))}' \
    "$WORK/parts.json" >"$OUT/sbom/$name.cdx.json"
}
