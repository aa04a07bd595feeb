# Sourced by hack/release.sh: writes images and charts as OCI layouts, each in an archive of its own. The same files give
# the same digests. Uses OUT (folder of the release), WORK (folder for files under way), EPOCH and CREATED (the time of the commit).
# shellcheck shell=bash
IMAGE_MEDIA=application/vnd.oci.image
CHART_MEDIA=application/vnd.cncf.helm

# tar_folder FOLDER FILE [NAME…]: without owners and times of this machine.
tar_folder() {
  local folder=$1 file=$2; shift 2
  [ $# -gt 0 ] || set -- .
  tar --sort=name --format=gnu --mtime="@$EPOCH" --owner=0 --group=0 --numeric-owner -C "$folder" -cf "$file" "$@"
}

sha256() { sha256sum "$1" | cut -d' ' -f1; }

# pack_layout GROUP REPOSITORY TAG FILE FOLDER CONFIG LAYER: an artifact of the release, from two files in FOLDER. CONFIG and LAYER
# are NAME:MEDIA-TYPE. Adds a line to artifacts.tsv.
pack_layout() {
  local group=$1 repository=$2 tag=$3 file=$4 folder=$5 config=$6 layer=$7 digest
  (cd "$folder" && logged "$LOG/oras.log" "$REPOT_BIN/oras" push --oci-layout "layout:$tag" --image-spec v1.0 \
    --annotation "org.opencontainers.image.created=$CREATED" --config "$config" "$layer") ||
    fail "$repository:$tag could not be written as an OCI layout; log: $LOG/oras.log"
  rm -rf "$folder/layout/ingest"
  digest=$("$REPOT_BIN/oras" resolve --oci-layout "$folder/layout:$tag")
  mkdir -p "$(dirname "$OUT/$file")"
  tar_folder "$folder/layout" "$OUT/$file"
  printf '%s\t%s\t%s\t%s\t%s\n' "$group" "$repository" "$tag" "$digest" "$file" >>"$OUT/artifacts.tsv"
}

# pack_image GROUP REPOSITORY TAG ROOT CONFIG: an image with the files of the folder ROOT as its only layer. CONFIG is the object
# `config` of the image's configuration, as JSON.
pack_image() {
  local group=$1 repository=$2 tag=$3 root=$4 config=$5 folder
  folder=$WORK/layouts/${repository##*/}
  mkdir -p "$folder"
  tar_folder "$root" "$folder/layer.tar"
  jq -nScj --arg created "$CREATED" --arg architecture "${ARCHITECTURE:-amd64}" --arg diff "sha256:$(sha256 "$folder/layer.tar")" --argjson config "$config" \
    '{created: $created, architecture: $architecture, os: "linux", config: $config,
      rootfs: {type: "layers", diff_ids: [$diff]}, history: [{created: $created, created_by: "make release"}]}' \
    >"$folder/config.json"
  gzip -n -6 "$folder/layer.tar"
  pack_layout "$group" "$repository" "$tag" "images/${repository##*/}.tar" "$folder" \
    "config.json:$IMAGE_MEDIA.config.v1+json" "layer.tar.gz:$IMAGE_MEDIA.layer.v1.tar+gzip"
  rm -rf "$folder"
}

# pack_chart NAME VERSION FOLDER: FOLDER has the chart in a folder NAME. Beside the layout the release has the archive that Helm
# reads, for ControllerDeployments and for clusters without a registry.
pack_chart() {
  local name=$1 version=$2 folder=$3 file=$1-$2.tgz
  tar_folder "$folder" "$folder/chart.tar" "$name"
  gzip -n -c "$folder/chart.tar" >"$folder/$file"
  # Chart.yaml has only plain texts at its first level, besides the list of subcharts.
  sed -nE 's/^(apiVersion|name|description|type|kubeVersion|version|appVersion): "?([^"]*)"?$/\1\t\2/p' "$folder/$name/Chart.yaml" |
    jq -RScj -n '[inputs / "\t" | {key: .[0], value: .[1]}] | from_entries' >"$folder/config.json"
  mkdir -p "$OUT/charts"
  cp "$folder/$file" "$OUT/charts/"
  pack_layout chart "charts/$name" "$version" "charts/$name.tar" "$folder" \
    "config.json:$CHART_MEDIA.config.v1+json" "$file:$CHART_MEDIA.chart.content.v1.tar+gzip"
}
