//! The entries of a shoot in each phase of a move, a takeover, a take-back, a cancellation and a new epoch.
//! The controller may stop between any two writes, and each test checks that an entry always names the bucket
//! with the data.

#![allow(clippy::unwrap_used)]

use api::{
    constants::{BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH, finalizer::GARDENER},
    gardencore::{BackupEntry, Seed, SeedSpec, Shoot, ShootSpec, seed::SeedBackup},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{
    decision::{abandoned_on, heir},
    entries::{OwnEntryStep, assignment, entry, own_entry_step},
    source::{SourceVerdict, judge_source, source_end, source_seed},
    source_entry::{SourceEntryStep, holds_own_entry, source_entry_step},
};

/// The garden with the objects of one shoot.
#[derive(Clone)]
struct Garden {
    shoot: Shoot,
    own: Option<BackupEntry>,
    source: Option<BackupEntry>,
    /// Name of a Seed that does not exist any more.
    lost: Option<&'static str>,
}

fn seed(name: &str) -> Seed {
    let mut seed = Seed::new(name, SeedSpec::default());
    seed.metadata.uid = Some(format!("bucket-{name}"));
    seed.spec.backup = Some(SeedBackup::default());
    seed
}

fn changed(entry: &BackupEntry, change: &Value) -> BackupEntry {
    let mut body = json!(entry);
    json_patch::merge(&mut body, change);
    serde_json::from_value(body).unwrap()
}

impl Garden {
    /// A shoot that seed `a` has created, with the entry of seed `a`.
    fn created() -> Self {
        let mut shoot = Shoot::new("web", ShootSpec::default());
        shoot.metadata.uid = Some("u".into());
        let mut garden = Self {
            shoot,
            own: None,
            source: None,
            lost: None,
        };
        garden.hosted_by("a", &json!({"epoch": 1, "phase": "Held"}));
        garden.settle();
        garden.released_to("a");
        garden
    }

    fn hosted_by(&mut self, host: &str, ownership: &Value) {
        let mut ownership = ownership.clone();
        // garden-controller-manager keeps the record of the bucket in each new epoch.
        let former = self
            .shoot
            .status
            .as_ref()
            .and_then(|status| status.ownership.as_ref());
        if let Some(bucket) = former.and_then(|record| record.source_bucket.as_ref()) {
            ownership["sourceBucket"] = json!(bucket);
        }
        let status = json!({"seedName": host, "technicalID": "t", "uid": "u", "ownership": ownership});
        self.shoot.status = Some(serde_json::from_value(status).unwrap());
    }

    /// The former seeds have released the entries.
    fn released_to(&mut self, seed: &str) {
        let status = json!({"status": {"seedName": seed}});
        self.own = self.own.as_ref().map(|own| changed(own, &status));
        self.source = self.source.as_ref().map(|source| changed(source, &status));
    }

    /// The next write of the controller, in the order of the controller. `false`: no write is due.
    fn write(&mut self) -> bool {
        let host = seed(self.shoot.status.as_ref().unwrap().seed_name.as_ref().unwrap());
        let of_source = source_seed(&self.shoot, &host, self.own.as_ref());
        let of_source = of_source.filter(|name| self.lost != Some(name.as_str()));
        let of_source = of_source.map(|name| seed(&name));
        let (own, has_source) = (self.own.clone(), self.source.is_some());
        let end = own
            .as_ref()
            .and_then(|own| source_end(&self.shoot, &host, own, has_source));
        if let (Some(end), Some(own)) = (&end, &own) {
            self.own = Some(changed(own, end));
            return true;
        }
        let verdict = judge_source(&self.shoot, &host, of_source.as_ref(), own.as_ref(), has_source);
        let bucket = match verdict {
            SourceVerdict::NotNeeded => None,
            SourceVerdict::Recorded(bucket) => Some(bucket),
            SourceVerdict::Record(record) => {
                let status = self.shoot.status.as_mut().unwrap();
                status.ownership.as_mut().unwrap().source_bucket = Some(record);
                return true;
            }
            SourceVerdict::Unknown(why) => unreachable!("{why}"),
        };
        if let Some(bucket) = bucket {
            let step = source_entry_step(&self.shoot, &host, &bucket, self.source.as_ref(), own.as_ref());
            if self.write_source(step, &host, &bucket) {
                return true;
            }
            if holds_own_entry(step, &host, &bucket) {
                return false;
            }
        }
        self.write_own(&host)
    }

    fn write_source(&mut self, step: SourceEntryStep, host: &Seed, bucket: &str) -> bool {
        let source = match (step, self.source.clone()) {
            (SourceEntryStep::Create, _) => Some(entry(&self.shoot, host, "source-t--u", bucket)),
            (SourceEntryStep::Release, Some(source)) => {
                if abandoned_on(&self.shoot, &source).is_none() {
                    return false;
                }
                None
            }
            (SourceEntryStep::Assign, Some(source)) => {
                Some(changed(&source, &assignment(&self.shoot, host, bucket, &source)))
            }
            (SourceEntryStep::Take, Some(source)) => match self.taken(&source) {
                Some(taken) => Some(taken),
                None => return false,
            },
            _ => return false,
        };
        self.source = source;
        true
    }

    fn write_own(&mut self, host: &Seed) -> bool {
        let bucket = host.uid().unwrap();
        let own = match (
            own_entry_step(&self.shoot, host, self.own.as_ref()),
            self.own.clone(),
        ) {
            (OwnEntryStep::Create, _) => entry(&self.shoot, host, "t--u", &bucket),
            (OwnEntryStep::Assign, Some(own)) => changed(&own, &assignment(&self.shoot, host, &bucket, &own)),
            (OwnEntryStep::Keep, Some(own)) => match self.taken(&own) {
                Some(taken) => taken,
                None => return false,
            },
            (OwnEntryStep::Keep, None) => return false,
            (step, _) => unreachable!("{step:?}"),
        };
        self.own = Some(own);
        true
    }

    fn taken(&self, entry: &BackupEntry) -> Option<BackupEntry> {
        let heir = heir(&self.shoot, entry, |name| self.lost == Some(name))?;
        Some(changed(entry, &json!({"status": {"seedName": heir}})))
    }

    /// All writes, with a stop after each of them.
    fn settle(&mut self) {
        for _ in 0..20 {
            self.check();
            if !self.write() {
                return;
            }
        }
        unreachable!("the controller writes without an end");
    }

    /// An entry names the bucket with the data, for as long as the present seed restores from there.
    fn check(&self) {
        let record = self.shoot.status.as_ref().unwrap().ownership.as_ref().unwrap();
        let opened = !matches!(
            record.phase,
            Some(api::gardencore::shoot::OwnershipPhase::Claiming)
        );
        let Some(source) = record.source.as_ref().filter(|_| !opened) else {
            return;
        };
        let bucket = record
            .recorded_source_bucket()
            .map_or(format!("bucket-{}", source.name), str::to_owned);
        let mut entries = [&self.own, &self.source].into_iter().flatten();
        let naming = entries.find(|entry| entry.spec.bucket_name == bucket);
        // A Shoot that is deleted now leaves this entry, and a seed removes the backups before the finalizer.
        let finalizers = naming.map(|entry| entry.finalizers().to_vec());
        assert_eq!(finalizers, Some(vec![GARDENER.to_owned()]), "entry of {bucket}");
    }

    /// The own entry, the source entry, and the bucket of a different seed that the seed of the entry reads.
    fn summary(&self) -> String {
        let of = |entry: &Option<BackupEntry>| {
            let entry = entry.as_ref()?;
            let seed = entry.spec.seed_name.clone().unwrap();
            let bucket = entry.spec.bucket_name.trim_start_matches("bucket-").to_owned();
            let reads = if seed == bucket {
                String::new()
            } else {
                format!(" reads {bucket}")
            };
            Some(format!("{seed}@{bucket}{reads}"))
        };
        let none = || "-".to_owned();
        format!(
            "{} | {}",
            of(&self.own).unwrap_or_else(none),
            of(&self.source).unwrap_or_else(none)
        )
    }

    fn summary_of(&mut self, host: &str, ownership: &Value) -> String {
        self.hosted_by(host, ownership);
        self.settle();
        self.summary()
    }

    /// The host has started etcd from the copy: its flow marks the own entry and deletes the source entry.
    fn drop_source(&mut self, epoch: &str) {
        let mark = json!({"metadata": {"annotations": {(BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH): epoch}}});
        self.own = self.own.as_ref().map(|own| changed(own, &mark));
        self.source = None;
    }
}

fn approval(from: &str, to: &str, epoch: i64) -> Value {
    json!({"uid": "u", "from": from, "to": to, "epoch": epoch, "acceptedLoss": "SinceLastSnapshot",
        "expiry": "2026-01-01T00:00:00Z", "by": "Operator", "reason": "r"})
}

fn epoch(epoch: i64, phase: &str, source: (&str, i64)) -> Value {
    json!({"epoch": epoch, "phase": phase, "source": {"name": source.0, "epoch": source.1}})
}

fn planned(number: i64, phase: &str, source: (&str, i64)) -> Value {
    let mut record = epoch(number, phase, source);
    record["drained"] = json!(true);
    record
}

/// Who reads which bucket in each phase of a planned move.
#[test]
fn a_planned_move_gives_the_destination_the_source_bucket_until_the_restore_has_ended() {
    let mut garden = Garden::created();
    assert_eq!(garden.summary(), "a@a | -");
    for phase in ["Held", "Leaving", "Sealing"] {
        assert_eq!(
            garden.summary_of("a", &json!({"epoch": 1, "phase": phase})),
            "a@a | -",
            "{phase}"
        );
    }
    for phase in ["Claiming", "Opening"] {
        let summary = garden.summary_of("b", &planned(2, phase, ("a", 1)));
        assert_eq!(summary, "b@b | b@a reads a", "{phase}");
    }
    // The former seed lives, and releases its entry itself.
    let on = |entry: &Option<BackupEntry>| entry.as_ref()?.status.as_ref()?.seed_name.clone();
    assert_eq!(on(&garden.own).as_deref(), Some("a"));
    garden.released_to("b");
    // The source entry outlives phase Opening, because its deletion needs the credentials.
    assert_eq!(
        garden.summary_of("b", &planned(2, "Held", ("a", 1))),
        "b@b | b@a reads a"
    );
    garden.drop_source("2");
    assert_eq!(garden.summary_of("b", &planned(2, "Held", ("a", 1))), "b@b | -");
}

/// The host of a shoot without phases removes the mark of the end, and reports a restore.
#[test]
fn a_seed_gets_no_second_source_entry_in_an_epoch() {
    let mut garden = Garden::created();
    let operation = |type_: &str, state: &str| {
        let last = json!({"type": type_, "state": state, "progress": 1, "description": "",
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        serde_json::from_value(last).unwrap()
    };
    let report = |garden: &mut Garden, type_: &str, state: &str| {
        garden.hosted_by("b", &json!({"epoch": 2, "source": {"name": "a", "epoch": 1}}));
        garden.shoot.status.as_mut().unwrap().last_operation = Some(operation(type_, state));
        while garden.write() {}
        garden.summary()
    };
    assert_eq!(report(&mut garden, "Migrate", "Succeeded"), "b@b | b@a reads a");
    garden.drop_source("2");
    assert_eq!(report(&mut garden, "Restore", "Succeeded"), "b@b | -");
    let removed = json!({"metadata": {"annotations": {(BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH): null}}});
    garden.own = garden.own.as_ref().map(|own| changed(own, &removed));
    assert_eq!(report(&mut garden, "Restore", "Processing"), "b@b | -");
}

/// A thief of the certificate of seed `b` writes the mark of the end, deletes the source entry, and reports
/// phase `Held`. An administrator corrects the phase.
#[test]
fn a_thief_ends_no_source_entry_before_the_data_are_chosen() {
    let mut garden = Garden::created();
    let after = |garden: &mut Garden, phase: &str| {
        garden.hosted_by("b", &planned(2, phase, ("a", 1)));
        while garden.write() {}
        garden.summary()
    };
    assert_eq!(after(&mut garden, "Claiming"), "b@b | b@a reads a");
    garden.drop_source("2");
    assert_eq!(after(&mut garden, "Claiming"), "b@b | b@a reads a");
    garden.drop_source("2");
    assert_eq!(after(&mut garden, "Held"), "b@b | -");
    assert_eq!(after(&mut garden, "Claiming"), "b@b | b@a reads a");
    assert_eq!(after(&mut garden, "Opening"), "b@b | b@a reads a");
    garden.drop_source("2");
    assert_eq!(after(&mut garden, "Held"), "b@b | -");
}

#[test]
fn a_planned_move_whose_source_is_lost_after_the_hand_over_ends() {
    let mut garden = Garden::created();
    garden.lost = Some("a");
    let summary = garden.summary_of("b", &planned(2, "Claiming", ("a", 1)));
    assert_eq!(summary, "b@b | b@a reads a");
    let own = garden.own.unwrap().status.unwrap();
    assert_eq!(own.seed_name.as_deref(), Some("b"));
}

/// A cancellation before the hand-over changes no entry. After the seal the seed gets a new epoch.
#[test]
fn a_cancelled_move_and_a_new_epoch_of_the_same_seed_read_no_further_bucket() {
    let mut garden = Garden::created();
    for phase in ["Leaving", "Held", "Leaving", "Sealing"] {
        assert_eq!(
            garden.summary_of("a", &json!({"epoch": 1, "phase": phase})),
            "a@a | -"
        );
    }
    for phase in ["Claiming", "Opening", "Held"] {
        assert_eq!(
            garden.summary_of("a", &epoch(2, phase, ("a", 1))),
            "a@a | -",
            "{phase}"
        );
    }
}

/// Only a hand-over counts, for any number of edits.
#[test]
fn edits_of_the_wanted_seed_change_no_entry() {
    let mut garden = Garden::created();
    for wanted in ["b", "c", "a", "b"] {
        garden.shoot.spec.seed_name = Some(wanted.into());
        assert!(!garden.write(), "{wanted}");
    }
    assert_eq!(garden.summary(), "a@a | -");
}

/// An administrator has recorded a bucket, because the Seed was registered again with a new uid.
#[test]
fn the_host_reads_the_recorded_bucket_also_if_the_source_is_the_host() {
    let mut garden = Garden::created();
    let mut renewed = epoch(2, "Claiming", ("a", 1));
    renewed["sourceBucket"] = json!({"name": "bucket-z", "epoch": 1});
    garden.hosted_by("a", &renewed);
    while garden.write() {}
    assert_eq!(garden.summary(), "a@a | a@z reads z");
}

#[test]
fn a_takeover_that_is_handed_on_and_taken_back_leaves_the_bucket_with_the_data() {
    let mut garden = Garden::created();
    let mut taken = epoch(2, "Claiming", ("a", 1));
    taken["approval"] = approval("a", "b", 1);
    assert_eq!(garden.summary_of("b", &taken), "b@b | b@a reads a");
    garden.released_to("b");
    // Seed b has opened nothing. Seed c gets the bucket, and seed b loses the bucket.
    let mut handed_on = epoch(3, "Claiming", ("a", 1));
    handed_on["approval"] = approval("b", "c", 2);
    assert_eq!(garden.summary_of("c", &handed_on), "c@c | c@a reads a");
    for entry in [&garden.own, &garden.source] {
        let on = entry.as_ref().unwrap().status.as_ref().unwrap();
        assert_eq!(on.seed_name.as_deref(), Some("c"), "a dead seed must not release");
    }
    // The first seed takes the shoot back: the data are in its own bucket.
    let mut back = epoch(4, "Claiming", ("a", 1));
    back["approval"] = approval("c", "a", 3);
    assert_eq!(garden.summary_of("a", &back), "a@a | a@a");
}

/// The epoch rises twice before the controller runs.
#[test]
fn an_epoch_that_rises_twice_keeps_the_bucket_with_the_data() {
    let mut garden = Garden::created();
    garden.hosted_by("b", &planned(2, "Claiming", ("a", 1)));
    let mut handed_on = epoch(3, "Claiming", ("a", 1));
    handed_on["approval"] = approval("b", "c", 2);
    assert_eq!(garden.summary_of("c", &handed_on), "c@c | c@a reads a");
}

/// The Seed of the source is gone, after and before the record of the bucket.
#[test]
fn the_end_of_the_source_seed_changes_no_recorded_bucket() {
    for writes in [0, 1, 2] {
        let mut garden = Garden::created();
        garden.hosted_by("b", &planned(2, "Claiming", ("a", 1)));
        for _ in 0..writes {
            garden.check();
            assert!(garden.write());
        }
        garden.lost = Some("a");
        garden.settle();
        assert_eq!(garden.summary(), "b@b | b@a reads a", "{writes}");
    }
}

/// A seed that lost the shoot was deleting the source entry of its claim.
#[test]
fn a_source_entry_in_deletion_is_replaced_before_the_own_entry_leaves_the_bucket() {
    let mut garden = Garden::created();
    let mut left = entry(&garden.shoot, &seed("a"), "source-t--u", "bucket-z");
    left.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    garden.source = Some(left);
    // A planned move waits for the seed that deletes the entry.
    assert_eq!(
        garden.summary_of("b", &planned(2, "Claiming", ("a", 1))),
        "a@a | a@z reads z"
    );
    // A takeover does not wait.
    let mut taken = epoch(2, "Claiming", ("a", 1));
    taken["approval"] = approval("a", "b", 1);
    assert_eq!(garden.summary_of("b", &taken), "b@b | b@a reads a");
}
