# Sourced: what is different from one landscape to the next, and where it keeps its state. Sets everything from NAME.
# shellcheck shell=bash disable=SC2034 # used where it is sourced
case $NAME in
  e2e) octet=30 tens=1 ;;
  demo) octet=31 tens=2 ;;
  *) fail "no landscape is called '$NAME'; there are: demo, e2e" ;;
esac
STATE=$REPOT_CACHE/landscape/$NAME
LOG=$STATE/log
NETWORK=repot-$NAME
# Each landscape has a docker network of its own with known addresses. Node addresses come from the second range.
SUBNET=${REPOT_SUBNET_PREFIX:-172.$octet}
DNS_IP=$SUBNET.0.53
S3_IP=$SUBNET.0.90
# Addresses of shoots' load balancers, which the cloud answers for: some thousand, as one test makes hundreds.
LOAD_BALANCERS=$SUBNET.16.0/20
CLUSTERS="garden seed-a seed-b infra"
DNS_ZONE=repot.test
# Hosts of the cloud: nodes of the cluster infra. Three play a zone each, one plays all of them.
HOSTS=${REPOT_HOSTS:-1}
case $HOSTS in 1 | 3) ;; *) fail "REPOT_HOSTS is '$HOSTS': there may be 1 or 3" ;; esac

cluster_of() { echo "$NAME-$1"; }
# nodes CLUSTER: the numbers of its nodes, as many as it was made with. The first one, 0, has the API server.
nodes() { seq 0 $(($(grep -c '^- role:' "$STATE/kind/$1.yaml") - 1)); }
# node_of CLUSTER [NUMBER]: the container, as kind calls it.
node_of() {
  case ${2:-0} in
    0) echo "$NAME-$1-control-plane" ;;
    1) echo "$NAME-$1-worker" ;;
    *) echo "$NAME-$1-worker$2" ;;
  esac
}
# Pods 10.<tens><n>.0.0/16, Services 10.1<tens><n>.0.0/16: no two clusters of any landscape share an address.
number_of() { case $1 in garden) echo "${tens}0" ;; seed-a) echo "${tens}1" ;; seed-b) echo "${tens}2" ;; infra) echo "${tens}3" ;; esac; }
pod_cidr() { echo "10.$(number_of "$1").0.0/16"; }
# node_pod_cidr CLUSTER [NUMBER]: a node's part is a /24 of its cluster's.
node_pod_cidr() { echo "10.$(number_of "$1").${2:-0}.0/24"; }
service_cidr() { echo "10.1$(number_of "$1").0.0/16"; }
node_ip() { docker inspect -f "{{(index .NetworkSettings.Networks \"$NETWORK\").IPAddress}}" "$(node_of "$@")"; }
in_container() { timeout 60 docker exec "$@"; }
on_node() { local node; node=$(node_of "$1"); shift; in_container "$node" "$@"; }
# Longer than the longest wait that kubectl is asked for, 300 s.
at() { local cluster=$1; shift; timeout 330 "$REPOT_BIN/kubectl" --kubeconfig "$STATE/$cluster.kubeconfig" "$@"; }
random_key() { head -c 32 /dev/urandom | base64 -w0; }
running() { [ "$(docker inspect -f '{{.State.Running}}' "$1" 2>/dev/null)" = true ]; }
