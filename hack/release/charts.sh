# Sourced by hack/release.sh: charts that name the images of the release by digest.
# shellcheck shell=bash

# set_versions FOLDER VERSION: versions of a chart and of its dependencies. Helm drops a subchart whose version differs from the
# version in `dependencies`.
set_versions() {
  find "$1" -name Chart.yaml -exec sed -i -E "s/^( *version|appVersion): .*/\1: $2/" {} +
}

# set_digests FILE: tags and digests of all images in a values.yaml, from artifacts.tsv. `imageDigests` gets the images whose tag is
# the version of a shoot.
set_digests() {
  awk 'FNR == NR {
      split($0, field, "\t"); tag[field[2]] = field[3]; digest[field[2]] = field[4]
      if (field[2] ~ /^kube-/) versioned[++count] = "  \"" field[2] ":" field[3] "\": " field[4]
      next
    }
    /^ *repository: / { name = $2 }
    /^ *tag: / && name in tag { sub(/tag: .*/, "tag: " tag[name]) }
    /^ *digest: / && name in digest { sub(/digest: .*/, "digest: " digest[name]) }
    /^imageDigests: / { print "imageDigests:"; for (i = 1; i <= count; i++) print versioned[i]; next }
    { print }' "$OUT/artifacts.tsv" "$1" >"$1.new"
  mv "$1.new" "$1"
  if grep -nE '^ *(tag: dev|digest: "")$' "$1" >&2; then
    fail "$1 names an image that the release does not have: add the image to hack/release.sh"
  fi
}

# pack_charts VERSION: all charts, after all images.
pack_charts() {
  local version=$1 chart name folder values
  for chart in charts/*/Chart.yaml; do
    name=$(basename "$(dirname "$chart")")
    folder=$WORK/charts/$name
    mkdir -p "$folder"
    # Subcharts and definitions of kinds are links in the repository.
    cp -rL "charts/$name" "$folder/$name"
    set_versions "$folder/$name" "$version"
    while read -r values; do set_digests "$values"; done < <(find "$folder/$name" -name values.yaml)
    logged "$LOG/helm-$name.log" "$REPOT_BIN/helm" lint --quiet --set global.imageRegistry=registry.example.org \
      --set global.kubernetesImageRegistry=registry.example.org "$folder/$name" ||
      fail "the chart $name of the release is invalid; log: $LOG/helm-$name.log"
    pack_chart "$name" "$version" "$folder"
  done
}
