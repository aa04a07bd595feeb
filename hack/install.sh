#!/usr/bin/env bash
# Installs the suite by Helm on a landscape that is up: once into the garden, then into each seed. The provider is registered in
# the garden, and the seeds' gardenlets install it. Safe to run again: it upgrades.
#   hack/install.sh NAME [STEP]     NAME is demo or e2e
# STEP is a single step of an upgrade (tests/e2e_upgrade.rs), with the images on the nodes already: `garden`, `seed-a`, `seed-b`, or
# `provider` for all seeds. `seed-a-back` and `seed-b-back` take the seed back to the revision before. `secrets` makes the Secrets that
# Seeds name, and `rights` gives each gardenlet its rights in the garden.
# RELEASE_REGISTRY=HOST:PORT installs the charts and images of a release that hack/release/push.sh has pushed there, instead of those
# of the repository. RELEASE_VERSION is the version of the charts. The registry has no TLS, and the nodes know it.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh
NAME=${1:-}
[ -n "$NAME" ] || fail "usage: hack/install.sh demo|e2e [STEP]"
. hack/landscape/settings.sh
[ -f "$STATE/landscape.env" ] || fail "landscape $NAME is not up: hack/landscape.sh up $NAME"
set -a && . "$STATE/landscape.env" && set +a
hack/packages.sh openssl
helm() { local cluster=$1; shift; timeout 300 "$REPOT_BIN/helm" --kubeconfig "$STATE/$cluster.kubeconfig" "$@"; }
PARTS=$STATE/install
release=${RELEASE_REGISTRY:-}
# Of helm, before and after the name of a chart.
charts=charts chart_options=()
if [ -n "$release" ]; then
  charts=oci://$release/charts chart_options=(--version "${RELEASE_VERSION:?RELEASE_REGISTRY needs RELEASE_VERSION}" --plain-http)
fi
# Of the local cloud, as the tests' CloudProfile names them.
ZONES="a b c"
mkdir -p "$PARTS" && chmod 700 "$PARTS"

# Credentials of the landscape, which Seeds refer to: of each seed in its own namespace of the garden.
garden_secrets() {
  local seed
  for seed in seed-a seed-b; do
    at garden create namespace "seed-$seed" --dry-run=client -o yaml
    echo ---
    at garden -n "seed-$seed" create secret generic backup --dry-run=client -o yaml \
      --from-literal=accessKeyID="$S3_ACCESS_KEY_ID" --from-literal=secretAccessKey="$S3_SECRET_ACCESS_KEY" \
      --from-literal=region="$S3_REGION" --from-literal=endpoint="$S3_ENDPOINT"
    echo ---
    at garden -n "seed-$seed" create secret generic dns --dry-run=client -o yaml \
      --from-literal=server="$DNS_SERVER" --from-literal=tsigKeyName="$TSIG_KEY_NAME" \
      --from-literal=tsigSecret="$TSIG_SECRET" --from-literal=tsigAlgorithm="$TSIG_ALGORITHM"
    echo ---
  done
}

# kubeconfig_for SERVER CA USER_ENTRY: a kubeconfig with one of everything.
kubeconfig_for() {
  cat <<END
apiVersion: v1
kind: Config
clusters:
- name: garden
  cluster: {server: "$1", certificate-authority-data: $2}
users:
- name: user
  user: {$3}
contexts:
- name: garden
  context: {cluster: garden, user: user}
current-context: garden
END
}
server_of() { echo "https://$(node_ip "$1"):6443"; }
ca_of() { at "$1" config view --raw -o jsonpath='{.clusters[0].cluster.certificate-authority-data}'; }

# The cloud of provider-local: a namespace in the cluster infra, and an account that can do nothing outside of it. Its instances
# are privileged pods there. Of three hosts each plays a zone, one plays all.
cloud() {
  local zone hosts place=0
  hosts=$(nodes infra | wc -l)
  for zone in $ZONES; do
    at infra label node "$(node_of infra "$place")" --overwrite \
      "zone.local.provider.extensions.gardener.cloud/$zone=true" >/dev/null
    place=$(((place + 1) % hosts))
  done
  # Where there are others, kind has kept the first one for what runs the cluster. It plays a zone, too.
  [ "$hosts" -eq 1 ] || at infra patch node "$(node_of infra)" --type merge -p '{"spec":{"taints":null}}' >/dev/null
  at infra apply -f - >/dev/null <<END
apiVersion: v1
kind: Namespace
metadata: {name: cloud}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: cloud, namespace: cloud}
---
apiVersion: v1
kind: Secret
metadata: {name: cloud-token, namespace: cloud, annotations: {kubernetes.io/service-account.name: cloud}}
type: kubernetes.io/service-account-token
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: cloud, namespace: cloud}
rules:
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [""]
  resources: [services]
  verbs: [create, patch, delete]
