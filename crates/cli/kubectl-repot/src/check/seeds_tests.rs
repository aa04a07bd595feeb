#![allow(clippy::unwrap_used)]

use super::*;
use crate::check::CheckLevel;

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn condition(type_: &str, status: &str) -> String {
    format!(
        "{{type: {type_}, status: '{status}', reason: r, message: m, lastTransitionTime: 2026-01-01T00:00:00Z, \
         lastUpdateTime: 2026-01-01T00:00:00Z}}"
    )
}

fn seed(spec: &str, status: &str) -> Seed {
    serde_yaml_ng::from_str(&format!(
        "metadata: {{name: a}}\nspec: {{networks: {{pods: p, services: s}}, provider: {{type: t, region: r}}, {spec}}}\n\
         status: {status}\n"
    ))
    .unwrap()
}

const COMPLETE: &str = "dns: {internal: {type: t, domain: seed.example, credentialsRef: {kind: Secret, name: n}}}, \
    backup: {provider: t}, settings: {ownerChecks: {enabled: true}}";

fn healthy() -> String {
    let conditions = [
        condition("GardenletReady", "True"),
        condition("SeedSystemComponentsHealthy", "True"),
        condition("BackupBucketsReady", "True"),
    ];
    format!(
        "{{conditions: [{}], gardener: {{id: i, name: n, version: {PLUGIN}}}, ownerCheckFenceSeconds: 24, \
         clientCertificateExpirationTimestamp: 2027-01-01T00:00:00Z}}",
        conditions.join(", ")
    )
}

fn levels(seed: &Seed) -> Vec<(CheckLevel, String)> {
    let lines = judge_seed(seed, now());
    lines.into_iter().map(|line| (line.level, line.message)).collect()
}

#[test]
fn a_complete_seed_has_no_warning() {
    let levels = levels(&seed(COMPLETE, &healthy()));
    assert!(
        levels.iter().all(|(level, _)| *level == CheckLevel::Ok),
        "{levels:?}"
    );
    assert!(
        levels
            .iter()
            .any(|(_, message)| message.contains("fence of 24 s")),
        "{levels:?}"
    );
}

#[test]
fn each_fault_of_a_seed_has_a_line() {
    let status = healthy();
    let tainted = format!("{COMPLETE}, taints: [{{key: migration.gardener.cloud/cordoned}}]");
    let silent = status.replace(
        &condition("GardenletReady", "True"),
        &condition("GardenletReady", "Unknown"),
    );
    let stopped = status.replace(
        "conditions: [",
        &format!(
            "conditions: [{}, {}, {}, ",
            condition("EmergencyStopShootReconciliations", "True"),
            condition("OwnerServersAgree", "False"),
            condition("EdgeAddressReady", "False")
        ),
    );
    let cases = vec![
        (
            seed(COMPLETE, "{}"),
            CheckLevel::Fail,
            "GardenletReady was never reported",
        ),
        (
            seed(COMPLETE, &silent),
            CheckLevel::Fail,
            "GardenletReady is Unknown",
        ),
        (seed(COMPLETE, &stopped), CheckLevel::Warn, "emergency stop"),
        (
            seed(COMPLETE, &stopped),
            CheckLevel::Fail,
            "OwnerServersAgree is False",
        ),
        (
            seed(COMPLETE, &stopped),
            CheckLevel::Fail,
            "EdgeAddressReady is False",
        ),
        (seed("dns: {}", &status), CheckLevel::Warn, "no spec.backup"),
        (seed("dns: {}", &status), CheckLevel::Warn, "no spec.dns.internal"),
        (seed("dns: {}", &status), CheckLevel::Warn, "owner checks are off"),
        (seed(&tainted, &status), CheckLevel::Warn, "cordoned"),
        (
            seed(COMPLETE, &status.replace(PLUGIN, "v99.0.1")),
            CheckLevel::Warn,
            "version v99.0.1, and the plugin",
        ),
        (
            seed(COMPLETE, &status.replace("2027-01-01", "2026-01-11")),
            CheckLevel::Warn,
            "expires in 10 days",
        ),
        (
            seed(COMPLETE, &status.replace("2027-01-01", "2025-01-11")),
            CheckLevel::Fail,
            "expired at",
        ),
    ];
    for (seed, level, words) in cases {
        let levels = levels(&seed);
        let is_there = |(found, message): &(CheckLevel, String)| *found == level && message.contains(words);
        assert!(levels.iter().any(is_there), "{words}: {levels:?}");
    }
}

#[test]
fn a_gardenlet_with_a_token_reports_no_certificate() {
    let field = "clientCertificateExpirationTimestamp: 2027-01-01T00:00:00Z";
    let status = healthy().replace(field, "clientCertificateExpirationTimestamp: null");
    let expected = "no client certificate, as with a token";
    let levels = levels(&seed(COMPLETE, &status));
    let is_there =
        |(level, message): &(CheckLevel, String)| *level == CheckLevel::Ok && message.contains(expected);
    assert!(levels.iter().any(is_there), "{levels:?}");
}

#[test]
fn the_clock_of_a_gardenlet_is_compared_with_the_garden() {
    let lease = |renewed: &str| -> Lease {
        serde_yaml_ng::from_str(&format!(
            "metadata: {{name: a, managedFields: [{{time: 2026-01-01T00:00:00Z}}]}}\nspec: {{renewTime: {renewed}}}\n"
        ))
        .unwrap()
    };
    for (renewed, level) in [
        ("2026-01-01T00:00:01.500000Z", CheckLevel::Ok),
        ("2025-12-31T23:59:50.000000Z", CheckLevel::Warn),
        ("2026-01-01T00:02:00.000000Z", CheckLevel::Fail),
    ] {
        assert_eq!(judge_clock(Some(&lease(renewed))).level, level, "{renewed}");
    }
    assert_eq!(judge_clock(None).level, CheckLevel::Warn);
}
