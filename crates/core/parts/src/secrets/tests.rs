//! Tests the promises of the secrets manager without a cluster.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use api::{constants, gardencore::ShootState};
use jiff::{Timestamp, ToSpan};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use runtime::{Result, clock};
use serde_json::json;

use super::{
    config::{self, Config, Recipe},
    issue, make,
    plan::{self, Action, Existing, Missing},
};
use crate::shoot_state::{from_shoot_state, is_carried, to_shoot_state};
use placement::Names;

fn names() -> Names {
    crate::names_in_tests("100.96.0.0/11")
}

/// Runs the plan of the secrets manager on a map instead of a seed. Returns the names of the written Secrets.
fn run(
    existing: &mut Existing,
    state: Option<&ShootState>,
    missing: Missing,
    now: Timestamp,
) -> Result<Vec<String>> {
    let mut written = Vec::new();
    let carried = state.map(from_shoot_state).transpose()?.map(|all| {
        let named = all.into_iter().map(|secret| (secret.name_any(), secret));
        named.collect::<Existing>()
    });
    for config in config::table(&names()) {
        let secret = match plan::decide(&config, existing, carried.as_ref(), missing, now)? {
            Action::Keep => continue,
            Action::Restore(secret) => *secret,
            Action::Issue => make(&config, existing)?,
        };
        written.push(config.name.to_owned());
        existing.insert(config.name.to_owned(), secret);
    }
    Ok(written)
}

fn fresh() -> Existing {
    let mut existing = Existing::new();
    run(&mut existing, None, Missing::Issue, clock::now()).unwrap();
    existing
}

fn state_of(existing: &Existing) -> ShootState {
    let secrets: Vec<Secret> = existing.values().cloned().collect();
    let mut state: ShootState =
        serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": {}})).unwrap();
    state.spec.gardener = to_shoot_state(&secrets).unwrap();
    // The state as it is after an encoding by the API.
    serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap()
}

fn carried(existing: &Existing) -> BTreeMap<String, Secret> {
    existing
        .iter()
        .filter(|(_, secret)| is_carried(secret))
        .map(|(n, s)| (n.clone(), s.clone()))
        .collect()
}

fn text(existing: &Existing, secret: &str, key: &str) -> String {
    String::from_utf8(existing[secret].data.as_ref().unwrap()[key].0.clone()).unwrap()
}

#[test]
fn all_that_gep_7_names_is_carried_but_basic_auth_which_kubernetes_dropped() {
    let carried: Vec<_> = config::table(&names())
        .into_iter()
        .filter(|c| c.carried)
        .map(|c| c.name)
        .collect();
    for name in [
        "ca",
        "ca-client",
        "ca-etcd",
        "ca-front-proxy",
        "ca-kubelet",
        "ca-metrics-server",
        "etcd-encryption-secret",
        "kube-aggregator",
        "kube-apiserver",
        "service-account-key",
        "ssh-keypair",
        "static-token",
    ] {
        assert!(carried.contains(&name), "{name} must be carried");
    }
    // The Secrets of the tunnel to nodes were added later.
    for name in ["ca-vpn", "tunnel-agent"] {
        assert!(carried.contains(&name), "{name} must be carried (gardener#15442)");
    }
    assert_eq!(carried.len(), 14);
}

#[test]
fn a_secret_has_the_keys_of_its_recipe() {
    let existing = fresh();
    for config in config::table(&names()) {
        let data = existing[config.name].data.as_ref().unwrap();
        let keys: Vec<_> = data.keys().map(String::as_str).collect();
        assert_eq!(keys, config.recipe.keys(), "{}", config.name);
    }
}

#[test]
fn an_authority_stands_before_what_it_signs() {
    let table = config::table(&names());
    for (index, config) in table.iter().enumerate() {
        if let Recipe::Certificate { ca, .. } = &config.recipe {
            assert!(
                table[..index].iter().any(|before| before.name == *ca),
                "{} stands before {ca}",
                config.name
            );
        }
    }
}

#[test]
fn doing_it_twice_changes_nothing() {
    let mut existing = fresh();
    let before = existing.clone();
    assert_eq!(
        run(&mut existing, None, Missing::FromShootState, clock::now()).unwrap(),
        Vec::<String>::new()
    );
    assert_eq!(existing, before);
}

