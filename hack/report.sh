#!/usr/bin/env bash
# What a landscape looks like when something failed: objects of the suite, pods that are not well, last log lines.
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
{
  echo "--- garden"
  look garden get seeds,shoots,shootstates,backupbuckets.core.gardener.cloud,backupentries.core.gardener.cloud -A
  look garden get shoots -A -o jsonpath='{range .items[*]}{.metadata.name} {.status.lastOperation}{"\n"}{range .status.lastErrors[*]}  {.taskID}: {.description}{"\n"}{end}{end}'
  look garden -n garden logs deployment/garden-controller-manager --tail=20
  for seed in seed-a seed-b; do
    echo "--- $seed"
    look "$seed" get pods -A | grep -v -E ' kube-system | local-path-storage ' | grep -v -E ' (Running|Completed) +0 ' || true
    look "$seed" get etcds,infrastructures,controlplanes,dnsrecords,backupentries.extensions.gardener.cloud -A
    for deployment in garden/gardenlet garden/etcd-druid extension-provider-local/provider-local garden-exposure/edge; do
      echo "--- $seed $deployment"
      look "$seed" -n "${deployment%/*}" logs "deployment/${deployment#*/}" --tail=25
    done
  done
} >&2
