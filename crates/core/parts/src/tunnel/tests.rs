//! Tests of the objects of the tunnel.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::{
    from_json,
    secrets::{
        config::{CA_VPN, TUNNEL_AGENT, TUNNEL_CLIENT},
        issue::Data,
    },
};

fn keys() -> Data {
    ["ca.crt", "tls.crt", "tls.key"]
        .map(|file| (file.to_owned(), file.as_bytes().to_vec()))
        .into()
}

fn objects() -> Vec<Value> {
    let names = agent::Names {
        front: "api.web.dev.internal.example.test",
        server: "tunnel.shoot--dev--web.svc",
    };
    agent::objects("repot/tunnel:dev", &names, &keys())
}

#[test]
fn agents_need_nothing_that_they_carry() {
    let all = objects();
    let agents = all.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let pod = &agents["spec"]["template"]["spec"];
    assert_eq!(
        pod["dnsPolicy"], "Default",
        "CoreDNS is repaired through the tunnel"
    );
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(
        pod["hostNetwork"],
        Value::Null,
        "the network of any pod, and no more"
    );
    let may = &pod["containers"][0]["securityContext"];
    assert_eq!(may["readOnlyRootFilesystem"], true);
    assert_eq!(may["capabilities"]["drop"][0], "ALL");
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    // An agent keeps running while the second agent is replaced.
    assert_eq!(agents["spec"]["replicas"], 2);
    assert_eq!(agents["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], 0);
}

#[test]
fn agents_have_their_key_and_not_the_authoritys() {
    let all = objects();
    let secret = all.iter().find(|object| object["kind"] == "Secret").unwrap();
    let files: Vec<_> = secret["data"].as_object().unwrap().keys().collect();
    assert_eq!(files, ["ca.crt", "tls.crt", "tls.key"]);
    let mut with_authority = keys();
    with_authority.insert("ca.key".into(), b"secret".to_vec());
    let names = agent::Names {
        front: "a",
        server: "b",
    };
    let text = format!("{:?}", agent::objects("i", &names, &with_authority));
    assert!(!text.contains("ca.key"));
}

#[test]
fn the_api_server_is_told_where_it_asks() {
    let map = egress::config_map("shoot--dev--web").unwrap();
    let text = map.data.unwrap().into_values().next().unwrap();
    let config: Value = serde_yaml_ng::from_str(&text).unwrap();
    let selection = &config["egressSelections"][0];
    assert_eq!(selection["name"], "cluster");
    let tcp = &selection["connection"]["transport"]["tcp"];
    assert_eq!(tcp["url"], "https://tunnel.shoot--dev--web.svc:8132");
    // Each named file is mounted.
    let mounts: Vec<_> = FILES.iter().map(|files| files.name()).collect();
    for path in tcp["tlsConfig"].as_object().unwrap().values() {
        let object = path.as_str().unwrap().split('/').rev().nth(1).unwrap();
        assert!(mounts.contains(&object), "{object}");
    }
    assert!(mounts.contains(&CA_VPN) && mounts.contains(&TUNNEL_CLIENT) && mounts.contains(&egress::NAME));
    assert!(!mounts.contains(&TUNNEL_AGENT));
}

/// The seed's SNI proxy routes agents to this port.
#[test]
fn the_service_has_the_port_that_the_front_knows() {
    let front = include_str!("../../../../../charts/seed/files/haproxy.cfg");
    let service: Service = from_json(serde_json::to_value(server::service("n").unwrap()).unwrap()).unwrap();
    let ports = service.spec.unwrap().ports.unwrap();
    let agents = ports
        .iter()
        .find(|port| port.name.as_deref() == Some("agents"))
        .unwrap();
    assert!(front.contains(&format!("server tunnel 0.0.0.0:{}", agents.port)));
}
