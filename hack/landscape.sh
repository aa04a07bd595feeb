#!/usr/bin/env bash
# Four real clusters (garden, seed-a, seed-b, infra) with a DNS server and an object store beside them, on this machine.
#   hack/landscape.sh up NAME           makes what is missing; NAME is demo or e2e
#   hack/landscape.sh down NAME         leaves nothing behind; the caches in $REPOT_CACHE stay
#   hack/landscape.sh status NAME
#   hack/landscape.sh expose NAME       gives each seed's front Service (garden-exposure/ingress) its node's address
#   hack/landscape.sh cut NAME A B      nothing that B's node or pods send reaches A any more, established connections included;
#   hack/landscape.sh heal NAME A B     A and B are clusters, and B may be dns or s3. A's API stays reachable from this machine
#   hack/landscape.sh cut-out NAME A B  nothing that A's node or pods send leaves for B any more; what B sends still arrives
#   hack/landscape.sh heal-out NAME A B ends that
#   hack/landscape.sh spoil NAME A      whatever A asks the DNS server is answered by SERVFAIL
#   hack/landscape.sh mend NAME A       it is answered again; fails if A has asked nothing meanwhile
#   hack/landscape.sh freeze NAME A     Seed A names a second DNS server, which serves a copy of the zone as it is now, for ever
#   hack/landscape.sh thaw NAME A       Seed A names the DNS server again; the copy still answers
#   hack/landscape.sh end-copy NAME     the copy answers no more
#   hack/landscape.sh strand NAME       takes away the seeds' roads to machines of shoots: API servers need the tunnel then
#   hack/landscape.sh reconnect NAME    lays them again
#   hack/landscape.sh with NAME COMMAND…   up, COMMAND with the landscape's variables, and down whatever happens
# What others need to know is in $REPOT_CACHE/landscape/NAME/landscape.env.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh
ACTION=${1:-} NAME=${2:-}
[ -n "$NAME" ] || fail "usage: hack/landscape.sh up|down|status|expose|cut|heal|cut-out|heal-out|spoil|mend|freeze|thaw|end-copy|strand|reconnect|with demo|e2e"
. hack/landscape/settings.sh
. hack/images/store.sh
. hack/landscape/clusters.sh
. hack/landscape/services.sh

# GB that a landscape takes on the disk, images and data of the clusters.
ROOM=20

# all FUNCTION [ARGUMENT…]: for every cluster at once; fails where one of them failed.
all() {
  local jobs=() cluster job failed="" function=$1; shift
  for cluster in $CLUSTERS; do "$function" "$cluster" "$@" & jobs+=($!); done
  for job in "${jobs[@]}"; do wait "$job" || failed=yes; done
  [ -z "$failed" ]
}

# A cluster without room on the disk does not start, and its logs do not tell the cause.
tell_room() {
  local room
  room=$(df -BG --output=avail "$(docker info --format '{{.DockerRootDir}}')" | tr -dc '0-9\n' | tail -n 1)
  [ "${room:-0}" -ge "$ROOM" ] || say "only ${room:-0} GB are free for docker, and a landscape takes up to $ROOM GB"
}

up() {
  local image services cluster
  mkdir -p "$STATE" "$LOG"
  exec 8>"$STATE/lock"
  flock -w 5 8 || fail "another run works on landscape $NAME"
  if [ "$NAME" = e2e ] && [ -z "${REPOT_KEEP:-}" ] && ! [ -f "$STATE/landscape.env" ]; then
    # A half-made test landscape helps nobody; REPOT_KEEP=1 leaves it for a look.
    trap 'say "landscape e2e could not be made; removing it"; stop_jobs; down' EXIT
    trap 'exit 130' INT TERM
  fi
  hack/docker.sh up 8>&- # the engine outlives this run and must not keep its lock
  tell_room
  hack/packages.sh curl jq knot-dnsutils util-linux
  hack/tools.sh kind kubectl helm kubeadm
  image=unused
  for cluster in $CLUSTERS; do
    running "$(node_of "$cluster")" || { image=$(hack/node-image.sh); break; }
  done
  create_network
  (start_dns && start_s3) & services=$!
  all create_cluster "$image" || fail "a cluster could not be created; logs in $LOG"
  wait "$services" || fail "DNS or object store could not be started"
  all connect || fail "the roads between the clusters could not be laid"
  all forward_zone || fail "the clusters' DNS could not be told of $DNS_ZONE"
  all wait_cluster || fail "a cluster is not ready"
  write_environment
  trap - EXIT INT TERM
  say "landscape $NAME is up: . $STATE/landscape.env"
}

