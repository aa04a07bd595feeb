//! Numbers that files of different kinds repeat: code, CEL rules, flags, charts, the edge, and pages. No
//! constant reaches all of these files, so a test compares the copies. A change affects each copy.

#![allow(clippy::unwrap_used)]

use std::{fs, path::Path};

/// A file, and the text around the copies in the file, with `#` in the place of the number.
type RepeatedAt = (&'static str, &'static str);

const SETTINGS: &str = "crates/core/ownership/src/settings.rs";
const SEED: &str = "crates/core/api/src/gardencore/seed/owner_checks.rs";
const ETCD: &str = "crates/core/api/src/druid/backup.rs";
const SIDECAR: &str = "crates/components/etcd-backup-restore/src/owner/flags.rs";
const PAGE: &str = "docs/understand/ownership.md";
const GARDENLET: &str = "crates/core/gardenlet/src/config.rs";
const GARDENLET_VALUES: &str = "charts/gardenlet/values.yaml";
const SHOOT_STATE_PAGE: &str = "docs/understand/shoot-state.md";
const MACHINE_TIMING: &str = "crates/components/machine-controllers/src/context.rs";
const WORKERS: &str = "crates/core/api/src/gardencore/shoot/workers.rs";
const MACHINES_PAGE: &str = "docs/understand/machines.md";
const EDGE: &str = "charts/seed/files/haproxy.cfg";
const EDGE_FENCE: &str = "charts/seed/files/fence.lua";

/// The settings of owner checks, in seconds. The rules in the definitions count with a default where a field
/// is absent.
const OWNER_CHECKS: [(&str, &[RepeatedAt]); 7] = [
    (
        "the fence",
        &[
            (SETTINGS, "SHORTEST_FENCE_SECONDS: u32 = #;"),
            (SEED, "self.fence : '#s'"),
            (SEED, "duration(self) >= duration('#s')"),
            (SEED, "The default of #s"),
            (ETCD, "self.fence : '#s'"),
            (SIDECAR, "default_value = \"#s\")]\n    pub owner_check_fence"),
            (PAGE, "| F | `fence` | # s |"),
            (
                "docs/understand/etcd-backup-restore.md",
                "`--owner-check-fence` | #s |",
            ),
        ],
    ),
    (
        "the validity of an answer",
        &[
            (SETTINGS, "            validity: Duration::from_secs(#)"),
            (SEED, "self.validity : '#s'"),
            (SEED, "time of the question. Default: #s."),
            (ETCD, "self.validity : '#s'"),
            (ETCD, "permits the process to act. Default: #s."),
            (SIDECAR, "default_value = \"#s\")]\n    pub owner_check_validity"),
            (EDGE_FENCE, "longer than a permit (# s)"),
            (PAGE, "| V | `validity` | # s |"),
            (
                "docs/understand/etcd-backup-restore.md",
                "`--owner-check-validity` | #s |",
            ),
        ],
    ),
    (
        "the interval of checks",
        &[
            (SETTINGS, "            interval: Duration::from_secs(#)"),
            (SEED, "self.interval : '#s'"),
            (SEED, "checks of the owner of a shoot. Default: #s."),
            (ETCD, "self.interval : '#s'"),
            (ETCD, "lookups of the owner record. Default: #s."),
            (SIDECAR, "default_value = \"#s\")]\n    pub owner_check_interval"),
            (PAGE, "| I | `interval` | # s |"),
            (
                "docs/understand/etcd-backup-restore.md",
                "`--owner-check-interval` | #s |",
            ),
        ],
    ),
    (
        "the timeout of a question",
        &[
            (SETTINGS, "            timeout: Duration::from_secs(#)"),
            (SETTINGS, "            store_timeout: Duration::from_secs(#)"),
            (SEED, "self.timeout : '#s'"),
            (SEED, "self.storeTimeout : '#s'"),
            (ETCD, "self.timeout : '#s'"),
            (ETCD, "self.storeTimeout : '#s'"),
            (SIDECAR, "default_value = \"#s\")]\n    pub owner_check_timeout"),
            (
                SIDECAR,
                "default_value = \"#s\")]\n    pub owner_check_store_timeout",
            ),
            (PAGE, "| | `timeout` | # s |"),
            (PAGE, "| | `storeTimeout` | # s |"),
        ],
    ),
    (
        "the longest request after the end of a permit",
        &[
            (SETTINGS, "            requests: Duration::from_secs(#)"),
            (SEED, "self.requests : '#s'"),
            (ETCD, "self.requests : '#s'"),
            (SIDECAR, "default_value = \"#s\")]\n    pub owner_check_requests"),
            (PAGE, "| H | `requests` | # s |"),
        ],
    ),
    (
        "the time for which a server shows the former record",
        &[
            (SETTINGS, "            propagation: Duration::from_secs(#)"),
            (SEED, "self.propagation : '#s'"),
            (ETCD, "self.propagation : '#s'"),
            (
                SIDECAR,
                "default_value = \"#s\")]\n    pub owner_check_propagation",
            ),
            (PAGE, "| P | `propagation` | # s |"),
        ],
    ),
    (
        "an unnoticed pause of a machine",
        &[
            (
                "crates/core/permit/src/host_clock.rs",
                "UNNOTICED_PAUSE: Duration = Duration::from_secs(#)",
            ),
            (SEED, "') + duration('#s')"),
            (ETCD, "') + duration('#s')"),
        ],
    ),
];