- apiGroups: [""]
  resources: [services/status]
  verbs: [patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: cloud, namespace: cloud}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: cloud}
subjects: [{kind: ServiceAccount, name: cloud, namespace: cloud}]
END
  at infra -n cloud wait secret/cloud-token --for=jsonpath='{.data.token}' --timeout=120s >/dev/null
  (umask 077 && kubeconfig_for "$(server_of infra)" "$(ca_of infra)" \
    "token: $(at infra -n cloud get secret cloud-token -o jsonpath='{.data.token}' | base64 -d)" >"$STATE/cloud.kubeconfig")
}

# As many as there are.
hosts_are_listed() {
  [ "$(at infra -n cloud get configmap hosts -o go-template='{{len .data}}')" = "$(nodes infra | wc -l)" ]
}

# Closes zones of the cloud. No zone is closed before its host is in the list.
cloud_agent() {
  sed -E "s#image: (repot/.*):dev#image: ${release:+$release/}\1:${release:+v}${RELEASE_VERSION:-dev}#" hack/landscape/cloud-agent.yaml |
    at infra apply -f - >/dev/null
  [ -z "$again" ] || at infra -n cloud-agent rollout restart daemonset/cloud-local-agent >/dev/null
  at infra -n cloud-agent rollout status daemonset/cloud-local-agent --timeout=120s >/dev/null ||
    fail "the cloud's agent does not run: kubectl --kubeconfig $STATE/infra.kubeconfig -n cloud-agent describe pods"
  wait_for 60 "the cloud's hosts are in its list of hosts (see: kubectl --kubeconfig $STATE/infra.kubeconfig -n cloud-agent logs daemonset/cloud-local-agent)" \
    hosts_are_listed
}

# gardenlet_answers BASE: the identity that was made before is still good.
gardenlet_answers() {
  [ -s "$1.kubeconfig" ] && timeout 20 "$REPOT_BIN/kubectl" --kubeconfig "$1.kubeconfig" get --raw /version >/dev/null 2>&1
}

# A gardenlet's identity: a client certificate that the garden signs.
gardenlet_kubeconfig() {
  local seed=$1 csr=gardenlet-$1 base=$PARTS/gardenlet-$1 certificate
  if ! gardenlet_answers "$base"; then
    (umask 077 && openssl ecparam -name prime256v1 -genkey -noout -out "$base.key")
    openssl req -new -key "$base.key" -out "$base.csr" -subj "/O=gardener.cloud:system:seeds/CN=gardener.cloud:system:seed:$seed"
    at garden delete csr "$csr" --ignore-not-found >/dev/null
    at garden apply -f - >/dev/null <<END
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: $csr}
spec:
  request: $(base64 -w0 <"$base.csr")
  signerName: kubernetes.io/kube-apiserver-client
  usages: [client auth]
END
    at garden certificate approve "$csr" >/dev/null
    at garden wait "csr/$csr" --for=jsonpath='{.status.certificate}' --timeout=120s >/dev/null
    certificate=$(at garden get csr "$csr" -o jsonpath='{.status.certificate}')
    (umask 077 && kubeconfig_for "$(server_of garden)" "$(ca_of garden)" \
      "client-certificate-data: $certificate, client-key-data: $(base64 -w0 <"$base.key")" >"$base.kubeconfig")
  fi
  at "$seed" create namespace garden --dry-run=client -o yaml | at "$seed" apply -f - >/dev/null
  at "$seed" -n garden create secret generic gardenlet-garden-kubeconfig --dry-run=client -o yaml \
    --from-file=kubeconfig="$base.kubeconfig" | at "$seed" apply -f - >/dev/null
}

