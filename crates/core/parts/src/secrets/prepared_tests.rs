//! The share of a preparation holds the keys of a second API server, and no key of an authority.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use api::{
    constants::{MANAGER_IDENTITY, PERSIST, PREPARED_BY_GRANT},
    gardencore::shoot::MigrationPreparation,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use runtime::clock;
use serde_json::json;
use sidecar_protocol::PREPARED_CLIENT_UNIT;
use x509_parser::certificate::X509Certificate;

use super::{
    config::{self, Config, PreparedShare, Recipe},
    etcd_serial::EtcdSerial,
    make,
    plan::Existing,
    prepared::{ShareData, issue_share, secrets_of_share, share_keys},
};
use crate::shoot_state::is_carried;

const POLICY: &str =
    include_str!("../../../../../charts/garden/files/policies/gardenlet-project-namespace.yaml");

/// Epoch and expiry.
const GRANT: &str = "3-1767225600";

fn table() -> Vec<Config> {
    config::table(&crate::names_in_tests("100.96.0.0/11"))
}

fn source() -> Existing {
    let mut existing = Existing::new();
    for config in table() {
        let secret = make(&config, &existing).unwrap();
        existing.insert(config.name.to_owned(), secret);
    }
    existing
}

fn end() -> Timestamp {
    let end = clock::now() + SignedDuration::from_hours(5);
    Timestamp::from_second(end.as_second()).unwrap()
}

fn granted(expiry: Timestamp) -> MigrationPreparation {
    let expiry = expiry.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    crate::from_json(json!({
        "uid": "u", "source": "a", "destination": "b", "epoch": 3, "expiry": expiry,
    }))
    .unwrap()
}

/// Each line of the table: a new line has no share by default.
#[test]
fn no_key_of_an_authority_is_in_a_share() {
    for config in table() {
        let name = config.name;
        assert_eq!(config.prepared, config::prepared_share(name), "{name}");
        let keys = config::prepared_keys(name);
        assert!(!keys.contains(&"ca.key"), "{name}");
        assert!(!keys.contains(&"kubeconfig"), "{name}");
        match config.prepared {
            PreparedShare::Nothing => assert!(keys.is_empty(), "{name}"),
            PreparedShare::Authority => {
                assert_eq!(config.recipe, Recipe::CertificateAuthority, "{name}");
                assert_eq!(keys, ["ca.crt"], "{name}");
            }
            PreparedShare::Content => {
                assert!(config.carried, "{name}");
                let is_signed = matches!(config.recipe, Recipe::Certificate { .. });
                assert!(
                    !is_signed && config.recipe != Recipe::CertificateAuthority,
                    "{name}"
                );
                assert_eq!(keys, config.recipe.keys(), "{name}");
            }
            PreparedShare::OwnCertificate => {
                let is_signed = matches!(config.recipe, Recipe::Certificate { .. });
                assert!(is_signed, "{name}");
                assert_eq!(keys, config.recipe.keys(), "{name}");
            }
        }
    }
    // Credentials of the cloud and of buckets have no line, and DNS credentials are in no such namespace.
    for name in config::OF_SEED {
        assert_eq!(config::prepared_share(name), PreparedShare::Nothing, "{name}");
    }
}

/// The values, besides the names of the keys.
#[test]
fn no_private_key_of_the_source_but_the_common_keys_is_in_a_share() {
    let existing = source();
    let share = issue_share(&table(), &existing, &granted(end())).unwrap();
    let values: BTreeSet<_> = share.values().map(|value| value.0.as_slice()).collect();
    for config in table() {
        let data = existing[config.name].data.as_ref().unwrap();
        for (key, value) in data {
            let is_public = matches!(key.as_str(), "ca.crt" | "id_rsa.pub");
            let is_common = config.prepared == PreparedShare::Content;
            let is_shared = values.contains(value.0.as_slice());
            assert!(!is_shared || is_public || is_common, "{} {key}", config.name);
        }
    }
    let keys: BTreeSet<_> = share.keys().cloned().collect();
    assert_eq!(keys, share_keys().collect::<BTreeSet<_>>());
}

/// The right of a withdrawn destination ends with the grant at the latest.
#[test]
fn the_certificates_of_a_share_end_with_the_grant() {
    let until = end();
    let share = issue_share(&table(), &source(), &granted(until)).unwrap();
    let certificates = share.iter().filter(|(key, _)| key.ends_with("_tls.crt"));
    let ends: Vec<_> = certificates
        .map(|(_, pem)| {
            let (_, pem) = x509_parser::pem::parse_x509_pem(&pem.0).unwrap();
            let leaf = pem.parse_x509().unwrap();
            assert!(!leaf.is_ca());
            leaf.validity().not_after.timestamp()
        })
        .collect();
    assert_eq!(ends, [until.as_second(); 5]);
}

/// Whether the certificate has the usage of clients, and of servers.
fn usages(leaf: &X509Certificate<'_>) -> (bool, bool) {
    let usage = leaf.extended_key_usage().unwrap().unwrap();
    (usage.value.client_auth, usage.value.server_auth)
}