/// Further numbers, by name.
const NUMBERS: [(&str, &[RepeatedAt]); 14] = [
    (
        "tries at each server in an owner check",
        &[
            (SETTINGS, "TRIES: u32 = #;"),
            (SEED, "may take (# x timeout + storeTimeout)"),
            (SEED, "at least 2 x interval + # x timeout + storeTimeout"),
            (ETCD, "may take (# x timeout + storeTimeout)"),
            (ETCD, "at least 2 x interval + # x timeout + storeTimeout"),
        ],
    ),
    (
        "seconds of silence after which a seed is unknown",
        &[
            (
                "crates/core/garden-controller-manager/src/config.rs",
                "default_value_t = #)]\n    pub seed_monitor_period_seconds",
            ),
            (
                "crates/core/gardenlet/src/seed/lease.rs",
                "LEASE_DURATION: Duration = Duration::from_secs(#)",
            ),
            (
                "charts/garden-controller-manager/values.yaml",
                "seedMonitorPeriodSeconds: #\n",
            ),
            ("charts/garden/files/rules.yaml", "has waited # s for the Lease"),
            (
                "docs/operate/monitoring.md",
                "(`seedMonitorPeriodSeconds`) | # s |",
            ),
            ("docs/operate/dead-seed.md", "**# s** is the silence"),
        ],
    ),
    (
        "minutes without traffic after which a connection ends",
        &[
            (
                "crates/components/tunnel/src/limits.rs",
                "IDLE: Duration = Duration::from_secs(# * 60)",
            ),
            (EDGE, "  timeout client #m\n"),
            (EDGE, "  timeout server #m\n"),
            (EDGE, "  timeout tunnel #m\n"),
        ],
    ),
    (
        "seconds for which a connection may be closed in one direction",
        &[
            (
                "crates/components/tunnel/src/limits.rs",
                "HALF_OPEN: Duration = Duration::from_secs(#)",
            ),
            (EDGE, "  timeout client-fin #s\n"),
        ],
    ),
    (
        "the default TTL of the DNS records of a shoot",
        &[
            ("crates/core/parts/src/settings.rs", "            dns_ttl: #,"),
            (
                GARDENLET,
                "default_value_t = #, value_parser = clap::value_parser!(i64)",
            ),
            (GARDENLET_VALUES, "dnsTTLSeconds: #\n"),
        ],
    ),
    (
        "checks of the edge at the same time",
        &[(EDGE_FENCE, "WORKERS = #\n"), (EDGE, "  stats maxconn #\n")],
    ),
    (
        "servers of a backend of the edge",
        &[
            (EDGE_FENCE, "\"shoot-tried\" }, #\n"),
            (EDGE, "server-template kube-apiserver 1-# "),
        ],
    ),
    (
        "seconds without a further change after which a ShootState is written",
        &[
            (
                GARDENLET,
                "default_value = \"#s\", value_parser = duration)]\n    pub shoot_state_sync_delay",
            ),
            (GARDENLET_VALUES, "shootStateSyncDelay: #s\n"),
            (SHOOT_STATE_PAGE, "`--shoot-state-sync-delay` | #s |"),
        ],
    ),
    (
        "seconds after the first change after which a ShootState is written",
        &[
            (
                GARDENLET,
                "default_value = \"#s\", value_parser = duration)]\n    pub shoot_state_sync_max_delay",
            ),
            (GARDENLET_VALUES, "shootStateSyncMaxDelay: #s\n"),
            (SHOOT_STATE_PAGE, "`--shoot-state-sync-max-delay` | #s |"),
        ],
    ),
    (
        "minutes between two comparisons of a ShootState",
        &[
            (
                GARDENLET,
                "default_value = \"#m\", value_parser = duration)]\n    pub shoot_state_sync_period",
            ),
            (GARDENLET_VALUES, "shootStateSyncPeriod: #m\n"),
            (SHOOT_STATE_PAGE, "`--shoot-state-sync-period` | #m |"),
        ],
    ),
    (
        "minutes for which a machine may be unhealthy",
        &[
            (MACHINE_TIMING, "            health: Duration::from_secs(# * 60)"),
            (WORKERS, "be unhealthy before replacement. Default: #m."),
            (MACHINES_PAGE, "`healthTimeout` (#m)"),
        ],
    ),
    (
        "minutes until a machine joins",
        &[
            (
                MACHINE_TIMING,
                "            creation: Duration::from_secs(# * 60)",
            ),
            (WORKERS, "Longest time until a machine joins. Default: #m."),
            (MACHINES_PAGE, "`creationTimeout` (#m)"),
        ],
    ),
    (
        "hours for pods to leave a machine",
        &[
            (
                MACHINE_TIMING,
                "            drain: Duration::from_secs(# * 60 * 60)",
            ),
            (WORKERS, "Longest time for pods to leave a node. Default: #h."),
            (MACHINES_PAGE, "`drainTimeout` (#h)"),
        ],
    ),
    (
        "GiB of the database of an etcd without a quota",
        &[
            (
                "crates/components/etcd-druid/src/wanted/mod.rs",
                "QUOTA_BYTES: u64 = # << 30;",
            ),
            (
                "crates/components/etcd-druid/src/status/condition.rs",
                "self.quota.map_or(\"#Gi\"",
            ),
            (
                "crates/core/api/src/druid/etcd_config.rs",
                "database, in bytes. Default: #Gi.",
            ),
        ],
    ),
];