# The rights of a gardenlet in the garden, by its user name (docs/operate/install.md).
bind_gardenlet() {
  local name=gardener.cloud:system:seed:$1
  at garden create clusterrolebinding "$name" --clusterrole=gardener.cloud:system:seeds --user="$name" --dry-run=client -o yaml |
    at garden apply -f - >/dev/null
  at garden -n gardener-system-seed-lease create rolebinding "$name" --role=gardener.cloud:system:seed-leases --user="$name" \
    --dry-run=client -o yaml | at garden apply -f - >/dev/null
  at garden -n default create rolebinding "$name" --role=gardener.cloud:system:seed-events --user="$name" --dry-run=client -o yaml |
    at garden apply -f - >/dev/null
}

# Values of charts/provider-local, the same for all seeds: what differs (the cloud's credentials, the seed's buckets and names) is
# read from the Secrets of shoots and seeds. The locks are where the gardenlet has its own: controllers move between the two.
provider_values() {
  cat <<END
# The nodes of the test clusters have the images already, without a registry, unless a release is installed.
global: {allowEmptyRegistry: true, imageRegistry: "${RELEASE_REGISTRY:-}"}
# Two cores run all clusters, so that a second Pod that only waits would take memory and time from the tests.
replicas: 1
loadBalancerRange: $LOAD_BALANCERS
lockNamespace: garden
END
}

# registration ARCHIVE: the provider, as an operator of the garden registers it (docs/operate/extensions.md). A seed needs it for its
# names and backups, before it has any shoot.
registration() {
  cat <<END
apiVersion: core.gardener.cloud/v1
kind: ControllerDeployment
metadata: {name: provider-local}
helm:
  rawChart: $(base64 -w0 <"$1")
  values:
$(provider_values | sed 's/^/    /')
---
apiVersion: core.gardener.cloud/v1beta1
kind: ControllerRegistration
metadata: {name: provider-local}
spec:
  resources:
  - {kind: Infrastructure, type: local}
  - {kind: ControlPlane, type: local}
  - {kind: Network, type: local}
  - {kind: OperatingSystemConfig, type: local}
  - {kind: Worker, type: local}
  - {kind: SubnetIsolation, type: local}
  - {kind: DNSRecord, type: local}
  - {kind: BackupBucket, type: local}
  - {kind: BackupEntry, type: local}
  deployment:
    policy: OnDemand
    deploymentRefs: [{name: provider-local}]
END
}

register_provider() {
  local kind folder=$PARTS/provider-local
  say "registering provider-local in the garden"
  rm -rf "$folder" && mkdir "$folder"
  if [ -n "$release" ]; then
    set -- pull "$charts/provider-local" "${chart_options[@]}"
  else
    set -- package charts/provider-local
  fi
  logged "$LOG/helm-package.log" timeout 60 "$REPOT_BIN/helm" "$@" --destination "$folder" ||
    fail "$charts/provider-local could not be packed or pulled; log: $LOG/helm-package.log"
  for kind in controllerdeployments controllerregistrations; do
    at garden wait "crd/$kind.core.gardener.cloud" --for=condition=Established --timeout=60s >/dev/null ||
      fail "the garden does not serve $kind"
  done
  registration "$folder"/provider-local-*.tgz >"$PARTS/registration.yaml"
  at garden apply --server-side --force-conflicts --field-manager landscape -f "$PARTS/registration.yaml" >/dev/null ||
    fail "provider-local could not be registered; the objects: $PARTS/registration.yaml"
}

