//! The changes outside of the seeds, from independent records: the cloud's API server, the DNS server, and
//! the proxy before the object store.

use std::{
    collections::BTreeSet,
    io::Write as _,
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use api::extensions::DNSRecord;
use jiff::Timestamp;
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::Value;

use crate::landscape::Landscape;

/// Path of the audit log of the cloud's API server: hack/landscape/clusters.sh.
const AUDIT_LOG: &str = "/var/log/kubernetes/audit.log";

/// A recorded change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The time, by the clock of the recorder.
    pub at: Timestamp,
    /// Verb and object.
    pub what: String,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    from: Timestamp,
    to: Timestamp,
}

impl Span {
    /// By the clock of this machine; all clusters of a landscape use this clock.
    ///
    /// # Errors
    /// A time out of range.
    pub fn new(from: Instant, to: Instant) -> Result<Self> {
        let now = runtime::clock::now();
        Ok(Self {
            from: now.checked_sub(from.elapsed())?,
            to: now.checked_sub(to.elapsed())?,
        })
    }

    /// The changes within the span.
    #[must_use]
    pub fn filter(self, mut changes: Vec<Change>) -> Vec<Change> {
        changes.retain(|change| (self.from..=self.to).contains(&change.at));
        changes
    }
}

/// The changes of a seed in the cloud.
///
/// # Errors
/// The record cannot be read, or has no change of this seed at all: then the record proves nothing.
pub fn cloud_changes(landscape: &Landscape, seed: &str) -> Result<Vec<Change>> {
    let address = address_of(landscape, seed)?;
    let node = landscape.variable("INFRA_NODE")?;
    let log = output(Command::new("docker").args(["exec", node, "cat", AUDIT_LOG]))?;
    is_recorded(seed, audited(&log, address)?)
}

/// The changes of a seed in the object store.
///
/// # Errors
/// As [`cloud_changes`].
pub fn store_changes(landscape: &Landscape, seed: &str) -> Result<Vec<Change>> {
    let address = address_of(landscape, seed)?;
    let container = format!("{}-s3", landscape.name);
    let log = output(Command::new("docker").args(["logs", "--timestamps", &container]))?;
    is_recorded(seed, stored(&log, address)?)
}

/// Outside of the seed, packets of pods have the node's address.
fn address_of<'a>(landscape: &'a Landscape, seed: &str) -> Result<&'a str> {
    landscape.variable(&format!("{}_NODE_IP", seed.to_uppercase().replace('-', "_")))
}

fn is_recorded(seed: &str, changes: Vec<Change>) -> Result<Vec<Change>> {
    ensure!(
        !changes.is_empty(),
        "{seed} has never changed anything: is it recorded?"
    );
    Ok(changes)
}

/// The changes from an address, by an audit log of Kubernetes.
fn audited(log: &str, address: &str) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).with_context(|| format!("no audit event: {line}"))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let refused = event["responseStatus"]["code"]
            .as_i64()
            .is_none_or(|code| code >= 300);
        if event["sourceIPs"][0] != address || refused {
            continue;
        }
        let what = [&event["verb"], &event["requestURI"], &event["user"]["username"]].map(text);
        changes.push(Change {
            at: text(&event["requestReceivedTimestamp"]).parse()?,
            what: what.join(" "),
        });
    }
    Ok(changes)
}

/// The changes from an address, by the log of the object store: the end time of a request, the client's
/// address, verb, path, and answer.
fn stored(log: &str, address: &str) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for line in log.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let [at, from, verb, path, answer] = words[..] else {
            continue;
        };
        if from == address && answer.starts_with('2') && !["GET", "HEAD"].contains(&verb) {
            changes.push(Change {
                at: at.parse()?,
                what: format!("{verb} {path}"),
            });
        }
    }
    Ok(changes)
}

/// Snapshots with more than one write among changes of an object store, by path.
#[must_use]
pub fn written_twice(changes: &[Change]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let written = changes.iter().filter_map(|change| snapshot_of(&change.what));
    written.filter(|path| !seen.insert(*path)).collect()
}

