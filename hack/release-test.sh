#!/usr/bin/env bash
# Shows that a release can be checked, pushed and installed: the suite of landscape e2e comes from a local registry alone. The plugin
# of the release checks the installation, moves a shoot, drains a seed, and takes the shoot over from a lost seed. Ends with the seconds
# of each step. Part 5 of hack/e2e.sh. The landscape must be up and without the suite.
#   hack/release-test.sh
# The programs are not optimised, since optimising takes longer than a part may.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh
NAME=e2e
. hack/landscape/settings.sh
[ -f "$STATE/landscape.env" ] || fail "landscape e2e is not up: hack/landscape.sh up e2e"
set -a && . "$STATE/landscape.env" && set +a

REGISTRY=$SUBNET.0.1:5000
WORK=$REPOT_CACHE/release/test
RELEASE=$WORK/release
VERSION=v$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
# Without a cluster, Helm reads the version from nowhere, and charts require a version.
KUBERNETES=$("$REPOT_BIN/kubeadm" version -o short)
export ORAS=$REPOT_BIN/oras PLAIN_HTTP=1 COSIGN_PASSWORD=test

# refused TEXT COMMAND…: the command fails, and its output has TEXT.
refused() {
  local text=$1 output; shift
  if output=$("$@" 2>&1); then fail "this was accepted: $*"; fi
  case $output in *"$text"*) ;; *) fail "the refusal of '$*' lacks '$text': $output" ;; esac
}

# shows TEXT COMMAND…: the command succeeds, and its output has TEXT.
shows() {
  local text=$1 output; shift
  output=$("$@" 2>&1) || fail "'$*' failed: $output"
  case $output in *"$text"*) ;; *) fail "the output of '$*' lacks '$text': $output" ;; esac
}

# timed STEP COMMAND…: runs COMMAND, and keeps the seconds of STEP for the end.
times=()
timed() {
  local step=$1 begin=$SECONDS; shift
  "$@"
  times+=("$step: $((SECONDS - begin)) s")
}

# plugin ARGUMENT…: the packed plugin, in the garden.
plugin() { KUBECONFIG=$STATE/garden.kubeconfig timeout 960 "$WORK/kubectl-repot" "$@"; }

# A second packing of the same programs gives the same digests.
make_release() {
  local programs=$CARGO_TARGET_DIR/$CARGO_BUILD_TARGET/debug
  rm -rf "$WORK"
  export RELEASE_ALLOW_DIRTY=1 RELEASE_PROFILE=dev
  RELEASE_URI=https://releases.example.org/$VERSION RELEASE_DIR=$RELEASE hack/release.sh "$VERSION"
  RELEASE_DIR=$WORK/again RELEASE_PROGRAMS=$programs hack/release.sh "$VERSION"
  cmp "$RELEASE/artifacts.tsv" "$WORK/again/artifacts.tsv" || fail "two packings of the same programs differ in digests"
  rm -rf "$WORK/again"
  refused "write a semantic version" hack/release.sh 1.0
  refused "set the version in Cargo.toml" hack/release.sh v99.0.0
}

# Each image has a bill of materials, and the programs in the image are no more than a part of it.
check_materials() {
  local group repository tag digest file sbom
  # shellcheck disable=SC2034 # The tag and the archive are not read.
  while IFS=$'\t' read -r group repository tag digest file; do
    [ "$group" != chart ] || continue
    sbom=$RELEASE/sbom/${repository##*/}.cdx.json
    jq -e --arg digest "${digest#sha256:}" '.bomFormat == "CycloneDX" and (.components | length) > 2
      and .metadata.component.hashes[0].content == $digest' "$sbom" >/dev/null ||
      fail "$sbom does not describe $repository@$digest"
  done <"$RELEASE/artifacts.tsv"
  jq -e '[.components[].name] | index("tokio") and index("helm.sh/helm/v3")' "$RELEASE/sbom/gardenlet.cdx.json" >/dev/null ||
    fail "the bill of materials of the gardenlet lacks its crates or the modules of Helm"
  jq -e '[.components[].name] | index("haproxy")' "$RELEASE/sbom/edge.cdx.json" >/dev/null ||
    fail "the bill of materials of the edge lacks haproxy"
}

check_signature() {
  hack/sign-release.sh keys "$WORK/releaser"
  hack/sign-release.sh files "$RELEASE" "$WORK/releaser.key"
  hack/sign-release.sh verify "$RELEASE" "$WORK/releaser.pub"
  cp "$RELEASE/SHA256SUMS" "$WORK/SHA256SUMS"
  sed -i '1s/^./x/' "$RELEASE/SHA256SUMS"
  refused "do not use the release" hack/sign-release.sh verify "$RELEASE" "$WORK/releaser.pub"
  mv "$WORK/SHA256SUMS" "$RELEASE/SHA256SUMS"
}

start_registry() {
  hack/packages.sh docker-registry
  cat >"$WORK/registry.yml" <<END
version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: $WORK/registry}}
http: {addr: "$REGISTRY"}
END
  docker-registry serve "$WORK/registry.yml" >"$REPOT_CACHE/log/release-registry.log" 2>&1 9>&- &
  registry=$!
  trap 'kill "$registry" 2>/dev/null || true; tmux -L repot-release kill-server 2>/dev/null || true' EXIT
  wait_for 30 "the registry answers (see $REPOT_CACHE/log/release-registry.log)" curl -sf -m 3 "http://$REGISTRY/v2/"
}