/// R7-23: carried Secrets are written unchanged, and derived Secrets are created from the carried Secrets.
#[test]
fn carried_secrets_are_byte_equal_on_another_seed_and_the_rest_is_derived() {
    let source = fresh();
    let mut destination = Existing::new();
    let written = run(
        &mut destination,
        Some(&state_of(&source)),
        Missing::FromShootState,
        clock::now(),
    )
    .unwrap();
    assert_eq!(written.len(), config::table(&names()).len());
    assert_eq!(carried(&destination), carried(&source));
    assert!(
        carried(&source)
            .values()
            .all(|secret| secret.immutable == Some(true))
    );
    // Both etcds of a move trust the same authority, so each etcd accepts derived certificates of both seeds.
    assert_eq!(
        text(&destination, "etcd-client", "ca.crt"),
        text(&source, "ca-etcd", "ca.crt")
    );
    assert_ne!(
        text(&destination, "etcd-client", "tls.key"),
        text(&source, "etcd-client", "tls.key")
    );
}

/// gardener#15442: a destination that made a new key, which pods in the shoot did not have.
#[test]
fn agents_of_the_tunnel_find_the_new_seed_with_the_key_they_have() {
    let source = fresh();
    let mut destination = Existing::new();
    let state = state_of(&source);
    run(
        &mut destination,
        Some(&state),
        Missing::FromShootState,
        clock::now(),
    )
    .unwrap();
    // The Secret in the shoot equals the Secret that the new seed would deploy there.
    assert_eq!(destination["tunnel-agent"].data, source["tunnel-agent"].data);
    // The server has a new key, signed by the authority that the agents trust.
    assert_ne!(
        text(&destination, "tunnel-server", "tls.key"),
        text(&source, "tunnel-server", "tls.key")
    );
    let trusted = text(&source, "tunnel-agent", "ca.crt");
    for name in ["tunnel-server", "kube-apiserver-tunnel"] {
        assert_eq!(text(&destination, name, "ca.crt"), trusted, "{name}");
    }
    // A shoot that is older than the tunnel gets keys; no further lost Secret is replaced.
    let mut older = state.clone();
    older
        .spec
        .gardener
        .retain(|entry| !["ca-vpn", "tunnel-agent"].contains(&entry.name.as_str()));
    let mut destination = Existing::new();
    run(
        &mut destination,
        Some(&older),
        Missing::FromShootState,
        clock::now(),
    )
    .unwrap();
    assert!(destination.contains_key("tunnel-agent"));
    assert_eq!(destination["ca"].data, source["ca"].data);
}

#[test]
fn a_trip_through_the_shoot_state_loses_nothing() {
    let mut secret = fresh()["ca"].clone();
    secret.type_ = Some("example.test/odd".into());
    secret.immutable = None;
    secret.metadata.namespace = Some("shoot--dev--web".into());
    secret
        .data
        .as_mut()
        .unwrap()
        .insert("binary".into(), k8s_openapi::ByteString(vec![0, 255, 128]));
    let state = state_of(&[("ca".to_owned(), secret.clone())].into());
    let back = from_shoot_state(&state).unwrap();
    assert_eq!(back.len(), 1);
    assert_eq!(
        (&back[0].data, &back[0].type_, back[0].immutable),
        (&secret.data, &secret.type_, None)
    );
    assert_eq!(back[0].labels(), secret.labels());
}

#[test]
fn what_is_not_to_be_carried_does_not_get_into_the_shoot_state() {
    let existing = fresh();
    let entries: Vec<_> = state_of(&existing)
        .spec
        .gardener
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert!(!entries.contains(&"etcd-server".to_owned()));
    assert_eq!(
        entries,
        carried(&existing).into_keys().collect::<Vec<_>>(),
        "in the order of names"
    );
}

