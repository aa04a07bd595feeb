#!/usr/bin/env bash
# What docs/operate/upgrade.md asks of an operator before the upgrade of a garden of release v0.1.0: each seed reads Secrets in its own
# namespace of the garden alone, and each gardenlet has its rights by the name of its user.
#   hack/upgrade/from-v0.1.0.sh TREE     TREE has the sources of the release, whose charts still serve the seeds
set -euo pipefail
cd "$(dirname "$0")/../.."
. hack/env.sh
. hack/progress.sh
NAME=e2e
. hack/landscape/settings.sh
tree=${1:-}
[ -d "$tree/charts/seed" ] || fail "usage: hack/upgrade/from-v0.1.0.sh TREE"

# bucket_namespace SEED: where the BackupBucket of the seed has its credentials.
bucket_namespace() {
  at garden get backupbuckets.core.gardener.cloud -o jsonpath='{range .items[*]}{.spec.seedName} {.spec.credentialsRef.namespace}{"\n"}{end}' |
    awk -v seed="$1" '$1 == seed { print $2 }'
}
reads_its_namespace() { [ "$(bucket_namespace "$1")" = "seed-$1" ]; }

hack/install.sh "$NAME" rights
hack/install.sh "$NAME" secrets
for seed in seed-a seed-b; do
  values=$STATE/install/$seed.values.yaml
  say "$seed: naming the Secrets of namespace seed-$seed, with the former version"
  sed -i -e "s/namespace: garden, name: backup-$seed}/namespace: seed-$seed, name: backup}/" \
    -e "s/namespace: garden, name: dns}/namespace: seed-$seed, name: dns}/" "$values"
  if grep "credentialsRef:.*namespace: garden," "$values"; then fail "$values still names Secrets of namespace garden"; fi
  logged "$LOG/helm-$seed-before.log" timeout 300 "$REPOT_BIN/helm" --kubeconfig "$STATE/$seed.kubeconfig" upgrade seed "$tree/charts/seed" \
    -n garden -f "$values" || fail "the values of $seed could not be changed; log: $LOG/helm-$seed-before.log"
done
for seed in seed-a seed-b; do
  at "$seed" -n garden rollout status deployment/gardenlet --timeout=300s >/dev/null || fail "the gardenlet of $seed is not rolled out"
  wait_for 240 "the BackupBucket of $seed has the Secret of namespace seed-$seed" reads_its_namespace "$seed"
  at garden wait "seed/$seed" --for=condition=BackupBucketsReady --timeout=300s >/dev/null || fail "the bucket of $seed is not ready"
done
say "the garden is ready for the upgrade"