/// The gate refuses a marked certificate, unless the source lists the serial number of the grant.
#[test]
fn the_certificate_for_etcd_has_the_mark_and_the_serial_number_of_the_grant() {
    let granted = granted(end());
    let existing = source();
    let share = issue_share(&table(), &existing, &granted).unwrap();
    for (key, pem) in share.iter().filter(|(key, _)| key.ends_with("_tls.crt")) {
        let (_, pem) = x509_parser::pem::parse_x509_pem(&pem.0).unwrap();
        let leaf = pem.parse_x509().unwrap();
        let units: Vec<_> = leaf
            .subject()
            .iter_organizational_unit()
            .map(|unit| unit.as_str().unwrap().to_owned())
            .collect();
        if key == "etcd-client_tls.crt" {
            let serial = crate::hex::hex(leaf.raw_serial());
            assert_eq!(serial, EtcdSerial::from_grant(&granted).to_hex());
            assert_eq!(units, [PREPARED_CLIENT_UNIT]);
            assert_eq!(usages(&leaf), (false, true), "{key}");
        } else {
            assert!(units.is_empty(), "{key}");
            assert!(usages(&leaf).0, "{key}");
        }
    }
    // The certificates of the shoot have no mark: no list refuses an owner.
    for (name, secret) in &existing {
        let data = secret.data.as_ref().unwrap();
        for key in ["tls.crt", "ca.crt"] {
            let Some(pem) = data.get(key) else { continue };
            let (_, pem) = x509_parser::pem::parse_x509_pem(&pem.0).unwrap();
            let own = pem.parse_x509().unwrap();
            assert_eq!(own.subject().iter_organizational_unit().count(), 0, "{name}");
        }
    }
}

#[test]
fn two_grants_have_different_serial_numbers() {
    let first = granted(end());
    let mut all = BTreeSet::from([EtcdSerial::from_grant(&first).to_hex()]);
    let changes: [fn(&mut MigrationPreparation); 5] = [
        |granted| granted.uid = "v".to_owned(),
        |granted| granted.source = "c".to_owned(),
        |granted| granted.destination = "c".to_owned(),
        |granted| granted.epoch = 4,
        |granted| granted.expiry = self::granted(end() + SignedDuration::from_secs(1)).expiry,
    ];
    for change in changes {
        let mut other = first.clone();
        change(&mut other);
        all.insert(EtcdSerial::from_grant(&other).to_hex());
    }
    assert_eq!(all.len(), 6, "{all:?}");
    assert!(all.iter().all(|serial| serial.len() == 40), "{all:?}");
}

#[test]
fn a_share_is_issued_of_all_keys_or_not_at_all() {
    let mut existing = source();
    existing.remove(config::CA_VPN);
    let why = issue_share(&table(), &existing, &granted(end()))
        .unwrap_err()
        .to_string();
    assert!(why.contains("Secret ca-vpn is not there yet"), "{why}");
    let mut share = issue_share(&table(), &source(), &granted(end())).unwrap();
    share.remove("ca-etcd_ca.crt");
    let why = secrets_of_share(&share, "ns", GRANT).unwrap_err().to_string();
    assert!(why.contains("has left ca-etcd_ca.crt out"), "{why}");
}

/// A hostile source adds the key of an authority, or a Secret.
#[test]
fn the_destination_makes_the_secrets_of_the_table_alone() {
    let mut share: ShareData = issue_share(&table(), &source(), &granted(end())).unwrap();
    for key in ["ca-etcd_ca.key", "cloudprovider_key", "gardenlet_kubeconfig", "x"] {
        share.insert(key.to_owned(), share["ca-etcd_ca.crt"].clone());
    }
    let secrets: BTreeMap<String, Secret> = secrets_of_share(&share, "ns", GRANT)
        .unwrap()
        .into_iter()
        .map(|secret| (secret.name_any(), secret))
        .collect();
    let names: BTreeSet<_> = config::prepared_names().map(str::to_owned).collect();
    assert_eq!(secrets.keys().cloned().collect::<BTreeSet<_>>(), names);
    for (name, secret) in &secrets {
        let data = secret.data.as_ref().unwrap();
        let keys: Vec<_> = data.keys().map(String::as_str).collect();
        assert_eq!(keys, config::prepared_keys(name), "{name}");
        // The secrets manager of an owner, and the ShootState, leave the Secret out.
        assert_eq!(secret.immutable, Some(true));
        assert!(secret.labels().contains_key(PREPARED_BY_GRANT));
        assert!(!secret.labels().contains_key(MANAGER_IDENTITY) && !secret.labels().contains_key(PERSIST));
        assert!(!is_carried(secret), "{name}");
    }
}

/// A host could put further keys into the object, or could not write the object.
#[test]
fn the_policy_lets_the_keys_of_a_share_pass_alone() {
    let begin = POLICY
        .find("preparationKeys")
        .expect("the variable of the policy");
    let list = begin + POLICY[begin..].find('[').expect("the list");
    let end = list + POLICY[list..].find(']').expect("the end of the list");
    let named: BTreeSet<_> = POLICY[list + 1..end]
        .split(',')
        .map(|key| key.trim().trim_matches('\'').to_owned())
        .collect();
    assert_eq!(named, share_keys().collect::<BTreeSet<_>>());
}
