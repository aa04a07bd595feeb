#!/usr/bin/env bash
# Scans the objects of all charts with kube-score and checkov. Each finding needs a line with a reason in hack/scan-exceptions, and each
# line must match a finding. All findings count: checkov grades none of them without its server, and kube-score has no low grade.
#   hack/scan.sh
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh

EXCEPTIONS=hack/scan-exceptions
WORK=$REPOT_CACHE/scan
# The version of the test environments. Charts require a version, and Helm has no cluster to read the version from.
KUBERNETES=$(awk '$1 == "k8s.io/kubernetes" { print $2; exit }' hack/tools/go.mod)
[ -n "$KUBERNETES" ] || fail "hack/tools/go.mod does not name k8s.io/kubernetes"
MONITORING=global.monitoring.enabled=true,monitoring.runbookURL=https://git.example.org/docs

hack/packages.sh jq python3-venv
hack/tools.sh helm kube-score checkov
rm -rf "$WORK" && mkdir -p "$WORK"
start_ticker "scanning charts"
trap stop_ticker EXIT

# scan NAME CHART NAMESPACE SETTINGS: adds the findings about a variant of a chart to $WORK/findings, one a line:
# SCANNER | CHECK | OBJECT | TEXT
scan() {
  local name=$1 chart=$2 namespace=$3 settings=global.imageRegistry=registry.example.org rendered=$WORK/$1.yaml
  settings+=,global.kubernetesImageRegistry=registry.example.org${4:+,$4}
  say "scanning $name"
  helm template "$chart" "charts/$chart" -n "$namespace" --kube-version "$KUBERNETES" --set "$settings" >"$rendered" 2>"$WORK/$name.log" ||
    { cat "$WORK/$name.log" >&2; fail "charts/$chart could not be rendered with $settings"; }
  # Both scanners end with 1 where there are findings.
  kube-score score --kubernetes-version "${KUBERNETES%.*}" --output-format json "$rendered" >"$WORK/$name.kube-score.json" \
    2>>"$WORK/$name.log" || true
  jq -e 'length > 0' "$WORK/$name.kube-score.json" >/dev/null || fail "kube-score has no answer about $name; log: $WORK/$name.log"
  jq -r '.[] | "\(.type_meta.kind) \(.object_meta.namespace)/\(.object_meta.name)" as $object | .checks[]
    | select((.skipped | not) and .grade < 10) | .check.id as $check | (.comments // [])[]
    | "kube-score | \($check) | \($object) | \(.summary)"' "$WORK/$name.kube-score.json" >>"$WORK/findings"
  timeout 300 checkov --file "$rendered" --framework kubernetes --skip-download --compact --quiet --output json \
    >"$WORK/$name.checkov.json" 2>>"$WORK/$name.log" || true
  jq -e '.summary.resource_count > 0 and .summary.parsing_errors == 0' "$WORK/$name.checkov.json" >/dev/null ||
    fail "checkov has no answer about $name; log: $WORK/$name.log"
  jq -r '.results.failed_checks[] | "checkov | \(.check_id) | \(.resource) | \(.check_name)"' "$WORK/$name.checkov.json" >>"$WORK/findings"
}

# judge: prints each finding without an exception, and each exception that is wrong. OBJECT may be * in an exception.
judge() {
  sort -u "$WORK/findings" | awk -F ' [|] ' '
    NR == FNR {
      if ($0 ~ /^#/ || $0 == "") next
      if (NF != 5 || length($5) < 20) { print "this line must be SCANNER | CHECK | OBJECT | TEXT | REASON: " $0; next }
      lines[$1 FS $2 FS $3 FS $4] = $0
      next
    }
    {
      each = $1 FS $2 FS $3 FS $4; all = $1 FS $2 FS "*" FS $4
      if (each in lines) used[each] = 1
      else if (all in lines) used[all] = 1
      else print "no exception: " $0
    }
    END { for (key in lines) if (!(key in used)) print "no finding: " lines[key] }
  ' "$EXCEPTIONS" - >"$WORK/faults"
}

scan garden garden garden ""
scan garden-with-all garden garden "garden-controller-manager.leaderMigration.enabled=true,$MONITORING"
scan seed seed garden ""
scan seed-with-all seed garden "edge.replicas=2,edge.hostPort=null,gardenlet.tracing.endpoint=http://collector:4317,$MONITORING,\
gardenlet.leaderMigration.enabled=true,provider-local.leaderMigration.enabled=true"
scan provider-aws provider-aws extension-provider-aws leaderMigration.enabled=true
judge
if [ -s "$WORK/faults" ]; then
  cat "$WORK/faults" >&2
  fail "repair the charts, or name the reason in $EXCEPTIONS"
fi
say "the scanners have $(sort -u "$WORK/findings" | wc -l) findings, each with a reason in $EXCEPTIONS"