fn read(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(file)).unwrap()
}

/// The numbers in the place of `#`, at each repetition of the text around.
fn numbers_in(content: &str, text: &str) -> Vec<u64> {
    let (before, after) = text.split_once('#').unwrap();
    let numbers = content.match_indices(before).filter_map(|(begin, _)| {
        let rest = &content[begin + before.len()..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, rest) = rest.split_at(end);
        number.parse().ok().filter(|_| rest.starts_with(after))
    });
    numbers.collect()
}

#[test]
fn the_copies_of_a_number_are_equal() {
    for (name, copies) in OWNER_CHECKS.iter().chain(&NUMBERS) {
        let (first_file, first_text) = copies[0];
        let first = numbers_in(&read(first_file), first_text);
        assert_eq!(first.len(), 1, "{name}: {first_text:?} in {first_file}");
        for (file, text) in *copies {
            let numbers = numbers_in(&read(file), text);
            assert!(
                !numbers.is_empty() && numbers.iter().all(|number| *number == first[0]),
                "{name}: {file} has {numbers:?} at {text:?}, and {first_file} has {first:?}: change each of {copies:?}"
            );
        }
    }
}

/// The rules for `interval` and `validity` have a summand for each try.
#[test]
fn the_rules_of_owner_checks_count_each_try() {
    const TRY: &str = "duration(has(self.timeout) ?";
    let tries = numbers_in(&read(SETTINGS), "TRIES: u32 = #;")[0];
    for file in [SEED, ETCD] {
        let content = read(file);
        let rules: Vec<&str> = content.lines().filter(|line| line.contains(TRY)).collect();
        assert_eq!(rules.len(), 2, "{file}: {rules:?}");
        for rule in rules {
            let summands = rule.matches(TRY).count();
            assert_eq!(u64::try_from(summands), Ok(tries), "{file}: {rule}");
        }
    }
}

/// Where no permit is valid, the edge ends the connections to a kube-apiserver that answers from caches. The
/// edge must not do so while a permit is valid, plus 3 s: for so long kube-apiserver may report a failure of
/// etcd that has ended.
#[test]
fn the_edge_waits_for_longer_than_a_permit_is_valid() {
    let edge = read(EDGE_FENCE);
    let period = numbers_in(&edge, "local PERIOD, FAILURES = #, ")[0];
    let failures = numbers_in(&edge, &format!("local PERIOD, FAILURES = {period}, #\n"))[0];
    let validity = numbers_in(&read(SETTINGS), "            validity: Duration::from_secs(#)")[0];
    assert!(
        (failures - 1) * period >= validity + 3,
        "{failures} failures, one each {period} s, and a permit is valid for {validity} s"
    );
}

#[test]
fn a_copy_is_found_by_the_text_around_the_number() {
    let content = "a: 5s\nb: 7ms\na: 6s\n";
    assert_eq!(numbers_in(content, "a: #s\n"), [5, 6]);
    assert!(numbers_in(content, "b: #s\n").is_empty());
}