#[test]
fn nothing_is_made_in_place_of_a_carried_secret_that_is_lost() {
    let mut state = state_of(&fresh());
    state.spec.gardener.retain(|entry| entry.name != "ca-etcd");
    let mut destination = Existing::new();
    let error = run(
        &mut destination,
        Some(&state),
        Missing::FromShootState,
        clock::now(),
    )
    .unwrap_err();
    assert_eq!(error.class(), "Config");
    assert!(
        error
            .to_string()
            .starts_with("Secret ca-etcd is not in the shoot's namespace and the ShootState does not")
    );
    assert!(!destination.contains_key("ca-etcd"));

    let none = run(&mut Existing::new(), None, Missing::FromShootState, clock::now()).unwrap_err();
    assert!(none.to_string().contains("there is no ShootState"), "{none}");
}

#[test]
fn a_shoot_state_that_does_not_decode_is_told_without_its_content() {
    let mut state = state_of(&fresh());
    let broken = state
        .spec
        .gardener
        .iter_mut()
        .find(|entry| entry.name == "service-account-key")
        .unwrap();
    broken.data = json!({"data": {"id_rsa": "not base64: hunter2"}}).into();
    let error = run(
        &mut Existing::new(),
        Some(&state),
        Missing::FromShootState,
        clock::now(),
    )
    .unwrap_err()
    .to_string();
    assert!(
        error.contains("service-account-key") && error.contains("ShootState web"),
        "{error}"
    );
    assert!(!error.contains("hunter2"), "{error}");
    assert!(from_shoot_state(&state).is_err());
}

#[test]
fn derived_secrets_follow_their_authority_and_end_in_time() {
    let mut existing = fresh();
    let other = fresh();
    existing.insert("ca-etcd".into(), other["ca-etcd"].clone());
    let written = run(&mut existing, None, Missing::FromShootState, clock::now()).unwrap();
    assert_eq!(written, ["etcd-server", "etcd-client"]);

    let late = clock::now() + (24 * 345).hours();
    let written = run(&mut existing, None, Missing::FromShootState, late).unwrap();
    let derived: Vec<_> = config::table(&names())
        .into_iter()
        .filter(|c| !c.carried)
        .map(|c| c.name)
        .collect();
    assert_eq!(
        written, derived,
        "all derived ones are made anew shortly before they end, and no carried one"
    );
}

#[test]
fn every_secret_says_who_manages_it() {
    for (name, secret) in fresh() {
        let labels = secret.labels();
        assert_eq!(labels[constants::SECRET_NAME], name);
        assert_eq!(labels[constants::MANAGED_BY], constants::SECRETS_MANAGER);
        assert_eq!(labels[constants::MANAGER_IDENTITY], "gardenlet");
        assert!(
            labels.values().all(|value| value.len() <= 63),
            "{name}: a label is too long"
        );
    }
}

#[test]
fn certificates_are_signed_by_their_authority_and_serve_their_names() {
    let existing = fresh();
    for config in config::table(&names()) {
        if let Config {
            name,
            recipe:
                Recipe::Certificate {
                    ca,
                    common_name,
                    serves,
                    ..
                },
            ..
        } = config
        {
            let leaf = parse(&text(&existing, name, "tls.crt"));
            let (_, leaf) = x509_parser::parse_x509_certificate(&leaf).unwrap();
            let authority = parse(&text(&existing, ca, "ca.crt"));
            let (_, authority) = x509_parser::parse_x509_certificate(&authority).unwrap();
            assert_eq!(leaf.issuer(), authority.subject(), "{name}");
            assert!(authority.is_ca());
            assert!(
                leaf.subject().to_string().contains(&format!("CN={common_name}")),
                "{name}"
            );
            let names = leaf
                .subject_alternative_name()
                .unwrap()
                .map_or(0, |names| names.value.general_names.len());
            assert_eq!(names, serves.len(), "{name}");
        }
    }
}

#[test]
fn the_api_is_served_under_every_name_it_is_asked_by() {
    let table = config::table(&names());
    let api = table
        .iter()
        .find(|config| config.name == "kube-apiserver")
        .unwrap();
    let Recipe::Certificate { serves, .. } = &api.recipe else {
        panic!("no certificate")
    };
    for name in [
        "localhost",
        "127.0.0.1",
        "100.64.0.1",
        "kubernetes",
        "kubernetes.default.svc.cluster.local",
        "kube-apiserver",
        "kube-apiserver.shoot--dev--web.svc",
        "api.web.dev.internal.example.test",
        "api.web.example.test",
    ] {
        assert!(serves.contains(&name.to_owned()), "{name}");
    }
}

