#!/usr/bin/env bash
# What a landscape looks like when something failed: objects of the suite, pods that are not well, last log lines, warnings; of each
# shoot what its controller managers were told, what they say, and who holds its locks.
#   hack/report.sh NAME
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. hack/env.sh
. hack/progress.sh
NAME=${1:-}
[ -n "$NAME" ] || fail "usage: hack/report.sh demo|e2e"
. hack/landscape/settings.sh
[ -f "$STATE/landscape.env" ] || fail "landscape $NAME is not up"
look() { local cluster=$1; shift; timeout 20 "$REPOT_BIN/kubectl" --kubeconfig "$STATE/$cluster.kubeconfig" "$@" 2>&1; }
# managers_of SEED NAMESPACE: flags of a shoot's controller managers and their last log lines.
managers_of() {
  local name
  for name in kube-controller-manager cloud-controller-manager; do
    echo "--- $1 $2/$name"
    look "$1" -n "$2" get deployment "$name" -o jsonpath='{range .spec.template.spec.containers[*].args[*]}  {@}{"\n"}{end}'
    look "$1" -n "$2" logs -l "app=kubernetes,role=$name" --prefix --tail=25
  done
}
# locks_of NAMESPACE SHOOT: locks in a shoot, with the kubeconfig of its user.
locks_of() {
  local file=$scratch/kubeconfig
  echo "--- locks of $1/$2"
  look garden -n "$1" get secret "$2.kubeconfig" -o jsonpath='{.data.kubeconfig}' | base64 -d >"$file" 2>/dev/null &&
    timeout 20 hack/shoot-kubectl "$NAME" "$file" -n kube-system get leases 2>&1 || echo "it cannot be asked"
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
{
  echo "--- garden"
  look garden get seeds,shoots,shootstates,backupbuckets.core.gardener.cloud,backupentries.core.gardener.cloud -A
  look garden get shoots -A -o jsonpath='{range .items[*]}{.metadata.name} {.status.lastOperation}{"\n"}{range .status.lastErrors[*]}  {.taskID}: {.description}{"\n"}{end}{end}'
  look garden get controllerinstallations -o jsonpath='{range .items[*]}{.metadata.name} in {.spec.seedRef.name}{"\n"}{range .status.conditions[*]}  {.type}={.status} {.message}{"\n"}{end}{end}'
  look garden -n garden logs deployment/garden-controller-manager --tail=20
  for seed in seed-a seed-b; do
    echo "--- $seed"
    look "$seed" get pods -A | grep -v -E ' kube-system | local-path-storage ' | grep -v -E ' (Running|Completed) +0 ' || true
    look "$seed" get etcds,infrastructures,controlplanes,dnsrecords,backupentries.extensions.gardener.cloud -A
    look "$seed" -n garden get managedresources
    for deployment in garden/gardenlet garden/etcd-druid garden/resource-manager extension-provider-local/provider-local garden-exposure/edge; do
      echo "--- $seed $deployment"
      look "$seed" -n "${deployment%/*}" logs "deployment/${deployment#*/}" --tail=25
    done
    for namespace in $(look "$seed" get namespaces -o name | sed -n 's,^namespace/\(shoot--\),\1,p'); do
      managers_of "$seed" "$namespace"
    done
  done
  look garden get shoots -A -o jsonpath='{range .items[*]}shoot {.metadata.namespace} {.metadata.name}{"\n"}{end}' >"$scratch/shoots"
  for cluster in $CLUSTERS; do
    echo "--- warnings of $cluster"
    look "$cluster" get events -A --field-selector type=Warning --sort-by=.lastTimestamp | tail -n 12
  done
  while read -r kind namespace shoot; do
    [ "$kind" != shoot ] || locks_of "$namespace" "$shoot" </dev/null
  done <"$scratch/shoots"
} >&2
