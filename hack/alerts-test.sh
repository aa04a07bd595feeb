#!/usr/bin/env bash
# Breaks the suite of a landscape and waits for the alerts: a gardenlet is gone, so that its seed is silent, then
# garden-controller-manager is gone. A Prometheus on this machine scrapes the pods through the API servers, and has the rules of both
# charts. In the end all processes run again.
#   hack/alerts-test.sh NAME        NAME is demo or e2e; the suite must be installed
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh
NAME=${1:-}
[ -n "$NAME" ] || fail "usage: hack/alerts-test.sh demo|e2e"
. hack/landscape/settings.sh
[ -f "$STATE/landscape.env" ] || fail "landscape $NAME is not up: hack/landscape.sh up $NAME"
hack/packages.sh prometheus jq curl
ADDRESS=127.0.0.1:9097
WORK=$STATE/alerts LOG=$REPOT_CACHE/log/prometheus-$NAME.log
# As `global.monitoring.scrapeInterval` and the interval of the rules.
INTERVAL=15s
# A dead seed pages within two minutes. Alertmanager is not here, and waits 10 s before it pages (docs/operate/monitoring.md).
PAGED_WITHIN=110
# wait_for hides what its condition prints.
exec 6>&2

# key_of CLUSTER: writes the files by which Prometheus signs in to the API server.
key_of() {
  local part
  for part in clusters[0].cluster.certificate-authority-data:ca users[0].user.client-certificate-data:cert \
    users[0].user.client-key-data:key; do
    at "$1" config view --raw -o jsonpath="{.${part%:*}}" | base64 -d >"$WORK/$1.${part#*:}"
    [ -s "$WORK/$1.${part#*:}" ] || fail "the kubeconfig of $1 has no ${part%:*}"
  done
}

# job CLUSTER NAME PORT: the scrape of all pods of a Deployment in namespace garden, one target for each pod.
job() {
  local server pod
  server=$(at "$1" config view --raw -o jsonpath='{.clusters[0].cluster.server}')
  cat <<END
- job_name: $1-$2
  scheme: https
  honor_labels: true
  tls_config: {ca_file: $1.ca, cert_file: $1.cert, key_file: $1.key}
  static_configs:
END
  for pod in $(at "$1" -n garden get pods -l "app.kubernetes.io/name=$2" -o jsonpath='{.items[*].metadata.name}'); do
    printf -- '  - targets: ["%s"]\n    labels: {pod: "%s", __metrics_path__: "/api/v1/namespaces/garden/pods/%s:%s/proxy/metrics"}\n' \
      "${server#https://}" "$pod" "$pod" "$3"
  done
}

# write_config: the pods as they are now. A running Prometheus reads the file again.
write_config() {
  {
    printf 'global: {scrape_interval: %s, evaluation_interval: %s}\nrule_files: [garden.rules.yaml, seed.rules.yaml]\n' "$INTERVAL" "$INTERVAL"
    echo scrape_configs:
    job garden garden-controller-manager 2728
    job seed-b gardenlet 2728
  } >"$WORK/prometheus.yml"
}

start_prometheus() {
  local chart cluster
  rm -rf "$WORK" && mkdir -p "$WORK" "$(dirname "$LOG")" && chmod 700 "$WORK"
  for chart in garden seed; do cp "charts/$chart/files/rules.yaml" "$WORK/$chart.rules.yaml"; done
  for cluster in garden seed-b; do key_of "$cluster"; done
  write_config
  # The API reports times in the zone of the process, and state_of reads UTC.
  TZ=UTC prometheus --config.file="$WORK/prometheus.yml" --storage.tsdb.path="$WORK/data" --web.listen-address="$ADDRESS" \
    --log.level=warn >"$LOG" 2>&1 6>&- 7>&- 8>&- 9>&- &
  prometheus=$!
  trap clean_up EXIT
  wait_for 60 "Prometheus answers (log: $LOG)" is_ready
}