/// The path of the snapshot that this request has completed: at once, or at the end of a multipart upload.
fn snapshot_of(what: &str) -> Option<&str> {
    let (verb, uri) = what.split_once(' ')?;
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let is_whole = match verb {
        "PUT" => !query.contains("partNumber="),
        "POST" => query.contains("uploadId="),
        _ => false,
    };
    let is_snapshot = path.contains("/Full-") || path.contains("/Incr-");
    (is_whole && is_snapshot).then_some(path)
}

/// All former and present values of a name, oldest first, by the zone's journal (IXFR).
///
/// # Errors
/// The server does not answer.
pub fn values_of(landscape: &Landscape, name: &str, kind: &str) -> Result<Vec<String>> {
    let key = ["TSIG_ALGORITHM", "TSIG_KEY_NAME", "TSIG_SECRET"];
    let key: Result<Vec<_>> = key.into_iter().map(|key| landscape.variable(key)).collect();
    let (key, server) = (key?.join(":"), format!("@{}", landscape.dns.ip()));
    let zone = landscape.variable("DNS_ZONE")?;
    let question = ["+noall", "+answer", "-y", &key, &server, "-t", "IXFR=1", zone];
    let journal = output(Command::new("kdig").args(question))?;
    added(&journal, name, kind)
}

/// Name of the owner record of a shoot.
///
/// # Errors
/// The seed has no DNSRecord of the owner.
pub async fn owner_record(landscape: &Landscape, seed: &str, technical_id: &str) -> Result<String> {
    let records: Api<DNSRecord> = Api::namespaced(landscape.seed(seed)?.clone(), technical_id);
    let found = records.list(&ListParams::default()).await?;
    let owner = found.iter().find(|record| record.name_any().ends_with("-owner"));
    Ok(owner.context("no DNSRecord of the owner")?.spec.name.clone())
}

/// Deletes the owner record of a shoot at the zone's server, as an administrator's slip does. The epoch's
/// name stays.
///
/// # Errors
/// The seed has no DNSRecord of the owner, or the server refuses the update.
pub async fn delete_owner_record(landscape: &Landscape, seed: &str, technical_id: &str) -> Result<String> {
    let name = owner_record(landscape, seed, technical_id).await?;
    let key = ["TSIG_ALGORITHM", "TSIG_KEY_NAME", "TSIG_SECRET"];
    let key: Result<Vec<_>> = key.into_iter().map(|key| landscape.variable(key)).collect();
    let mut update = Command::new("knsupdate")
        .args(["-y", &key?.join(":")])
        .stdin(Stdio::piped())
        .spawn()?;
    let zone = landscape.variable("DNS_ZONE")?;
    let (server, port) = (landscape.dns.ip(), landscape.dns.port());
    let words = format!("server {server} {port}\nzone {zone}.\ndel {name}. TXT\nsend\n");
    let mut input = update.stdin.take().context("knsupdate has no input")?;
    input.write_all(words.as_bytes())?;
    drop(input);
    ensure!(update.wait()?.success(), "the server did not delete {name}");
    Ok(name)
}

/// Parses an answer to IXFR: an SOA, and then for each change the former SOA, the removed records, the new
/// SOA, and the added records.
fn added(journal: &str, name: &str, kind: &str) -> Result<Vec<String>> {
    let (mut serials, mut values) = (0, Vec::new());
    for (place, line) in journal.lines().filter(|line| !line.is_empty()).enumerate() {
        let words: Vec<_> = line.split_whitespace().collect();
        let [owner, _, _, type_, value @ ..] = &words[..] else {
            continue;
        };
        ensure!(
            place != 1 || *type_ == "SOA",
            "the journal does not reach back to the begin of the zone: what is in the zone came instead"
        );
        if *type_ == "SOA" {
            serials += 1;
        } else if serials > 1 && serials % 2 == 1 && *type_ == kind && owner.trim_end_matches('.') == name {
            values.push(value.join(" "));
        }
    }
    Ok(values)
}

