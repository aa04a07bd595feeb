# Sourced: what stands beside the clusters. DNS and object store are containers with fixed addresses on the landscape's
# network, reachable under the same address from its pods and from the machine itself.
# shellcheck shell=bash

# At this port of its address every question is answered by SERVFAIL, if somebody has asked for that.
DNS_FAILING_PORT=5353
# At this port of its address a copy of the zone is served that nothing updates, if a test has asked for that.
DNS_COPY_PORT=5354

write_dns_config() {
  mkdir -p "$STATE/dns/data"
  cat >"$STATE/dns/failing.conf" <<E
server:
    listen: 0.0.0.0@$DNS_FAILING_PORT
    rundir: /tmp
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
log:
  - target: stdout
    any: error
database:
    storage: /tmp
    journal-db-max-size: 1M
    kasp-db-max-size: 8M
    timer-db-max-size: 1M
# A zone that cannot be loaded: the server is the zone's, and has nothing to say.
zone:
  - domain: $DNS_ZONE
    storage: /tmp
    file: missing.zone
E
  [ -s "$STATE/dns/tsig.secret" ] || (umask 077 && random_key >"$STATE/dns/tsig.secret")
  (umask 077 && cat >"$STATE/dns/knot.conf") <<E
server:
    listen: 0.0.0.0@53
    rundir: /run/knot
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
log:
  - target: stdout
    any: info
database:
    storage: /data
    journal-db-max-size: 64M
    kasp-db-max-size: 8M
    timer-db-max-size: 8M
key:
  - id: $NAME-landscape
    algorithm: hmac-sha256
    secret: $(cat "$STATE/dns/tsig.secret")
acl:
  - id: changes
    key: $NAME-landscape
    action: [update, transfer]
# The journal is the truth: what updates write is kept across restarts, the file is only the beginning.
zone:
  - domain: $DNS_ZONE
    storage: /data
    file: $DNS_ZONE.zone
    acl: changes
    journal-content: all
    journal-max-depth: 65536
    zonefile-sync: -1
    zonefile-load: difference-no-serial
E
  cat >"$STATE/dns/data/$DNS_ZONE.zone" <<E
\$ORIGIN $DNS_ZONE.
\$TTL 30
@ SOA ns.$DNS_ZONE. hostmaster.$DNS_ZONE. 1 3600 600 86400 5
@ NS ns.$DNS_ZONE.
ns A $DNS_IP
E
}

dns_answers() { timeout 3 kdig +time=1 +retry=0 +short "@$DNS_IP" "ns.$DNS_ZONE" A | grep -qxF "$DNS_IP"; }

start_dns() {
  local dir
  if ! running "$NAME-dns"; then
    debian_base
    dir=$(stage "dns-$NAME")
    cp hack/images/dns/Dockerfile hack/images/closure.sh "$dir/"
    build_image repot/dns:dev "$dir" --build-arg "BASE=$DEBIAN_BASE"
    write_dns_config
    docker rm -f "$NAME-dns" >/dev/null 2>&1 || true
    say "starting DNS at $DNS_IP"
    docker run -d --name "$NAME-dns" --network "$NETWORK" --ip "$DNS_IP" --restart unless-stopped \
      -v "$STATE/dns/knot.conf:/etc/knot/knot.conf:ro" -v "$STATE/dns/data:/data" repot/dns:dev >/dev/null
  fi
  wait_for 60 "DNS at $DNS_IP answers (see: docker logs $NAME-dns)" dns_answers
}

# start_failing_dns: beside the real one, which goes on. stop_failing_dns ends it.
start_failing_dns() {
  running "$NAME-dns-failing" || docker run -d --name "$NAME-dns-failing" --network "container:$NAME-dns" \
    -v "$STATE/dns/failing.conf:/etc/knot/knot.conf:ro" repot/dns:dev >/dev/null
  wait_for 30 "DNS at $DNS_IP:$DNS_FAILING_PORT fails (see: docker logs $NAME-dns-failing)" dns_fails
}
stop_failing_dns() { docker rm -f -v "$NAME-dns-failing" >/dev/null 2>&1 || true; }
dns_fails() {
  timeout 3 kdig +time=1 +retry=0 "@$DNS_IP" -p "$DNS_FAILING_PORT" "ns.$DNS_ZONE" A | grep -q 'status: SERVFAIL'
}