seed_values() {
  local seed=$1 gate_protocol=TCP
  [ -z "${REPOT_GATE_HTTP2:-}" ] || gate_protocol=HTTP2
  cat <<END
# The nodes of the test clusters have the images already, without a registry, unless a release is installed.
global: {allowEmptyRegistry: true, imageRegistry: "${RELEASE_REGISTRY:-}", kubernetesImageRegistry: "${RELEASE_REGISTRY:-}"}
# The gardenlet installs it, from its registration in the garden. Its chart holds roles, which the resource-manager has to write.
provider-local: {enabled: false}
# Two cores run all clusters, so that a second Pod that only waits would take memory and time from the tests: one
# Pod for each manager.
etcd-druid:
  replicas: 1
  # The gate in front of each etcd-main: of bytes, or of requests with REPOT_GATE_HTTP2=1.
  backupRestore: {gateProtocol: $gate_protocol}
resource-manager:
  replicas: 1
  seedObjects: {roles: true}
gardenlet:
  replicas: 1
  # Short, so that the demonstration shows the move and not the memory of resolvers.
  dnsTTLSeconds: 5
  etcdStorage: 1Gi
  # The landscape has roads from each seed to the nodes; REPOT_TUNNEL=true does without them.
  tunnel: {enabled: ${REPOT_TUNNEL:-false}}
  seedConfig:
    apiVersion: core.gardener.cloud/v1beta1
    kind: Seed
    metadata: {name: $seed}
    spec:
      backup:
        provider: local
        region: local
        credentialsRef: {apiVersion: v1, kind: Secret, namespace: seed-$seed, name: backup}
      dns:
        internal:
          type: local
          domain: internal.$DNS_ZONE
          zone: $DNS_ZONE
          credentialsRef: {apiVersion: v1, kind: Secret, namespace: seed-$seed, name: dns}
        defaults:
        - type: local
          domain: shoots.$DNS_ZONE
          zone: $DNS_ZONE
          credentialsRef: {apiVersion: v1, kind: Secret, namespace: seed-$seed, name: dns}
      networks:
        pods: $(pod_cidr "$seed")
        services: $(service_cidr "$seed")
      provider: {type: local, region: local, zones: ["0"]}
      settings:
        # Who owns a shoot stands in DNS; all seeds ask the same servers.
        ownerChecks: {enabled: true, authorities: ["$DNS_SERVER"]}
END
}

install_seed() {
  local seed=$1
  say "installing into $seed"
  gardenlet_kubeconfig "$seed"
  bind_gardenlet "$seed"
  seed_values "$seed" >"$PARTS/$seed.values.yaml"
  logged "$LOG/helm-$seed.log" helm "$seed" upgrade --install seed "$charts/seed" "${chart_options[@]}" -n garden -f "$PARTS/$seed.values.yaml" ||
    fail "$charts/seed could not be installed into $seed; log: $LOG/helm-$seed.log"
}

# deployments CLUSTER: the suite's own, as "namespace name".
deployments() {
  at "$1" get deployments -A -o jsonpath='{range .items[*]}{.metadata.namespace} {.metadata.name}{"\n"}{end}' |
    awk '$1 == "garden" || $1 == "extension-provider-local" || $1 == "garden-exposure"'
}

# A new image under an old tag starts new pods only when they are told.
restart() {
  local namespace name
  while read -r namespace name; do
    at "$1" -n "$namespace" rollout restart "deployment/$name" >/dev/null
  done < <(deployments "$1")
}

rolled_out() {
  local namespace name
  while read -r namespace name; do
    at "$1" -n "$namespace" rollout status "deployment/$name" --timeout=300s >/dev/null ||
      fail "Deployment $namespace/$name in $1 is not rolled out: kubectl --kubeconfig $STATE/$1.kubeconfig -n $namespace describe pods"
  done < <(deployments "$1")
}

# installation_of SEED: the name of the ControllerInstallation of provider-local for this seed; nothing while there is none.
installation_of() {
  at garden get controllerinstallations.core.gardener.cloud \
    -o jsonpath='{range .items[*]}{.metadata.name} {.spec.seedRef.name} {.spec.registrationRef.name}{"\n"}{end}' |
    awk -v seed="$1" '$2 == seed && $3 == "provider-local" { print $1 }'
}
has_installation() { [ -n "$(installation_of "$1")" ]; }

# The conditions say how far it is, and what stands in the way.
wait_for_provider() {
  local seed=$1 name condition
  wait_for 240 "garden-controller-manager has made a ControllerInstallation of provider-local for $seed" has_installation "$seed"
  name=$(installation_of "$seed")
  say "$seed gets provider-local: ControllerInstallation $name"
  for condition in Valid Installed Healthy Progressing=False; do
    at garden wait "controllerinstallations.core.gardener.cloud/$name" --for="condition=$condition" --timeout=300s >/dev/null || {
      at garden get controllerinstallations.core.gardener.cloud "$name" \
        -o jsonpath='{range .status.conditions[*]}{.type}={.status} {.message}{"\n"}{end}' >&2
      fail "provider-local is not installed in $seed ($condition): kubectl --kubeconfig $STATE/$seed.kubeconfig -n garden describe managedresource extension-provider-local"
    }
  done
  say "$seed has provider-local"
}