#[test]
fn keys_and_files_have_the_form_that_their_readers_want() {
    let existing = fresh();
    assert!(text(&existing, "service-account-key", "id_rsa").starts_with("-----BEGIN EC PRIVATE KEY-----"));
    assert!(text(&existing, "ssh-keypair", "id_rsa").starts_with("-----BEGIN OPENSSH PRIVATE KEY-----"));
    assert!(text(&existing, "ssh-keypair", "id_rsa.pub").starts_with("ssh-ed25519 "));
    let token = text(&existing, "static-token", "static_tokens.csv");
    let fields: Vec<_> = token.trim_end().split(',').collect();
    assert_eq!(
        (fields.len(), fields[0].len(), fields[1]),
        (3, 64, "health-check")
    );
    let encryption: serde_json::Value = serde_yaml_ng::from_str(&text(
        &existing,
        "etcd-encryption-secret",
        "encryption-configuration.yaml",
    ))
    .unwrap();
    assert_eq!(
        encryption["resources"][0]["providers"][0]["secretbox"]["keys"][0]["name"],
        "key1"
    );
    let kubeconfig = text(&existing, "kube-scheduler", "kubeconfig");
    assert!(
        kubeconfig.contains("server: https://kube-apiserver\n"),
        "{kubeconfig}"
    );
}

/// kube-apiserver reaches etcd-events under a name of etcd-main, and TLS passes the gate untouched (decision
/// 36). The names must not depend on the seed's setting, because an existing certificate is not issued again
/// for a changed setting.
#[test]
fn the_certificate_of_both_etcds_holds_the_names_of_both() {
    let table = config::table(&names());
    let server = table.iter().find(|config| config.name == "etcd-server").unwrap();
    let Recipe::Certificate { serves, .. } = &server.recipe else {
        panic!("etcd-server is no certificate");
    };
    for name in ["etcd-main-client", "etcd-events-client"] {
        assert!(serves.iter().any(|served| served == name), "{name}: {serves:?}");
    }
}

#[test]
fn an_authority_that_does_not_parse_is_told() {
    let broken: issue::Data = [
        ("ca.crt".to_owned(), b"x".to_vec()),
        ("ca.key".to_owned(), b"y".to_vec()),
    ]
    .into();
    let error = issue::certificate("x", None, &[], 1, ("ca-etcd", &broken)).unwrap_err();
    assert!(
        error.to_string().contains("Secret ca-etcd does not hold"),
        "{error}"
    );
}

fn parse(certificate: &str) -> Vec<u8> {
    pem::parse(certificate).unwrap().into_contents()
}

/// R7-10, R7-11: the table of docs/look-up/control-plane-parts.md equals the table of the code, and has the
/// eleven Secrets of GEP-7.
#[test]
fn the_documentation_has_all_secrets_and_the_eleven_of_gep_7() {
    let page =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/look-up/control-plane-parts.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, table) = page.split_once("| Secret | of the eleven | here |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| -> Vec<String> {
        let cells = row.trim_matches('|').split(" | ").map(str::trim);
        cells.map(|cell| cell.trim_matches('`').to_owned()).collect()
    };
    let rows: Vec<Vec<String>> = rows.map(cells).collect();
    let named = |here: &str| -> Vec<&str> {
        let rows = rows.iter().filter(|row| row[2] == here);
        let mut found: Vec<&str> = rows.map(|row| row[0].as_str()).collect();
        found.sort_unstable();
        found
    };
    let coded = |carried: bool| -> Vec<&str> {
        let all = config::table(&names()).into_iter();
        let mut found: Vec<&str> = all.filter(|c| c.carried == carried).map(|c| c.name).collect();
        found.sort_unstable();
        found
    };
    assert_eq!(named("carried"), coded(true));
    assert_eq!(named("derived"), coded(false));
    assert_eq!(named("not there"), ["kube-apiserver-basic-auth"]);
    assert_eq!(rows.iter().filter(|row| row[1] == "yes").count(), 11);
    assert!(
        rows.iter().all(|row| row.len() == 4 && row[3].len() > 8),
        "a row says nothing"
    );
}
