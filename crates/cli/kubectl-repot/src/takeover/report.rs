//! The report before a takeover: loss, fence and processes that no fence stops. Pure.

use api::{
    constants::condition::GARDENLET_READY,
    gardencore::{BackupEntry, Seed, Shoot, shoot::OwnershipPhase},
    meta::{ConditionStatus, find_condition},
};
use jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;

use super::fence_forecast;
use crate::{age::age, session::SeedReading, table::Branch};

/// The objects of the garden that a report is made of.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    pub(super) shoot: Box<Shoot>,
    pub(super) source: SeedReading,
    pub(super) destination: SeedReading,
    pub(super) entry: Option<Box<BackupEntry>>,
    /// The caller states that no process of the source runs any more.
    pub(super) source_is_off: bool,
}

/// The report before a takeover.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TakeoverReport {
    /// Namespace of the Shoot.
    pub namespace: String,
    /// Name of the Shoot.
    pub shoot: String,
    /// The seed that loses the shoot.
    pub from: String,
    /// The seed that takes the shoot over.
    pub to: String,
    /// The ownership epoch that is given up.
    pub epoch: i64,
    /// The state of the old seed.
    pub source: String,
    /// The expected loss of data.
    pub loss: Vec<String>,
    /// Whether waiting stops all processes of the old seed, as far as the garden knows.
    pub fence_holds: bool,
    /// The wait of the new seed, in seconds.
    pub fence_seconds: i64,
    /// Processes that no fence stops.
    pub unfenced_processes: Vec<String>,
    /// Reasons of the garden against the takeover.
    pub obstacles: Vec<String>,
    /// The caller states that no process of the old seed runs any more.
    pub source_is_off: bool,
}

impl TakeoverReport {
    /// The report about a takeover by seed `to`. `None` where no seed has the shoot.
    pub(super) fn new(evidence: &Evidence, to: &str, now: Timestamp) -> Option<Self> {
        let shoot = &*evidence.shoot;
        let status = shoot.status.as_ref()?;
        let from = status.seed_name.clone().filter(|seed| !seed.is_empty())?;
        let mut obstacles: Vec<String> = fence_forecast::unsaved(shoot).into_iter().collect();
        if shoot.metadata.deletion_timestamp.is_some() {
            obstacles.push("the shoot is being deleted".to_owned());
        }
        if let SeedReading::Missing = evidence.destination {
            obstacles.push(format!("no Seed has the name {to}"));
        }
        let fence = match (evidence.source.seed(), evidence.destination.seed()) {
            _ if evidence.source_is_off => Vec::new(),
            (Some(source), Some(destination)) => fence_forecast::obstacles(shoot, source, destination),
            // The garden decides: the caller may have no right to read Seeds.
            _ => Vec::new(),
        };
        let is_judged = evidence.source.seed().is_some() && evidence.destination.seed().is_some();
        let fence_holds = is_judged && fence.is_empty() && !evidence.source_is_off;
        obstacles.extend(fence);
        Some(Self {
            namespace: shoot.namespace().unwrap_or_default(),
            shoot: shoot.name_any(),
            to: to.to_owned(),
            epoch: status.epoch(),
            source: describe_source(&evidence.source, &from, now),
            loss: expected_loss(evidence, &from, now),
            fence_holds,
            fence_seconds: fence_forecast::fence_seconds(shoot, evidence.source.seed()),
            unfenced_processes: fence_forecast::unfenced_processes(shoot, &from),
            obstacles,
            source_is_off: evidence.source_is_off,
            from,
        })
    }

    /// The report as a tree.
    #[must_use]
    pub fn render(&self) -> String {
        let mut tree = Branch::new(format!(
            "Takeover of shoot {}/{} from seed {} by seed {} (ownership epoch {})",
            self.namespace, self.shoot, self.from, self.to, self.epoch
        ));
        tree.add(format!("old seed: {}", self.source));
        tree.add_group("expected loss", self.loss.clone());
        tree.add(self.describe_fence());
        tree.add_group("processes that no fence stops", self.unfenced_processes.clone());
        tree.add_group("obstacles", self.obstacles.clone());
        tree.render()
    }

    fn describe_fence(&self) -> String {
        if self.source_is_off {
            return format!(
                "fence: none; you state that no process of seed {} runs any more. If this is wrong, two control planes write",
                self.from
            );
        }
        let verdict = if self.fence_holds {
            "holds, as far as the garden knows"
        } else {
            "is not certain"
        };
        format!(
            "fence: {verdict}; the new seed waits for {} s",
            self.fence_seconds
        )
    }
}

/// The state of the old seed, by the condition that garden-controller-manager keeps.
fn describe_source(source: &SeedReading, from: &str, now: Timestamp) -> String {
    match source {
        SeedReading::Missing => format!("the Seed {from} does not exist any more"),
        SeedReading::Unreadable(why) => format!("unknown: {why}"),
        SeedReading::Read(seed) => describe_liveness(seed, from, now),
    }
}

fn describe_liveness(seed: &Seed, from: &str, now: Timestamp) -> String {
    let status = seed.status.as_ref();
    let ready = status.and_then(|status| find_condition(&status.conditions, GARDENLET_READY));
    let Some(ready) = ready else {
        return format!("{from} has never reported (condition {GARDENLET_READY})");
    };
    let since = age(&ready.last_transition_time, now);
    match ready.status {
        ConditionStatus::Unknown => {
            format!("{from} is silent, noticed {since} ago (condition {GARDENLET_READY})")
        }
        _ => format!(
            "{from} lives (condition {GARDENLET_READY} is {:?}): the garden refuses a takeover unless the hand-over fails or stands still",
            ready.status
        ),
    }
}

