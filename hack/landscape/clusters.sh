# Sourced: the kind clusters of a landscape, and the roads between their pods.
# shellcheck shell=bash

write_kind_config() {
  local cluster=$1 number
  mkdir -p "$STATE/kind"
  cat >"$STATE/kind/$cluster.yaml" <<E
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
networking:
  disableDefaultCNI: true
  podSubnet: $(pod_cidr "$cluster")
  serviceSubnet: $(service_cidr "$cluster")
# kubeadm would wait four minutes. Four API servers that start at once on a busy machine may need longer.
kubeadmConfigPatches:
- |
  kind: ClusterConfiguration
  apiServer:
    timeoutForControlPlane: 7m0s
nodes:
E
  {
    write_node "$cluster" 0 control-plane
    case $cluster in
      garden) write_encryption ;;
      infra)
        write_audit
        for ((number = 1; number < HOSTS; number++)); do write_node infra "$number" worker; done
        ;;
    esac
  } >>"$STATE/kind/$cluster.yaml"
}

# write_node CLUSTER NUMBER ROLE: pods keep their address on the way to other pods, also of other clusters: no masquerading by the
# plugin.
write_node() {
  local file=$STATE/kind/$1-$2.conflist
  cat >"$file" <<E
{"cniVersion": "0.3.1", "name": "repot", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam-state",
    "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": "$(node_pod_cidr "$1" "$2")"}]]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
E
  cat <<E
- role: $3
  extraMounts:
  - hostPath: $file
    containerPath: /etc/cni/net.d/10-repot.conflist
    readOnly: true
E
}

# Tests ask who has changed anything in the cloud: tests/src/external_changes.rs.
write_audit() {
  local policy=/etc/kubernetes/audit.yaml logs=/var/log/kubernetes
  cp hack/landscape/audit.yaml "$STATE/kind/audit.yaml"
  cat <<E
  - hostPath: $STATE/kind/audit.yaml
    containerPath: $policy
    readOnly: true
  kubeadmConfigPatches:
  - |
    kind: ClusterConfiguration
    apiServer:
      extraArgs:
        audit-policy-file: $policy
        audit-log-path: $logs/audit.log
      extraVolumes:
      - name: audit-policy
        hostPath: $policy
        mountPath: $policy
        pathType: File
        readOnly: true
      - name: audit-log
        hostPath: $logs
        mountPath: $logs
        pathType: DirectoryOrCreate
E
}

# The garden holds the keys of all shoots, encrypted (R7-25). The key stays in the landscape's folder, and goes with it. The history of
# objects does not fill the garden's etcd: docs/operate/install-requirements.md has the reasons of both flags.
write_encryption() {
  local folder=$STATE/kind/encryption inside=/etc/kubernetes/encryption
  (umask 077 && mkdir -p "$folder")
  [ -s "$folder/configuration.yaml" ] ||
    (umask 077 && sed "s#KEY\$#$(random_key)#" hack/landscape/encryption.yaml >"$folder/configuration.yaml")
  cat <<E
  - hostPath: $folder
    containerPath: $inside
    readOnly: true
  kubeadmConfigPatches:
  - |
    kind: ClusterConfiguration
    apiServer:
      extraArgs:
        encryption-provider-config: $inside/configuration.yaml
        etcd-compaction-interval: 1m
      extraVolumes:
      - name: encryption
        hostPath: $inside
        mountPath: $inside
        pathType: Directory
        readOnly: true
    etcd:
      local:
        extraArgs:
          quota-backend-bytes: "8589934592"
E
}

create_network() {
  docker network inspect "$NETWORK" >/dev/null 2>&1 && return
  docker network create --subnet "$SUBNET.0.0/16" --ip-range "$SUBNET.1.0/24" --gateway "$SUBNET.0.1" "$NETWORK" >/dev/null ||
    fail "the docker network $SUBNET.0.0/16 could not be made; REPOT_SUBNET_PREFIX=A.B chooses another"
}

# remove_cluster CLUSTER: what is left of it. That there is nothing is success, and what stands in the way the next creation says.
remove_cluster() {
  "$REPOT_BIN/kind" delete cluster --name "$(cluster_of "$1")" --kubeconfig "$STATE/$1.kubeconfig" >/dev/null 2>&1 || true
}