# start_dns_copy: a secondary that is out of date for ever, and an authority of the zone as the real server is. stop_dns_copy ends it.
start_dns_copy() {
  local dir=$STATE/dns/copy
  stop_dns_copy
  mkdir -p "$dir"
  # A transfer ends with the SOA record that it began with; a zone file has one.
  timeout 10 kdig "@$DNS_IP" -y "hmac-sha256:$NAME-landscape:$(cat "$STATE/dns/tsig.secret")" +noall +answer -t AXFR "$DNS_ZONE" |
    awk '/^[^;]/ && NF >= 5 && $4 != "TSIG" && !($4 == "SOA" && soa++)' >"$dir/$DNS_ZONE.zone"
  grep -q SOA "$dir/$DNS_ZONE.zone" || fail "the zone $DNS_ZONE could not be transferred from $DNS_IP"
  cat >"$dir/knot.conf" <<E
server:
    listen: 0.0.0.0@$DNS_COPY_PORT
    rundir: /tmp
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
log:
  - target: stdout
    any: info
database:
    storage: /tmp
    journal-db-max-size: 1M
    kasp-db-max-size: 8M
    timer-db-max-size: 1M
zone:
  - domain: $DNS_ZONE
    storage: /copy
    file: $DNS_ZONE.zone
    journal-content: none
    zonefile-sync: -1
E
  docker run -d --name "$NAME-dns-copy" --network "container:$NAME-dns" \
    -v "$dir/knot.conf:/etc/knot/knot.conf:ro" -v "$dir:/copy:ro" repot/dns:dev >/dev/null
  wait_for 30 "the copy of the zone at $DNS_IP:$DNS_COPY_PORT answers (see: docker logs $NAME-dns-copy)" dns_copy_answers
}
stop_dns_copy() { docker rm -f -v "$NAME-dns-copy" >/dev/null 2>&1 || true; }
dns_copy_answers() {
  timeout 3 kdig +time=1 +retry=0 +short "@$DNS_IP" -p "$DNS_COPY_PORT" "ns.$DNS_ZONE" A | grep -qxF "$DNS_IP"
}

# What is asked of the object store goes through HAProxy, which tells who asked: docker logs --timestamps $NAME-s3.
write_s3_config() {
  mkdir -p "$STATE/s3/data"
  [ -s "$STATE/s3/secret" ] || (umask 077 && random_key | tr -d '/+=' >"$STATE/s3/secret")
  cat >"$STATE/s3/haproxy.cfg" <<E
global
  maxconn 1000
  log stdout format raw local0 info
defaults
  mode http
  log global
  log-format "%ci %HM %HU %ST"
  timeout connect 5s
  timeout client 1h
  timeout server 1h
frontend s3
  bind :9000
  default_backend store
backend store
  server store 127.0.0.1:9001
E
}

start_s3() {
  local dir
  if ! running "$NAME-s3" || ! running "$NAME-s3-store"; then
    hack/tools.sh s3s-fs
    edge_image
    dir=$(stage "s3-$NAME")
    set_binaries "$dir" s3s-fs
    cp hack/images/s3/Dockerfile "$dir/"
    build_image repot/s3:dev "$dir"
    write_s3_config
    docker rm -f "$NAME-s3-store" "$NAME-s3" >/dev/null 2>&1 || true
    say "starting object store at $S3_IP:9000"
    docker run -d --name "$NAME-s3" --network "$NETWORK" --ip "$S3_IP" --restart unless-stopped \
      -v "$STATE/s3/haproxy.cfg:/etc/haproxy.cfg:ro" repot/edge:dev -f /etc/haproxy.cfg >/dev/null
    docker run -d --name "$NAME-s3-store" --network "container:$NAME-s3" --restart unless-stopped --user "$(id -u):$(id -g)" \
      -v "$STATE/s3/data:/data" repot/s3:dev --host 127.0.0.1 --port 9001 \
      --access-key "$NAME-landscape" --secret-key "$(cat "$STATE/s3/secret")" /data >/dev/null
  fi
  wait_for 60 "object store at $S3_IP answers (see: docker logs $NAME-s3-store)" answers "http://$S3_IP:9000/"
}

# Everything that others need to know, as shell assignments.
write_environment() {
  local cluster variable file=$STATE/landscape.env
  (umask 077 && : >"$file.new")
  {
    echo "# Written by hack/landscape.sh up $NAME. Contains credentials of this landscape only."
    echo "LANDSCAPE=$NAME"
    echo "LANDSCAPE_STATE=$STATE"
    for cluster in $CLUSTERS; do
      variable=$(echo "$cluster" | tr 'a-z-' 'A-Z_')
      echo "${variable}_CLUSTER=$(cluster_of "$cluster")"
      echo "${variable}_KUBECONFIG=$STATE/$cluster.kubeconfig"
      echo "${variable}_INTERNAL_KUBECONFIG=$STATE/$cluster.internal.kubeconfig"
      echo "${variable}_NODE=$(node_of "$cluster")"
      echo "${variable}_NODE_IP=$(node_ip "$cluster")"
      echo "${variable}_POD_CIDR=$(pod_cidr "$cluster")"
      echo "${variable}_SERVICE_CIDR=$(service_cidr "$cluster")"
    done
    echo "DNS_SERVER=$DNS_IP:53"
    echo "DNS_ZONE=$DNS_ZONE"
    echo "TSIG_KEY_NAME=$NAME-landscape"
    echo "TSIG_ALGORITHM=hmac-sha256"
    echo "TSIG_SECRET=$(cat "$STATE/dns/tsig.secret")"
    echo "S3_ENDPOINT=http://$S3_IP:9000"
    echo "S3_REGION=local"
    echo "S3_ACCESS_KEY_ID=$NAME-landscape"
    echo "S3_SECRET_ACCESS_KEY=$(cat "$STATE/s3/secret")"
    echo "S3_DATA=$STATE/s3/data"
  } >>"$file.new"
  mv "$file.new" "$file"
}