# know_registry NODE: containerd of a kind node asks the registry without TLS. containerd 1.6 refuses a hosts.toml without a host, and
# then asks with TLS. Reads nothing from standard input, because the caller reads the numbers of the nodes from there.
know_registry() {
  docker exec "$1" sh -euc "
    mkdir -p '/etc/containerd/certs.d/$REGISTRY'
    printf '%s\n' 'server = \"http://$REGISTRY\"' '[host.\"http://$REGISTRY\"]' 'capabilities = [\"pull\", \"resolve\"]' \
      >'/etc/containerd/certs.d/$REGISTRY/hosts.toml'
    grep -q config_path /etc/containerd/config.toml || printf '%s\n' '[plugins.\"io.containerd.grpc.v1.cri\".registry]' \
      '  config_path = \"/etc/containerd/certs.d\"' >>/etc/containerd/config.toml
    systemctl restart containerd"
  wait_for 60 "containerd of $1 answers again" docker exec "$1" ctr version
}

push() {
  local first=repot/garden-controller-manager archive=$RELEASE/images/tunnel.tar
  # A release that is not complete.
  mv "$archive" "$WORK/"
  refused "Nothing was pushed" "$RELEASE/push.sh" "$REGISTRY"
  mv "$WORK/tunnel.tar" "$archive"
  # A tag that names a different image already.
  "$ORAS" cp --from-oci-layout "$archive:$VERSION" --to-plain-http "$REGISTRY/other/$first:$VERSION" >/dev/null
  refused "a tag of a release never changes" "$RELEASE/push.sh" "$REGISTRY/other"
  # A registry that does not answer may have any tag.
  refused "the registry did not report whether" "$RELEASE/push.sh" "$SUBNET.0.1:1"
  "$RELEASE/push.sh" "$REGISTRY"
  # A second push changes nothing.
  "$RELEASE/push.sh" "$REGISTRY" >/dev/null
  hack/sign-release.sh images "$RELEASE" "$WORK/releaser.key" "$REGISTRY"
  # In an empty folder: charts come from the registry alone.
  refused "global.imageRegistry is empty" env -C "$(mktemp -d "$WORK/empty.XXX")" "$REPOT_BIN/helm" template seed \
    "oci://$REGISTRY/charts/seed" --version "${VERSION#v}" --plain-http --kube-version "$KUBERNETES" --set gardenlet.enabled=false
}

# is_on SEED: whether the shoot runs there and no operation is under way.
is_on() { [ "$(at garden -n garden-dev get shoot demo -o jsonpath='{.status.settledSeedName}')" = "$1" ]; }
project_is_ready() { [ "$(at garden get project dev -o jsonpath='{.status.phase}')" = Ready ]; }
# shoot_is_gone: an error of the garden is no answer.
shoot_is_gone() {
  local names
  names=$(at garden -n garden-dev get shoot demo --ignore-not-found -o name) && [ -z "$names" ]
}

# first_shoot: the objects of the release's example files.
first_shoot() {
  local examples=$RELEASE/docs/operate/examples
  at garden apply -f "$examples/cloudprofile-local.yaml" -f "$examples/project.yaml" >/dev/null
  wait_for 180 "project dev is ready" project_is_ready
  at garden -n garden-dev create secret generic account-local --from-literal=namespace=cloud \
    --from-file=kubeconfig="$STATE/cloud.kubeconfig" >/dev/null
  awk 'second; /^---/ { second = 1 }' "$examples/credentials-local.yaml" | at garden apply -f - >/dev/null
  at garden apply -f "$examples/shoot-local-without-workers.yaml" >/dev/null
  wait_for 900 "shoot demo runs on seed-a (see: kubectl --kubeconfig $STATE/garden.kubeconfig -n garden-dev describe shoot demo)" \
    is_on seed-a
}

check_before() { plugin check --pre || fail "the garden is not ready for an installation"; }