# create_once CLUSTER IMAGE: kind makes the cluster; where it cannot, the log ends with what its node says, and the node goes.
create_once() {
  local cluster=$1 image=$2 name log=$LOG/kind-$1.log
  name=$(cluster_of "$cluster")
  remove_cluster "$cluster"
  KIND_EXPERIMENTAL_DOCKER_NETWORK=$NETWORK logged "$log" timeout 900 "$REPOT_BIN/kind" create cluster --retain \
    --name "$name" --image "$image" --config "$STATE/kind/$cluster.yaml" --kubeconfig "$STATE/$cluster.kubeconfig" && return
  # kubeadm says only that it waited in vain; the kubelet knows for what, if its node was started at all.
  {
    uptime
    grep -H . /proc/pressure/{cpu,io,memory}
    on_node "$cluster" ctr -n k8s.io tasks ls
    # shellcheck disable=SC2016  # The inner shell expands it.
    on_node "$cluster" sh -c 'for log in /var/log/containers/*.log; do echo "$log"; tail -n 12 "$log"; done'
    on_node "$cluster" journalctl -u kubelet -u containerd --no-pager -n 60 -o cat
  } 2>&1 | cut -c1-400 | tee -a "$log" >&2 || true
  remove_cluster "$cluster"
  return 1
}

create_cluster() {
  local cluster=$1 image=$2
  if ! running "$(node_of "$cluster")"; then
    write_kind_config "$cluster"
    say "creating cluster $cluster"
    if ! create_once "$cluster" "$image"; then
      # kubeadm waits some minutes and not longer. All clusters begin at once, which a busy machine may be too slow for; so the
      # second attempt has the machine to itself: one after the other, while the others are there or wait, too.
      say "cluster $cluster could not be created; once more, alone"
      mv "$LOG/kind-$cluster.log" "$LOG/kind-$cluster.first.log"
      (flock 7 && create_once "$cluster" "$image") 7>"$STATE/once-more" ||
        fail "cluster $cluster could not be created; its logs: $LOG/kind-$cluster.first.log, $LOG/kind-$cluster.log"
    fi
  fi
  (umask 077 && "$REPOT_BIN/kind" get kubeconfig --name "$(cluster_of "$cluster")" >"$STATE/$cluster.kubeconfig" 2>/dev/null
    # The same, for pods of other clusters: by the node's address, which its certificate names.
    sed "s#server: https://.*#server: https://$(node_ip "$cluster"):6443#" "$STATE/$cluster.kubeconfig" \
      >"$STATE/$cluster.internal.kubeconfig")
}

# Roads that a restarted node forgets; so each `up` lays them again.
connect() {
  local cluster=$1 number node rule other peer
  # Its kube-proxy leads them to the machines of shoots; the node only has to take them for its own.
  [ "$cluster" != infra ] || on_node infra ip route replace local "$LOAD_BALANCERS" dev lo
  for number in $(nodes "$cluster"); do
    node=$(node_of "$cluster" "$number")
    rule=(POSTROUTING -s "$(node_pod_cidr "$cluster" "$number")" ! -d 10.0.0.0/8 -j MASQUERADE)
    in_container "$node" iptables -t nat -C "${rule[@]}" 2>/dev/null || in_container "$node" iptables -t nat -A "${rule[@]}"
    for other in $CLUSTERS; do for peer in $(nodes "$other"); do
      [ "$node" = "$(node_of "$other" "$peer")" ] ||
        in_container "$node" ip route replace "$(node_pod_cidr "$other" "$peer")" via "$(node_ip "$other" "$peer")"
    done; done
  done
}

# The clusters' own DNS asks the landscape's server for names of its zone, and does not keep the answers.
forward_zone() {
  local cluster=$1 corefile
  # An API server that has just started may refuse what its administrator asks for.
  wait_for 300 "the DNS configuration of $cluster can be read" at "$cluster" -n kube-system get configmap coredns
  corefile=$(at "$cluster" -n kube-system get configmap coredns -o jsonpath='{.data.Corefile}')
  [ -n "$corefile" ] || fail "the DNS configuration of $cluster cannot be read"
  case $corefile in *"$DNS_ZONE:53"*) return ;; esac
  corefile=$(printf '%s\n%s:53 {\n    errors\n    forward . %s\n}\n' "$corefile" "$DNS_ZONE" "$DNS_IP")
  at "$cluster" -n kube-system create configmap coredns --from-literal="Corefile=$corefile" --dry-run=client -o yaml |
    at "$cluster" apply --server-side --force-conflicts --field-manager landscape -f - >/dev/null
  # One node needs one; the annotation makes new pods, which read the new file at once.
  at "$cluster" -n kube-system patch deployment coredns --type merge \
    -p "{\"spec\":{\"replicas\":1,\"template\":{\"metadata\":{\"annotations\":{\"landscape/zone\":\"$DNS_ZONE\"}}}}}" >/dev/null
}

wait_cluster() {
  local cluster=$1
  at "$cluster" wait --for=condition=Ready nodes --all --timeout=300s >/dev/null || fail "the node of $cluster is not ready"
  at "$cluster" -n kube-system rollout status deployment coredns --timeout=300s >/dev/null || fail "CoreDNS of $cluster is not ready"
}