down() {
  local cluster container
  trap - EXIT INT TERM
  # Longer than a busy engine takes: if it were taken for gone, everything would be left on it.
  if timeout 30 docker info >/dev/null 2>&1; then
    for cluster in $CLUSTERS; do
      # By label: also a node whose cluster was never finished.
      for container in $(docker ps -aq --filter "label=io.x-k8s.kind.cluster=$(cluster_of "$cluster")"); do
        timeout 180 docker rm -f -v "$container" >/dev/null
      done
    done
    for container in "$NAME-dns-failing" "$NAME-dns-copy" "$NAME-s3-store" "$NAME-dns" "$NAME-s3"; do docker rm -f -v "$container" >/dev/null 2>&1 || true; done
    docker network rm "$NETWORK" >/dev/null 2>&1 || true
    # The engine goes when nothing runs on it any more, and only if hack/docker.sh started it.
    [ -n "$(docker ps -q)" ] || hack/docker.sh down
  fi
  rm -rf "$STATE"
  say "landscape $NAME is gone"
}

status() {
  local cluster
  for cluster in $CLUSTERS; do
    if running "$(node_of "$cluster")"; then
      say "$cluster: node $(node_ip "$cluster"), $(at "$cluster" get pods -A --no-headers 2>/dev/null | awk '{ n++; if ($4 == "Running") r++ } END { print r + 0 " of " n + 0 " pods running" }')"
    else
      say "$cluster: not there"
    fi
  done
  if running "$NAME-dns"; then say "dns: $DNS_IP:53, $(dns_answers && echo answers || echo 'does not answer')"; else say "dns: not there"; fi
  if running "$NAME-s3"; then say "object store: http://$S3_IP:9000"; else say "object store: not there"; fi
  if [ -f "$STATE/landscape.env" ]; then say "landscape $NAME: . $STATE/landscape.env"; else say "landscape $NAME is not up"; fi
}

# What a cloud's load balancer controller would do: the front Service is reached at the node, where HAProxy has its port.
expose_seed() {
  local seed=$1
  wait_for 120 "$seed has a Service garden-exposure/ingress" at "$seed" -n garden-exposure get service ingress
  at "$seed" -n garden-exposure patch service ingress --subresource status --type merge \
    -p "{\"status\":{\"loadBalancer\":{\"ingress\":[{\"ip\":\"$(node_ip "$seed")\"}]}}}" >/dev/null
}

expose() {
  CLUSTERS="seed-a seed-b" all expose_seed || fail "a seed's front Service could not be given its address"
  say "seeds are reached at $(node_ip seed-a) and $(node_ip seed-b)"
}

addresses_of() {
  local number
  case $1 in
    dns) echo "$DNS_IP" ;;
    s3) echo "$S3_IP" ;;
    *) for number in $(nodes "$1"); do node_ip "$1" "$number" && node_pod_cidr "$1" "$number"; done ;;
  esac
}

# In the node's raw table, so that also what is established is cut; the machine's own way to the API is another.
block() {
  local operation=$1 from=$2 sources source
  sources=$(addresses_of "$3")
  for source in $sources; do on_node "$from" iptables -t raw "$operation" PREROUTING -s "$source" -j DROP; done
}
cut_off() { block -I "$1" "$2"; say "$1 hears nothing from $2"; }
heal() { block -D "$1" "$2"; say "$1 hears $2 again"; }