# try_commands: commands of the plugin that change no shoot, on real clusters.
try_commands() {
  wait_for 300 "kubectl repot check reports no fault (run it on landscape e2e)" plugin check
  shows "gardenlet of seed seed-a: ${VERSION#v}" plugin version
  shows demo plugin status -A
  shows "seed seed-a: 1 shoots, gardenlet ${VERSION#v}" plugin status --seeds
  shows "Shoot garden-dev/demo" plugin status demo -n garden-dev
  shows "No operation runs on shoot demo" plugin watch demo -n garden-dev
  refused "does not exist" plugin status ghost -n garden-dev
  shows drain env PATH="$WORK:$PATH" "$WORK/kubectl_complete-repot" dr
  shows "objects are in" plugin diagnose demo --file "$WORK/demo.json" -n garden-dev
  # A reference to a Secret has the kind, too, and no metadata.
  jq -e '[.. | objects | select(.kind? == "Secret" and has("metadata"))] == []' "$WORK/demo.json" >/dev/null ||
    fail "the bundle of the plugin has a Secret"
}

# try_terminal: at a terminal the plugin asks for the approval of a drain, and a wrong name changes nothing. Without --foreground,
# timeout would keep the plugin from reading the terminal.
try_terminal() {
  local command="KUBECONFIG='$STATE/garden.kubeconfig' timeout --foreground 300 '$WORK/kubectl-repot' drain seed-a --to seed-b"
  hack/packages.sh tmux
  tmux -L repot-release new-session -d -x 250 -y 60 "$command; echo \"exit code \$?\"; exec cat" 7>&- 8>&- 9>&-
  wait_for 180 "the plugin asks for the approval of a drain" screen_shows "Type seed-a to approve the drain"
  tmux -L repot-release send-keys wrong Enter
  wait_for 60 "a drain without an approval ends" screen_shows "exit code 2"
  screen_shows "nothing was changed" || fail "the plugin does not report that nothing was changed: $(screen)"
  tmux -L repot-release kill-server
  is_on seed-a || fail "a drain without an approval has moved the shoot"
}
screen() { tmux -L repot-release capture-pane -p -J; }
screen_shows() { screen | grep -qF "$1"; }

move_shoot() {
  wait_for 300 "the garden allows the move to seed-b" plugin plan demo seed-b -n garden-dev
  try_terminal
  plugin move demo seed-b --wait --timeout 900 -n garden-dev || fail "the shoot was not moved to seed-b"
  is_on seed-b || fail "the shoot is not on seed-b after the move"
}

# drain_seed: the shoot goes back, as soon as the former seed is clean.
drain_seed() {
  wait_for 600 "the garden allows the move back to seed-a" plugin plan demo seed-a -n garden-dev
  plugin drain seed-b --to seed-a --yes --timeout 900 || fail "seed-b was not drained"
  is_on seed-a || fail "the shoot is not on seed-a after the drain of seed-b"
  plugin uncordon seed-b >/dev/null
}

seed_is_silent() {
  [ "$(at garden get seed "$1" -o jsonpath='{.status.conditions[?(@.type=="GardenletReady")].status}')" = Unknown ]
}
# may_be_taken_over: the report of the plugin has no obstacle, and asks for the approval. It changes nothing without one.
may_be_taken_over() {
  local report
  report=$(plugin takeover demo seed-b -n garden-dev 2>&1 </dev/null || true)
  case $report in *"--yes demo"*) ;; *) return 1 ;; esac
}
# no_former_seeds: an error of the garden is no answer.
no_former_seeds() {
  local seeds
  seeds=$(at garden -n garden-dev get shoot demo -o jsonpath='{.status.formerSeeds[*].name}') && [ -z "$seeds" ]
}

# lose_seed: seed-a hears nothing of garden, DNS server and object store. The plugin takes the shoot over, and the seed returns.
lose_seed() {
  local other
  for other in garden dns s3; do hack/landscape.sh cut e2e seed-a "$other"; done
  wait_for 120 "the garden reports seed-a as silent" seed_is_silent seed-a
  wait_for 180 "the plugin reports no obstacle of a takeover (kubectl repot takeover demo seed-b -n garden-dev)" may_be_taken_over
  plugin takeover demo seed-b --yes demo --wait --timeout 900 -n garden-dev || fail "seed-b has not taken the shoot over"
  is_on seed-b || fail "the shoot is not on seed-b after the takeover"
  for other in garden dns s3; do hack/landscape.sh heal e2e seed-a "$other"; done
  wait_for 600 "seed-a is clean after its return" no_former_seeds
}

delete_shoot() {
  at garden -n garden-dev annotate shoot demo confirmation.gardener.cloud/deletion=true >/dev/null
  at garden -n garden-dev delete shoot demo --wait=false >/dev/null
  wait_for 600 "the shoot is deleted" shoot_is_gone
}