/// The loss as far as the garden knows before the takeover. The garden has no record of single snapshots.
fn expected_loss(evidence: &Evidence, from: &str, now: Timestamp) -> Vec<String> {
    let status = evidence.shoot.status.as_ref();
    let ownership = status.and_then(|status| status.ownership.as_ref());
    let claimed = ownership.filter(|ownership| ownership.phase == Some(OwnershipPhase::Claiming));
    if let Some(ownership) = claimed {
        let source = ownership
            .source
            .as_ref()
            .map_or("unknown", |source| source.name.as_str());
        let end = ownership.sealed_source().map_or_else(
            || "up to the last snapshot in the bucket of this seed".to_owned(),
            |sealed| {
                format!(
                    "up to revision {} of the final snapshot, without a loss",
                    sealed.revision
                )
            },
        );
        return vec![format!(
            "seed {from} has not opened the data; the data come from seed {source}, {end}"
        )];
    }
    let mut loss = vec![format!(
        "all writes after the last snapshot that seed {from} has uploaded: usually a few minutes, more if the seed could not reach \
         the bucket"
    )];
    let entry = evidence.entry.as_ref().and_then(|entry| entry.status.as_ref());
    match entry.and_then(|status| status.last_operation.as_ref()) {
        Some(last) => loss.push(format!(
            "newest report about the backups: {} {}, {} ago; the garden does not record single snapshots",
            last.type_,
            last.state,
            age(&last.last_update_time, now)
        )),
        None => loss.push("no report about the backups can be read (BackupEntry)".to_owned()),
    }
    if let Some(earlier) = ownership.and_then(|ownership| ownership.restored.as_ref()) {
        loss.push(format!(
            "the takeover that began epoch {} has lost data already",
            earlier.epoch
        ));
    }
    loss
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn evidence(shoot: &str, source_is_off: bool) -> Evidence {
        let seed = "metadata: {name: a}\nspec: {dns: {}, networks: {pods: p, services: s}, provider: {type: t, region: r}}\n\
            status: {conditions: [{type: GardenletReady, status: Unknown, reason: r, message: m, \
            lastTransitionTime: 2026-01-01T00:00:00Z, lastUpdateTime: 2026-01-01T00:00:00Z}]}\n";
        let entry = "metadata: {name: e}\nspec: {bucketName: b, seedName: a}\nstatus: {lastOperation: {type: Reconcile, \
            state: Succeeded, progress: 100, description: d, lastUpdateTime: 2026-01-01T00:00:00Z}}\n";
        let source: Seed = serde_yaml_ng::from_str(seed).unwrap();
        Evidence {
            shoot: serde_yaml_ng::from_str(shoot).unwrap(),
            destination: SeedReading::Read(Box::new(source.clone())),
            source: SeedReading::Read(Box::new(source)),
            entry: Some(serde_yaml_ng::from_str(entry).unwrap()),
            source_is_off,
        }
    }

    fn now() -> Timestamp {
        "2026-01-01T00:05:00Z".parse().unwrap()
    }

    const SHOOT: &str = "metadata: {name: demo, namespace: garden-dev}\nspec: {region: r, provider: {type: t}, seedName: a}\n\
        status: {seedName: a, constraints: [{type: ShootStateUpToDate, status: 'True', reason: r, message: m, \
        lastTransitionTime: 2026-01-01T00:00:00Z, lastUpdateTime: 2026-01-01T00:00:00Z}], \
        lastOperation: {type: Reconcile, state: Succeeded, progress: 100, description: d, lastUpdateTime: 2026-01-01T00:00:00Z}}\n";

    #[test]
    fn the_report_shows_loss_fence_and_processes_before_the_approval() {
        let report = TakeoverReport::new(&evidence(SHOOT, false), "b", now()).unwrap();
        let text = report.render();
        for words in [
            "from seed a by seed b (ownership epoch 1)",
            "a is silent, noticed 5m ago",
            "all writes after the last snapshot",
            "Reconcile Succeeded, 5m ago",
            "fence: is not certain; the new seed waits for 24 s",
            "processes that no fence stops",
            "does not publish in DNS",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!report.fence_holds && !report.obstacles.is_empty());
    }

    #[test]
    fn a_statement_that_the_source_is_off_replaces_the_fence() {
        let report = TakeoverReport::new(&evidence(SHOOT, true), "b", now()).unwrap();
        assert_eq!(report.obstacles, [""; 0]);
        assert!(report.render().contains("two control planes write"));
    }

    #[test]
    fn data_that_nobody_has_opened_come_from_the_former_seed() {
        let claimed = SHOOT.replace(
            "seedName: a, constraints",
            "seedName: a, ownership: {epoch: 3, phase: Claiming, source: {name: c, epoch: 2}, sealed: {epoch: 2, revision: 54, \
             snapshot: s, sha256: aa}}, constraints",
        );
        let report = TakeoverReport::new(&evidence(&claimed, false), "b", now()).unwrap();
        assert!(
            report.loss[0].contains("from seed c, up to revision 54"),
            "{:?}",
            report.loss
        );
    }

    #[test]
    fn a_shoot_without_a_seed_has_no_report() {
        let young = "metadata: {name: demo}\nspec: {region: r, provider: {type: t}}\n";
        assert_eq!(TakeoverReport::new(&evidence(young, false), "b", now()), None);
    }
}
