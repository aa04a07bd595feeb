//! The documented commands that the test of commands leaves out.

/// Commands that are not run, and why. Each must stand in the documentation.
pub const NOT_RUN: &[(&str, &str)] = &[
    (
        r#"kubectl -n garden-dev patch shoot demo --type=merge -p '{"metadata":{"finalizers":null}}'"#,
        "the Shoot ends, and later commands need the Shoot",
    ),
    (
        r#"kubectl patch seed seed-a --type=merge -p '{"metadata":{"finalizers":null}}'"#,
        "the Seed has no finalizer here, so it is gone already",
    ),
    (
        r#"kubectl -n garden-dev get secret demo.kubeconfig -o jsonpath='{.data.kubeconfig}' | base64 -d >"$kubeconfig""#,
        "the gardenlet writes this Secret, and no gardenlet runs here",
    ),
    (
        r#"kubectl -n garden-dev get secret demo.kubeconfig --show-managed-fields -o jsonpath='{range .metadata.managedFields[*]}{.time} {.manager}{"\n"}{end}'"#,
        "the gardenlet writes this Secret, and no gardenlet runs here",
    ),
    (
        "kubectl -n garden-dev edit shoot demo --subresource=status",
        "an editor needs a terminal",
    ),
    (
        "kubectl -n shoot--dev--demo logs deploy/kube-controller-manager",
        "logs are read from a kubelet",
    ),
    (
        "kubectl -n extension-provider-local logs deploy/provider-local",
        "logs are read from a kubelet",
    ),
    (
        "kubectl -n kube-system get pods -l k8s-app=tunnel-agent -o wide",
        "they are pods of a shoot with nodes",
    ),
    (
        "kubectl -n kube-system get pods -l k8s-app=api-proxy -o wide",
        "they are pods of a shoot with nodes",
    ),
    (
        "kubectl -n default get endpointslice kubernetes",
        "it is an object of a shoot with nodes",
    ),
    (
        "kubectl -n kube-system get pods -l k8s-app=tunnel-agent",
        "they are pods of a shoot with nodes",
    ),
    (
        r#"helm get values seed -n garden -o yaml | diff - "$values/$seed.values.yaml""#,
        "diff fails where the files differ",
    ),
    (
        r#"helm get values seed -n garden -o yaml >"$values/$seed.values.yaml""#,
        "the folder has the examples of the documentation, which the command writes over",
    ),
    (
        r#"helm get values garden -n garden -o yaml >"$values/garden.values.yaml""#,
        "the folder has the examples of the documentation, which the command writes over",
    ),
    (
        r#"helm get values seed -n garden --revision "$revision""#,
        "the operator chooses the revision",
    ),
    (
        r#"helm rollback seed "$revision" -n garden"#,
        "tests/e2e_upgrade.rs rolls a seed back, and later commands need the present charts",
    ),
    (
        r#"kubectl -n garden delete secret "sh.helm.release.v1.garden.v$revision""#,
        "no upgrade of the garden hangs here",
    ),
    (
        "helm registry login registry.example.org",
        "there is no registry with a login",
    ),
    (
        "kubectl krew install --manifest=plugin/krew.yaml --archive=plugin/kubectl-repot-v0.1.0-linux-amd64.tar.gz",
        "krew is a program of third parties",
    ),
    (
        r#"kubectl -n "$namespace" get secret "$1" -o json |"#,
        "it is a line of a function",
    ),
    ("kubectl replace --force -f -", "it is a line of a function"),
    (
        "kubectl -n garden logs deployment/garden-controller-manager --tail=100 | grep 'space exceeded'",
        "logs are read from a kubelet",
    ),
    (
        "kubectl -n garden logs deployment/garden-controller-manager --tail=100",
        "logs are read from a kubelet",
    ),
    (
        "kubectl -n garden port-forward pod/NAME 2728:2728 & sleep 2; curl -s localhost:2728/readyz; kill $!",
        "a port is forwarded by a kubelet",
    ),
    (
        r#"kubectl cordon -l "topology.kubernetes.io/zone=$zone""#,
        "the servers here have no Nodes",
    ),
    (
        r#"kubectl uncordon -l "topology.kubernetes.io/zone=$zone""#,
        "the servers here have no Nodes",
    ),
    (
        "kubectl taint node NODE node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
        "the servers here have no Nodes",
    ),
    (
        "kubectl taint node NODE node.kubernetes.io/out-of-service-",
        "the servers here have no Nodes",
    ),
    (
        "kubectl -n NAMESPACE delete pod NAME --wait=false",
        "Deployments here have no Pods",
    ),
    (
        r#"kubectl -n kube-system exec "etcd-$node" -- etcdctl --command-timeout=10m \"#,
        "it is a line of a function",
    ),
    (
        "kubectl -n garden-dev delete shoot demo --timeout=30m",
        "no gardenlet removes the finalizer here",
    ),
    (
        "kubectl delete project dev --timeout=10m",
        "garden-controller-manager removes the finalizer, and does not run here",
    ),
    (
        "kubectl delete seed seed-a seed-b --timeout=10m",
        "later commands need the Seeds",
    ),
    (
        "kubectl delete namespace gardener-system-seed-lease garden cloud --ignore-not-found",
        "later commands need the namespaces",
    ),
    (
        "kubectl delete -f crds/garden.yaml",
        "later commands need the kinds",
    ),
    (
        "kubectl delete namespace garden garden-exposure extension-provider-local --ignore-not-found",
        "later commands need the namespaces",
    ),
    (
        "kubectl delete -f crds/seed.yaml",
        "later commands need the kinds",
    ),
    (
        "kubectl -n kube-system exec etcd-NODE -- etcdctl --cacert=/etc/kubernetes/pki/etcd/ca.crt --cert=/etc/kubernetes/pki/etcd/server.crt --key=/etc/kubernetes/pki/etcd/server.key get --print-value-only /registry/secrets/default/probe | head -c 8",
        "etcd is no Pod here; tests/operations/encryption.rs reads values from etcd",
    ),
    (
        "kubectl -n kube-system exec etcd-NODE -- etcdctl --cacert=/etc/kubernetes/pki/etcd/ca.crt --cert=/etc/kubernetes/pki/etcd/server.crt --key=/etc/kubernetes/pki/etcd/server.key snapshot save /var/lib/etcd/before-upgrade.db",
        "etcd is no Pod here",
    ),
    (
        "kubectl run dns --rm -i --restart=Never --image=busybox:1.36 -- nslookup -type=TXT probe.internal.repot.example.org",
        "the servers here have no Nodes",
    ),
    (
        r#"kubectl run pull --rm -i --restart=Never --image="$registry/repot/edge:v$version" --command -- /usr/sbin/haproxy -v"#,
        "the servers here have no Nodes",
    ),
    (
        r#"kubectl run pull --rm -i --restart=Never --image="$registry/kube-apiserver:v1.34.4" --command -- kube-apiserver --version"#,
        "the servers here have no Nodes",
    ),
    (
        "kubectl run garden --rm -i --restart=Never --image=busybox:1.36 -- wget -qO- --no-check-certificate https://garden.example.org:6443/version",
        "the servers here have no Nodes",
    ),
    (
        "kubectl -n kube-system get pod -l component=kube-controller-manager -o yaml | grep -E 'cluster-cidr|service-cluster-ip-range'",
        "the servers here are no Pods",
    ),
    (
        "kubectl -n kube-system edit configmap coredns",
        "an editor needs a terminal",
    ),
];