# Drops what leaves the node and its pods. Packets still arrive, and sent bytes wait in the kernels of the senders.
hold() {
  local operation=$1 from=$2 targets target
  targets=$(addresses_of "$3")
  for target in $targets; do on_node "$from" iptables -t mangle "$operation" POSTROUTING -d "$target" -j DROP; done
}
cut_out() { hold -I "$1" "$2"; say "$1 sends nothing to $2"; }
heal_out() { hold -D "$1" "$2"; say "$1 sends to $2 again"; }

# What leaves the node and what leaves its pods. Each question has a connection of its own, so none stays with the real server.
lead() {
  local operation=$1 chain protocol
  for chain in PREROUTING OUTPUT; do for protocol in udp tcp; do
    on_node "$2" iptables -t nat "$operation" "$chain" -d "$DNS_IP" -p "$protocol" --dport 53 -j DNAT \
      --to-destination "$DNS_IP:$DNS_FAILING_PORT"
  done; done
}
spoil() {
  start_failing_dns
  lead -I "$1"
  say "$1 is answered SERVFAIL"
}
mend() {
  local asked
  asked=$(on_node "$1" iptables -t nat -nvxL | awk -v to="to:$DNS_IP:$DNS_FAILING_PORT" '$NF == to { n += $1 } END { print n + 0 }')
  lead -D "$1"
  stop_failing_dns
  say "$1 has an answer of DNS again, after SERVFAIL for $asked questions"
  [ "$asked" -gt 0 ] || fail "$1 has asked nothing: nothing was shown"
}

# name_dns SEED ADDRESS: the servers that the Seed names for owner records.
name_dns() {
  at garden patch seed "$1" --type merge \
    -p "{\"spec\":{\"settings\":{\"ownerChecks\":{\"authorities\":[\"$2\"]}}}}" >/dev/null
  say "Seed $1 names $2"
}
freeze() { start_dns_copy; name_dns "$1" "$DNS_IP:$DNS_COPY_PORT"; }
thaw() { name_dns "$1" "$DNS_IP:53"; }

# Machines are pods of the cluster infra. They still reach the seeds: what they send there has their node's address.
strand() {
  local seed number
  for seed in seed-a seed-b; do
    for number in $(nodes infra); do on_node "$seed" ip route replace unreachable "$(node_pod_cidr infra "$number")"; done
    say "$seed has no road to machines"
  done
}
reconnect() {
  local seed number
  for seed in seed-a seed-b; do
    for number in $(nodes infra); do
      on_node "$seed" ip route replace "$(node_pod_cidr infra "$number")" via "$(node_ip infra "$number")"
    done
    say "$seed has a road to machines"
  done
}

# The work of `up` that goes on beside it must not make anything any more while `down` removes it.
stop_jobs() { local job; for job in $(jobs -p); do kill "$job" 2>/dev/null || true; wait "$job" 2>/dev/null || true; done; }

case $ACTION in
  cut | heal | cut-out | heal-out)
    [ $# -eq 4 ] || fail "usage: hack/landscape.sh $ACTION NAME A B"
    case $ACTION in
      cut) cut_off "$3" "$4" ;;
      heal) heal "$3" "$4" ;;
      cut-out) cut_out "$3" "$4" ;;
      heal-out) heal_out "$3" "$4" ;;
    esac
    ;;
  end-copy) stop_dns_copy; say "no copy of the zone answers any more" ;;
  spoil | mend | freeze | thaw)
    [ $# -eq 3 ] || fail "usage: hack/landscape.sh $ACTION NAME A"
    "$ACTION" "$3"
    ;;
  up | down | status | expose | strand | reconnect) "$ACTION" ;;
  with)
    shift 2
    [ $# -gt 0 ] || fail "usage: hack/landscape.sh with NAME COMMAND…"
    hack/landscape.sh up "$NAME"
    trap 'hack/landscape.sh down "$NAME"' EXIT
    trap 'exit 130' INT TERM
    set -a && . "$STATE/landscape.env" && set +a
    "$@"
    ;;
  *) fail "usage: hack/landscape.sh up|down|status|expose|cut|heal|cut-out|heal-out|spoil|mend|strand|reconnect|with demo|e2e" ;;
esac
