//! Prints a path through the model for people.

use super::action::Action;
use super::ask::Via;
use super::scenario::Seed;
use super::state::{AnswerKind, Who};
use crate::gates::SealStep;
use crate::marks::{OwnershipObject, Record};
use crate::phase::{Step, Writer};

/// A numbered line for each action.
pub(super) fn way(actions: &[Action]) -> String {
    let lines = (1..).zip(actions);
    let lines: Vec<String> = lines
        .map(|(number, action)| format!("{number:4}. {}", sentence(action)))
        .collect();
    lines.join("\n")
}

fn sentence(action: &Action) -> String {
    match action {
        Action::Tick {
            source_loses_one,
            destination_gains_one,
        } => {
            let slow = if *source_loses_one {
                ", and the source's clock loses it"
            } else {
                ""
            };
            let fast = if *destination_gains_one {
                ", and the destination's clock makes two of it"
            } else {
                ""
            };
            format!("a second passes{slow}{fast}")
        }
        Action::Ask {
            epoch,
            who,
            via,
            heard,
        } => {
            format!(
                "{} asks, {}: {}",
                process(*who, *epoch),
                witness(*via),
                word(heard.said)
            )
        }
        Action::Hear { epoch, who } => format!("{} hears the answer", process(*who, *epoch)),
        Action::Pause { epoch, who } => format!("{} is stopped", process(*who, *epoch)),
        Action::Wake { epoch, who } => format!("{} wakes", process(*who, *epoch)),
        Action::HostPauses { epoch, who } => format!("the hypervisor pauses {}", process(*who, *epoch)),
        Action::HostResumes { epoch, who } => {
            format!("the hypervisor goes on with {}", process(*who, *epoch))
        }
        Action::Crash { epoch, who } => format!("{} is started anew", process(*who, *epoch)),
        Action::Seal { epoch, step } => {
            let what = match step {
                SealStep::Marker => "syncs its mark",
                SealStep::Object => "says Sealed in the bucket",
                SealStep::FinalSnapshot => "uploads the final snapshot",
            };
            format!("the sidecar of epoch {epoch} {what}")
        }
        Action::ActuatorsStop { epoch } => format!("the actuators of epoch {epoch} have stopped"),
        Action::Garden { by, step } => format!("garden: {}", garden(by, step)),
        Action::Forge { step } => format!("garden: a stolen certificate of the claimant writes {step:?}"),
        Action::Note { epoch } => format!("the claimant of epoch {epoch} notes its choice in its seed"),
        Action::Follow { epoch } => format!("the claimant of epoch {epoch} goes on with the recorded phase"),
        Action::GardenLate { by, step } => format!("on its way to the garden: {}", garden(by, step)),
        Action::GardenArrives => "what was on its way to the garden arrives".to_owned(),
        Action::Dns { epoch, write } => format!("DNS: epoch {epoch} writes {}", record(&write.becomes)),
        Action::DnsLate { epoch, write } => format!(
            "on its way to DNS: epoch {epoch} writes {}",
            record(&write.becomes)
        ),
        Action::DnsArrives => "what was on its way to DNS arrives".to_owned(),
        Action::Slip { epoch_too: false } => "DNS: a stranger deletes the owner's name".to_owned(),
        Action::Slip { epoch_too: true } => "DNS: a stranger deletes both names".to_owned(),
        Action::ZoneTransfer => "the second server has the record, too".to_owned(),
        Action::Put { bucket, write } => format!("bucket of {bucket:?}: {}", object(write.becomes.as_ref())),
        Action::Look { epoch } => {
            format!("the destination of epoch {epoch} sees itself in all witnesses: its fence begins")
        }
        Action::DestinationCrashes { epoch } => format!("the destination of epoch {epoch} is started anew"),
        Action::EarlierPodsGo { epoch } => format!("earlier pods at the seed of epoch {epoch} are gone"),
        Action::Serve { epoch } => format!("etcd of epoch {epoch} opens"),
        Action::DataAreLost { epoch } => format!("the data directory of epoch {epoch} is lost"),
        Action::CleanUp { bucket } => format!("bucket of {bucket:?}: the object is deleted"),
        Action::Delete => "the owner begins to delete the shoot".to_owned(),
    }
}

fn process(who: Who, epoch: i64) -> String {
    let who = match who {
        Who::Sidecar => "sidecar",
        Who::Actuator => "actuator",
        Who::Gardenlet => "gardenlet",
    };
    format!("the {who} of epoch {epoch}")
}

fn witness(via: Via) -> &'static str {
    match via {
        Via::Nobody => "DNS is silent and the second witness answers",
        Via::AllServers => "DNS answers",
        Via::FirstServer => "the first server answers",
        Via::SecondServer => "the second server answers",
        Via::HiddenReplica => "a replica that is behind answers",
        Via::Cache => "a cache answers",
    }
}

fn word(said: AnswerKind) -> String {
    match said {
        AnswerKind::Owned { at_most: None } => "Owned".to_owned(),
        AnswerKind::Owned { at_most: Some(left) } => format!("Owned, for {left} s"),
        AnswerKind::Lost => "Lost".to_owned(),
    }
}

fn garden(by: &Writer<Seed>, step: &Step<Seed>) -> String {
    let by = match by {
        Writer::Seed(seed) => format!("{seed:?}"),
        Writer::Garden => "garden-controller-manager".to_owned(),
    };
    match step {
        Step::Grant(approval) => format!(
            "{by} grants epoch {} to {:?} (from {:?})",
            approval.from.epoch + 1,
            approval.to,
            approval.from.seed
        ),
        Step::HandOver { to, drained, .. } => {
            format!(
                "{by} hands over to {to:?}{}",
                if *drained { ", drained" } else { "" }
            )
        }
        other => format!("{by} writes {other:?}"),
    }
}

fn record(record: &Record<Seed>) -> String {
    match (record.identity, record.epoch) {
        (Some(seed), Some(epoch)) => format!("{seed:?} beside {epoch}"),
        (None, Some(epoch)) => format!("no owner beside {epoch}"),
        _ => "neither owner nor epoch".to_owned(),
    }
}

fn object(object: Option<&OwnershipObject>) -> String {
    object.map_or_else(String::new, |object| {
        format!("{:?}({})", object.mark, object.epoch)
    })
}
