#![allow(clippy::unwrap_used)]

use super::*;
use crate::secrets::issue::{certificate, certificate_authority};

/// A file, and a Secret with the file as this gardenlet writes the file.
fn written() -> (KubeconfigFile, Secret) {
    let file = KubeconfigFile {
        name: "dev--web".to_owned(),
        server: "https://api.web.dev.example.test".to_owned(),
        trusted: certificate_authority(CA).unwrap().data["ca.crt"].clone(),
        signer: certificate_authority(CA_CLIENT).unwrap().data,
    };
    let secret = secret(&file, &file.signer, (USER, GROUP), DERIVED_YEARS);
    (file, secret)
}

fn secret(file: &KubeconfigFile, signer: &Data, (user, group): (&str, &str), years: i16) -> Secret {
    let issued = certificate(user, Some(group), &[], years, (CA_CLIENT, signer)).unwrap();
    let text = file
        .render(&issued.data["tls.crt"], &issued.data["tls.key"])
        .unwrap();
    with_text(file, text)
}

fn with_text(file: &KubeconfigFile, text: Vec<u8>) -> Secret {
    let mut secret = Secret::default();
    // An end of validity far away: each earlier host could write the label.
    secret.metadata.labels = Some(
        [
            (constants::CHECKSUM_OF_CONFIG.to_owned(), file.checksum()),
            (constants::VALID_UNTIL_TIME.to_owned(), "253400000000".to_owned()),
        ]
        .into(),
    );
    secret.data = Some(
        [
            ("kubeconfig".to_owned(), ByteString(text)),
            ("ca.crt".to_owned(), ByteString(file.trusted.clone())),
        ]
        .into(),
    );
    secret
}

fn text(secret: &Secret) -> String {
    String::from_utf8(secret.data.as_ref().unwrap()["kubeconfig"].0.clone()).unwrap()
}

#[test]
fn a_kubeconfig_is_kept_until_it_expires_soon() {
    let (file, secret) = written();
    let now = clock::now();
    assert!(file.is_valid(&secret, now));
    assert!(file.is_valid(&secret, now + SignedDuration::from_hours(24 * 330)));
    assert!(!file.is_valid(&secret, now + SignedDuration::from_hours(24 * 340)));
    assert!(!file.is_valid(&Secret::default(), now));
}

/// A kubeconfig that an earlier host has changed does not survive the next reconciliation.
#[test]
fn a_kubeconfig_with_foreign_content_is_replaced() {
    let (file, valid) = written();
    let valid = text(&valid);
    let now = clock::now();
    let program = "      exec:\n        apiVersion: client.authentication.k8s.io/v1\n        command: sh\n";
    for changed in [
        valid.replace(&file.server, "https://attacker.example.test"),
        valid.replace(
            &STANDARD.encode(&file.trusted),
            &STANDARD.encode(&file.signer["ca.crt"]),
        ),
        format!("{valid}{program}"),
        valid.replace("users:\n", "users:\n- name: x\n  user:\n    token: x\n"),
        valid.replace(
            "    client-key-data",
            "    proxy-url: http://192.0.2.1\n    client-key-data",
        ),
        format!("# {valid}"),
        program.to_owned(),
        String::new(),
    ] {
        assert_ne!(changed, valid);
        assert!(
            !file.is_valid(&with_text(&file, changed.clone().into_bytes()), now),
            "{changed}"
        );
    }
    let mut other_ca = with_text(&file, valid.clone().into_bytes());
    other_ca
        .data
        .as_mut()
        .unwrap()
        .insert("ca.crt".to_owned(), ByteString(file.signer["ca.crt"].clone()));
    assert!(!file.is_valid(&other_ca, now));
}

/// No merge patch changes the data of an immutable Secret: a restore would never end.
#[test]
fn an_immutable_secret_with_foreign_content_is_deleted() {
    let (file, valid) = written();
    let now = clock::now();
    let mut foreign = with_text(
        &file,
        text(&valid)
            .replace(&file.server, "https://x.example.test")
            .into_bytes(),
    );
    assert_eq!(file.fill(&foreign, now), Fill::Replace);
    foreign.immutable = Some(false);
    assert_eq!(file.fill(&foreign, now), Fill::Replace);
    foreign.immutable = Some(true);
    assert_eq!(file.fill(&foreign, now), Fill::Delete);
    let mut kept = valid;
    kept.immutable = Some(true);
    assert_eq!(file.fill(&kept, now), Fill::Keep);
}

#[test]
fn a_certificate_of_a_foreign_authority_user_or_period_is_replaced() {
    let (file, _) = written();
    let now = clock::now();
    let foreign = certificate_authority(CA_CLIENT).unwrap().data;
    for (signer, subject, years) in [
        (&foreign, (USER, GROUP), DERIVED_YEARS),
        (&file.signer, ("x", GROUP), DERIVED_YEARS),
        (&file.signer, (USER, "x"), DERIVED_YEARS),
        (&file.signer, (USER, GROUP), 50),
    ] {
        let changed = secret(&file, signer, subject, years);
        assert!(!file.is_valid(&changed, now), "{subject:?} {years}");
    }
    let certificates = [0, 1].map(|_| {
        let signer = (CA_CLIENT, &file.signer);
        certificate(USER, Some(GROUP), &[], DERIVED_YEARS, signer)
            .unwrap()
            .data
    });
    let text = file
        .render(&certificates[0]["tls.crt"], &certificates[1]["tls.key"])
        .unwrap();
    assert!(
        !file.is_valid(&with_text(&file, text), now),
        "a key of a different certificate"
    );
}