fn output(command: &mut Command) -> Result<String> {
    let done = command.output()?;
    let told = String::from_utf8_lossy(&done.stderr);
    ensure!(
        done.status.success(),
        "{}: {told}",
        command.get_program().display()
    );
    Ok(String::from_utf8(done.stdout)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_journal_tells_what_came_and_not_what_went() {
        let journal = "
z. 30 IN SOA ns.z. h.z. 3 1 1 1 5
z. 30 IN SOA ns.z. h.z. 1 1 1 1 5
z. 30 IN SOA ns.z. h.z. 2 1 1 1 5
owner.z. 30 IN TXT \"a\"
z. 30 IN SOA ns.z. h.z. 2 1 1 1 5
owner.z. 30 IN TXT \"a\"
z. 30 IN SOA ns.z. h.z. 3 1 1 1 5
owner.z. 30 IN TXT \"b\"
api.z. 30 IN A 192.0.2.1
z. 30 IN SOA ns.z. h.z. 3 1 1 1 5";
        assert_eq!(added(journal, "owner.z", "TXT").unwrap(), ["\"a\"", "\"b\""]);
        assert_eq!(added(journal, "api.z", "A").unwrap(), ["192.0.2.1"]);
        let zone =
            "z. 30 IN SOA ns.z. h.z. 3 1 1 1 5\nowner.z. 30 IN TXT \"b\"\nz. 30 IN SOA ns.z. h.z. 3 1 1 1 5";
        assert!(added(zone, "owner.z", "TXT").is_err());
    }

    #[test]
    fn what_was_changed_from_an_address_is_told() {
        let event = |address: &str, code: i32| {
            format!(
                r#"{{"verb":"delete","requestURI":"/api/v1/pods/a","user":{{"username":"u"}},"sourceIPs":["{address}"],"responseStatus":{{"code":{code}}},"requestReceivedTimestamp":"2026-01-01T00:00:00.5Z"}}"#
            )
        };
        let log = [
            event("192.0.2.1", 200),
            event("192.0.2.1", 403),
            event("192.0.2.2", 200),
        ]
        .join("\n");
        let found = audited(&log, "192.0.2.1").unwrap();
        assert_eq!(found.len(), 1, "refused is not changed: {found:?}");
        assert_eq!(found[0].what, "delete /api/v1/pods/a u");
        assert!(audited("{", "192.0.2.1").is_err());
        let log = "2026-01-01T00:00:01.5Z 192.0.2.1 PUT /b/full 200
2026-01-01T00:00:02.5Z 192.0.2.1 PUT /b/late 412
2026-01-01T00:00:03.5Z 192.0.2.1 GET /b?list-type=2 200
2026-01-01T00:00:04.5Z 192.0.2.2 PUT /b/other 200
2026-01-01T00:00:05.5Z [NOTICE] something else";
        let found = stored(log, "192.0.2.1").unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].what, "PUT /b/full");
    }

    #[test]
    fn a_snapshot_that_is_written_twice_is_told_and_one_in_parts_is_one() {
        let changes = |all: &[&str]| -> Vec<Change> {
            let change = |what: &&str| Change {
                at: Timestamp::UNIX_EPOCH,
                what: (*what).to_owned(),
            };
            all.iter().map(change).collect()
        };
        let once = changes(&[
            "PUT /b/Full-1",
            "POST /b/Full-2?uploads",
            "PUT /b/Full-2?partNumber=1&uploadId=a",
            "PUT /b/Full-2?partNumber=2&uploadId=a",
            "POST /b/Full-2?uploadId=a",
            "PUT /b/owner",
            "PUT /b/owner",
            "DELETE /b/Full-1",
        ]);
        assert_eq!(written_twice(&once), Vec::<&str>::new());
        let twice = changes(&["PUT /b/Incr-1", "POST /b/Incr-1?uploadId=a", "PUT /b/Full-1"]);
        assert_eq!(written_twice(&twice), ["/b/Incr-1"]);
    }
}