# uninstall: the seeds first, as the page for upgrades describes. Kinds stay, and no process of the suite does.
uninstall() {
  local seed
  for seed in seed-a seed-b; do
    timeout 300 "$REPOT_BIN/helm" --kubeconfig "$STATE/$seed.kubeconfig" uninstall seed -n garden --wait >/dev/null
    at "$seed" get crd etcds.druid.gardener.cloud >/dev/null || fail "the kinds of $seed were deleted"
    wait_for 180 "$seed has no gardenlet" no_pods_of "$seed" gardenlet
  done
  timeout 300 "$REPOT_BIN/helm" --kubeconfig "$STATE/garden.kubeconfig" uninstall garden -n garden --wait >/dev/null
  at garden get crd shoots.core.gardener.cloud >/dev/null || fail "the kinds of the garden were deleted"
  wait_for 180 "the garden has no garden-controller-manager" no_pods_of garden garden-controller-manager
}
# no_pods_of CLUSTER NAME: an error of the cluster is no answer.
no_pods_of() {
  local names
  names=$(at "$1" -n garden get pods -l "app.kubernetes.io/name=$2" -o name) && [ -z "$names" ]
}

# all_by_digest CLUSTER: each container of the suite and of control planes comes from the registry, by digest.
all_by_digest() {
  local others
  others=$(at "$1" get pods -A -o json | jq -r --arg registry "$REGISTRY/" '.items[]
    | select(.metadata.namespace | test("^(garden|garden-exposure|extension-.*|shoot--.*|cloud-agent)$"))
    | .metadata.namespace as $namespace | .spec | (.containers + (.initContainers // []))[].image
    | select((startswith($registry) and test("@sha256:[0-9a-f]{64}$")) | not) | "\($namespace): \(.)"')
  # The agent of the cloud is no part of a chart.
  others=$(grep -v "^cloud-agent: $REGISTRY/repot/cloud-local-agent:$VERSION\$" <<<"$others" || true)
  [ -z "$others" ] || fail "containers in $1 run images that are not of the release, or not by digest: $others"
}

# prepare_arm64: a slow network ends the test here, and not after all other steps. Each step of the script has a bound.
prepare_arm64() {
  hack/release/arm64.sh --prepare || fail "the compiler for arm64 is not ready; logs: $REPOT_CACHE/log/release/arm64-*.log"
}

# arm64_image: the proof that the suite compiles for arm64. hack/release/arm64.sh examines the program; the image has its architecture.
# The script removes its container at a signal, which takes at most 80 s.
arm64_image() {
  local archive=$REPOT_CACHE/release/arm64/images/tunnel.tar logs=$REPOT_CACHE/log/release status=0
  timeout --foreground --kill-after 120 1500 hack/release/arm64.sh tunnel || status=$?
  case $status in
    0) ;;
    124) fail "the image for arm64 was not ready in 1500 s; logs: $logs/arm64-*.log" ;;
    *) fail "the image for arm64 could not be built; logs: $logs/arm64-*.log" ;;
  esac
  "$ORAS" manifest fetch-config --oci-layout "$archive:$VERSION" | jq -e '.architecture == "arm64"' >/dev/null ||
    fail "$archive is no image for arm64"
}

say "preparing the compiler for arm64"
timed "compiler and crates for arm64" prepare_arm64
make_release
check_materials
check_signature
start_registry
for cluster in $CLUSTERS; do
  while read -r number; do know_registry "$(node_of "$cluster" "$number")"; done < <(nodes "$cluster")
done
timed "filling the registry" push
tar -xzf "$RELEASE/plugin/kubectl-repot-$VERSION-linux-amd64.tar.gz" -C "$WORK"
timed "kubectl repot check --pre" check_before
say "installing the release from the registry"
timed "garden and two seeds" env RELEASE_REGISTRY="$REGISTRY" RELEASE_VERSION="${VERSION#v}" hack/install.sh e2e
timed "first shoot" first_shoot
timed "commands of the plugin without a change" try_commands
say "moving the shoot by the plugin of the release"
timed "move" move_shoot
for cluster in garden seed-a seed-b infra; do all_by_digest "$cluster"; done
grep -q "uri: https://releases.example.org/$VERSION/plugin/kubectl-repot-$VERSION-linux-amd64.tar.gz" "$RELEASE/plugin/krew.yaml" ||
  fail "the manifest for krew lacks the archive"
say "draining a seed by the plugin of the release"
timed "drain of a seed with one shoot" drain_seed
timed "three faults and their alerts" hack/alerts-test.sh e2e
say "losing a seed"
timed "dead seed, with the return of the seed" lose_seed
say "deleting the shoot"
timed "deletion of the shoot" delete_shoot
say "uninstalling the suite"
timed "uninstallation" uninstall
say "building one image for arm64"
timed "one image for arm64" arm64_image
printf 'release test: %s\n' "${times[@]}"
say "release $VERSION: installed from a registry, moved a shoot, drained a seed, lost a seed, uninstalled, all images by digest"