# check_prometheus: ends the test where the process is gone. A different process may answer at the address.
check_prometheus() {
  kill -0 "$prometheus" 2>/dev/null || fail "Prometheus has ended, so no alert can be judged; its log is $LOG" 2>&6
}
is_ready() { check_prometheus; curl -sf -m 3 "http://$ADDRESS/-/ready"; }

# reload: for pods with new names.
reload() { check_prometheus; write_config && kill -HUP "$prometheus"; }

# has QUERY: whether the query has a result now.
has() {
  check_prometheus
  curl -sf -m 5 --data-urlencode "query=$1" "http://$ADDRESS/api/v1/query" | jq -e '.data.result | length > 0' >/dev/null
}
fires() { has "ALERTS{alertname=\"$1\", alertstate=\"firing\"}"; }

# state_of ALERT SINCE: `firing` or `quiet`, by evaluations after SINCE (Unix seconds). Fails without such an evaluation, and where
# Prometheus does not answer, does not have the rule, or could not evaluate the rule: silence is a proof only after an evaluation.
state_of() {
  curl -sf -m 5 "http://$ADDRESS/api/v1/rules" | jq -er --arg alert "$1" --argjson since "$2" '
    [.data.groups[].rules[] | select(.name == $alert)]
    | select(length > 0 and all(.[]; .health == "ok" and (.lastEvaluation[:19] + "Z" | fromdate) > $since))
    | if any(.[]; .state == "firing") then "firing" else "quiet" end'
}
is_evaluated() { check_prometheus; [ -n "$(state_of "$1" "$2")" ]; }
is_quiet() { check_prometheus; [ "$(state_of "$1" "$2")" = quiet ]; }

# scale CLUSTER DEPLOYMENT REPLICAS
scale() { at "$1" -n garden scale "deployment/$2" --replicas="$3" >/dev/null; }
replicas_of() { at "$1" -n garden get "deployment/$2" -o jsonpath='{.spec.replicas}'; }

clean_up() {
  kill "$prometheus" 2>/dev/null || true
  scale seed-b gardenlet "$gardenlets" || true
  scale garden garden-controller-manager "$managers" || true
}

# ends ALERT SECONDS: the alert ends within this time, by an evaluation from now on.
ends() { wait_for "$2" "alert $1 ends after the repair" is_quiet "$1" "$(date +%s)"; }

# comes_back CLUSTER DEPLOYMENT REPLICAS ALERT: the alert ends after the repair.
comes_back() {
  scale "$1" "$2" "$3"
  at "$1" -n garden rollout status "deployment/$2" --timeout=300s >/dev/null
  reload
  ends "$4" 240
}

gardenlets=$(replicas_of seed-b gardenlet) managers=$(replicas_of garden garden-controller-manager)
start_prometheus
wait_for 120 "garden-controller-manager reports Seed seed-b" has 'seed_condition{seed="seed-b", condition="GardenletReady", status="True"}'
wait_for 120 "the gardenlet of seed-b leads" has 'controller_synced{controller="care"} == 1'
begin=$(date +%s)
for alert in RepotSeedSilent RepotGardenletDown RepotGardenControllerManagerDown; do
  wait_for 60 "Prometheus evaluates alert $alert" is_evaluated "$alert" "$begin"
  is_quiet "$alert" "$begin" || fail "alert $alert fires before anything is broken: http://$ADDRESS/alerts"
done

say "the gardenlet of seed-b is gone"
begin=$SECONDS
scale seed-b gardenlet 0
wait_for "$PAGED_WITHIN" "alert RepotSeedSilent fires" fires RepotSeedSilent
say "alert RepotSeedSilent fires after $((SECONDS - begin)) s"
wait_for 180 "alert RepotGardenletDown fires" fires RepotGardenletDown
comes_back seed-b gardenlet "$gardenlets" RepotSeedSilent
ends RepotGardenletDown 180

say "garden-controller-manager is gone"
scale garden garden-controller-manager 0
wait_for 180 "alert RepotGardenControllerManagerDown fires" fires RepotGardenControllerManagerDown
comes_back garden garden-controller-manager "$managers" RepotGardenControllerManagerDown
say "alerts: each of three faults was reported, and its alert has ended"