wait_for_seed() {
  local seed=$1 condition
  # Its gardenlet makes it, once it leads: a process that finds no lock waits as long as a holder would need to make it again.
  at garden wait "seed/$seed" --for=create --timeout=120s >/dev/null || fail "Seed $seed was not registered"
  for condition in GardenletReady SeedSystemComponentsHealthy BackupBucketsReady EdgeAddressReady; do
    at garden wait "seed/$seed" --for="condition=$condition" --timeout=300s >/dev/null || {
      at garden get seed "$seed" -o jsonpath='{range .status.conditions[*]}{.type}={.status} {.message}{"\n"}{end}' >&2
      fail "Seed $seed is not ready ($condition)"
    }
  done
}

# A policy that looks at objects of another kind refuses everybody until the API server has found that kind, which it looks for
# every half minute. Only then is the garden ready for its users.
wait_for_policies() {
  local probe=policy-probe
  at garden apply -f - >/dev/null <<END
apiVersion: v1
kind: Namespace
metadata:
  name: $probe
  labels: {project.gardener.cloud/name: $probe}
  # Deletions of namespaces without it are refused until the API server has found Shoots and BackupEntries.
  annotations: {confirmation.gardener.cloud/deletion: "true"}
END
  wait_for 180 "the garden's policies are in force" at garden -n "$probe" create secret generic probe --dry-run=server
  cat >"$LOG/$probe.yaml" <<END
apiVersion: core.gardener.cloud/v1beta1
kind: Project
metadata: {name: probe}
spec: {}
END
  wait_for 180 "the garden takes projects" at garden create --dry-run=server -f "$LOG/$probe.yaml"
  at garden delete namespace "$probe" --wait=false >/dev/null
}

install_garden() {
  say "installing into garden"
  # As in seed_values: no registry, and one Pod for each manager.
  logged "$LOG/helm-garden.log" helm garden upgrade --install garden "$charts/garden" "${chart_options[@]}" -n garden --create-namespace \
    --set "global.allowEmptyRegistry=true,global.imageRegistry=$release" --set garden-controller-manager.replicas=1 ||
    fail "$charts/garden could not be installed; log: $LOG/helm-garden.log"
}

# take_back SEED: the revision before, with the charts, images and values of then. The former gardenlet may report other conditions of
# the Seed than the present one.
take_back() {
  say "taking $1 back to the revision before"
  logged "$LOG/helm-$1-back.log" helm "$1" rollback seed -n garden ||
    fail "$1 could not be taken back to the revision before; log: $LOG/helm-$1-back.log"
  rolled_out "$1"
}

# take_step STEP: one step of an upgrade. New images have new tags there, so that no Deployment needs a restart.
take_step() {
  local seed
  case $1 in
    secrets) garden_secrets | at garden apply -f - >/dev/null ;;
    rights) for seed in seed-a seed-b; do bind_gardenlet "$seed"; done ;;
    garden)
      install_garden
      rolled_out garden
      wait_for_policies
      ;;
    seed-a | seed-b)
      install_seed "$1"
      rolled_out "$1"
      wait_for_seed "$1"
      ;;
    seed-a-back | seed-b-back) take_back "${1%-back}" ;;
    provider)
      register_provider
      for seed in seed-a seed-b; do wait_for_provider "$seed"; done
      ;;
    *) fail "no such step: $1; there are: secrets, rights, garden, seed-a, seed-b, provider, seed-a-back, seed-b-back" ;;
  esac
  say "step $1 is done on landscape $NAME"
}

if [ -n "${2:-}" ]; then
  take_step "$2"
  exit 0
fi
again="" jobs=()
if at garden get namespace garden >/dev/null 2>&1; then again=yes; fi
[ -n "$release" ] || hack/images.sh --garden "$GARDEN_CLUSTER" --seed "$SEED_A_CLUSTER" --seed "$SEED_B_CLUSTER" --cloud "$INFRA_CLUSTER"
install_garden
garden_secrets | at garden apply -f - >/dev/null
register_provider
cloud
cloud_agent
for seed in seed-a seed-b; do install_seed "$seed" & jobs+=($!); done
joined "a seed could not be installed" "${jobs[@]}"
hack/landscape.sh expose "$NAME"
for cluster in $CLUSTERS; do
  [ -z "$again" ] || restart "$cluster"
  rolled_out "$cluster"
done
for seed in seed-a seed-b; do wait_for_provider "$seed"; done
for seed in seed-a seed-b; do wait_for_seed "$seed"; done
wait_for_policies
say "the suite is installed on landscape $NAME"
