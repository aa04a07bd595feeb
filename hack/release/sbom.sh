# Sourced by hack/release.sh: a bill of materials for each image, as CycloneDX 1.5. The lists come from the programs in the image:
# cargo-auditable and Go write the dependencies into each program.
# shellcheck shell=bash

# rust_parts FILE: the crates of a program. Crates of kind `build` ran in the build only.
rust_parts() {
  "$REPOT_BIN/rust-audit-info" "$1" 2>/dev/null | jq -c '.packages[]
    | {type: "library", name, version, scope: (if .kind == "build" then "excluded" else "required" end)}
    + (if .source == "local" then {} else {purl: "pkg:cargo/\(.name)@\(.version)"} end)'
}

# go_parts FILE: the modules of a program. A replaced module counts by its replacement.
go_parts() {
  go version -m "$1" 2>/dev/null | awk -F'\t' '
    # The modules of hack/tools have no version of their own.
    ($2 == "dep" || $2 == "mod") && $3 !~ /^repot\.local\// { if (line != "") print line; line = $3 "\t" $4 }
    $2 == "=>" { line = $3 "\t" $4 }
    END { if (line != "") print line }' |
    jq -Rc '(. / "\t") as [$name, $version] | {type: "library", name: $name, version: $version, scope: "required",
      purl: "pkg:golang/\($name)@\($version)"}'
}

# debian_parts IMAGE: the packages whose files are in the image.
debian_parts() {
  awk -v image="$1" '!/^#/ && ("," $4 ",") ~ ("," image ",") { print $1 "\t" $2 }' hack/release/debian-packages.txt |
    jq -Rc '(. / "\t") as [$name, $version] | {type: "library", name: $name, version: $version, scope: "required",
      purl: "pkg:deb/debian/\($name)@\($version | @uri)?arch=amd64&distro=bookworm"}'
}

# program_parts ROOT: what the programs of an image were built from. A program without a list ends the release.
program_parts() {
  local file parts
  while read -r file; do
    parts=$(go_parts "$file" || true)
    [ -n "$parts" ] || parts=$(rust_parts "$file" || true)
    [ -n "$parts" ] || fail "$file has no list of its dependencies: build it with cargo auditable or Go"
    printf '%s\n' "$parts"
  done < <(find "$1" -maxdepth 1 -type f -perm -u+x; find "$1/usr/local/bin" -type f 2>/dev/null)
}

# write_sbom REPOSITORY TAG ROOT: call after pack_image, which adds the digest to artifacts.tsv.
write_sbom() {
  local repository=$1 tag=$2 root=$3 name=${1##*/} digest
  digest=$(awk -F'\t' -v name="$repository" '$2 == name { print $4 }' "$OUT/artifacts.tsv")
  { debian_parts "$name"; program_parts "$root"; } >"$WORK/parts.json" || fail "no bill of materials for image $repository"
  mkdir -p "$OUT/sbom"
  jq -sS --arg name "$repository" --arg tag "$tag" --arg digest "$digest" --arg created "$CREATED" '
    "pkg:oci/\($name | split("/") | last)@\($digest | @uri)?tag=\($tag)" as $image
    | {bomFormat: "CycloneDX", specVersion: "1.5", version: 1,
       metadata: {timestamp: $created, component: {type: "container", "bom-ref": $image, name: $name, version: $tag,
         purl: $image, hashes: [{alg: "SHA-256", content: ($digest | ltrimstr("sha256:"))}]}},
       components: (unique_by([.name, .version, .purl]) | map(. + {"bom-ref": (.purl // "\(.name)@\(.version)")}))}' \
    "$WORK/parts.json" >"$OUT/sbom/$name.cdx.json"
}
