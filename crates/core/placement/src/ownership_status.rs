//! Converts the recorded ownership of a Shoot to the types of the protocol (`ownership`), and back. The only
//! converter.

use api::gardencore::{
    Shoot,
    shoot::{FormerSeed, Ownership as Recorded, OwnershipChain, OwnershipPhase},
};
use ownership::{Chain, Ownership, Phase, SeedEpoch};

use crate::{Journey, has_earlier_epoch, hosting_seed, journey, status};

/// The reason why a Shoot's status is not a complete ownership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRecorded {
    /// No seed has the shoot.
    #[error("no seed has the shoot yet")]
    Nowhere,
    /// A move is under way without recorded phases. Then the bucket with the data is unknown, and a guess
    /// could lose all data.
    #[error(
        "a move is not over, and its phases are not recorded (status.ownership.phase), so that nobody knows in which seed's bucket \
         the shoot's data are"
    )]
    Unfinished,
}

/// The ownership in the status, without the approval and the record of restored data.
///
/// # Errors
/// The status is incomplete.
pub fn ownership(shoot: &Shoot) -> Result<Ownership<String>, NotRecorded> {
    let seed = hosting_seed(shoot).ok_or(NotRecorded::Nowhere)?;
    let status = status(shoot).ok_or(NotRecorded::Nowhere)?;
    let recorded = status.ownership.as_ref();
    let phase = match recorded.and_then(|recorded| recorded.phase) {
        Some(phase) => phase_of(phase),
        None => match journey(shoot) {
            Journey::Settled | Journey::Leaving => Phase::Held,
            // The shoot was never handed over: each hand-over raises the epoch. The seed restores the shoot
            // in place, or has reported a hand-over without writing a hand-over.
            Journey::Arriving | Journey::Restoring if !has_earlier_epoch(shoot) => Phase::Held,
            Journey::Arriving | Journey::Restoring => return Err(NotRecorded::Unfinished),
        },
    };
    let source = recorded.and_then(|recorded| recorded.source.as_ref());
    Ok(Ownership {
        now: SeedEpoch {
            seed: seed.to_owned(),
            epoch: status.epoch(),
        },
        phase,
        drained: recorded.is_some_and(|recorded| recorded.drained),
        source: source.map(|source| SeedEpoch {
            seed: source.name.clone(),
            epoch: source.epoch,
        }),
        chain: recorded.and_then(|recorded| recorded.chain).map(chain_of),
    })
}

/// `status.ownership` without an approval, and without the record of restored data. `status.seedName` is the
/// seed of `now`.
#[must_use]
pub fn recorded(ownership: &Ownership<String>) -> Recorded {
    Recorded {
        epoch: ownership.now.epoch,
        phase: Some(recorded_phase(ownership.phase)),
        drained: ownership.drained,
        source: ownership.source.as_ref().map(|source| FormerSeed {
            name: source.seed.clone(),
            epoch: source.epoch,
        }),
        // garden-controller-manager records the bucket, and each other writer keeps the field.
        source_bucket: None,
        chain: ownership.chain.map(recorded_chain),
        sealed: None,
        approval: None,
        restored: None,
        restored_before: Vec::new(),
        seeds_stated_off: Vec::new(),
    }
}

fn phase_of(recorded: OwnershipPhase) -> Phase {
    match recorded {
        OwnershipPhase::Held => Phase::Held,
        OwnershipPhase::Leaving => Phase::Leaving,
        OwnershipPhase::Sealing => Phase::Sealing,
        OwnershipPhase::Claiming => Phase::Claiming,
        OwnershipPhase::Opening => Phase::Opening,
    }
}

fn recorded_phase(phase: Phase) -> OwnershipPhase {
    match phase {
        Phase::Held => OwnershipPhase::Held,
        Phase::Leaving => OwnershipPhase::Leaving,
        Phase::Sealing => OwnershipPhase::Sealing,
        Phase::Claiming => OwnershipPhase::Claiming,
        Phase::Opening => OwnershipPhase::Opening,
    }
}

fn chain_of(recorded: OwnershipChain) -> Chain {
    match recorded {
        OwnershipChain::Final => Chain::Final,
        OwnershipChain::Last => Chain::Last,
    }
}

fn recorded_chain(chain: Chain) -> OwnershipChain {
    match chain {
        Chain::Final => OwnershipChain::Final,
        Chain::Last => OwnershipChain::Last,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn shoot(status: &Value) -> Shoot {
        let spec = json!({"provider": {"type": "local"}, "region": "local", "seedName": "b", "kubernetes": {"version": "1.34.4"}});
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
            "spec": spec, "status": status,
        }))
        .unwrap()
    }

    /// The conversion loses no field, for every recorded value.
    #[test]
    fn what_is_recorded_is_read_back() {
        let sources = [None, Some(("a", 1)), Some(("c", 6))];
        for phase in ["Held", "Leaving", "Sealing", "Claiming", "Opening"] {
            for drained in [true, false] {
                for chain in [None, Some("Final"), Some("Last")] {
                    for source in sources {
                        let mut record = json!({"epoch": 7, "phase": phase});
                        if drained {
                            record["drained"] = json!(true);
                        }
                        if let Some(chain) = chain {
                            record["chain"] = json!(chain);
                        }
                        if let Some((name, epoch)) = source {
                            record["source"] = json!({"name": name, "epoch": epoch});
                        }
                        let read = ownership(&shoot(&json!({"seedName": "b", "ownership": record}))).unwrap();
                        assert_eq!((read.now.seed.as_str(), read.now.epoch), ("b", 7));
                        assert_eq!(serde_json::to_value(recorded(&read)).unwrap(), record);
                    }
                }
            }
        }
    }

    #[rstest]
    #[case(json!({}), Err(NotRecorded::Nowhere))]
    #[case(json!({"seedName": ""}), Err(NotRecorded::Nowhere))]
    #[case(json!({"seedName": "a"}), Ok(Phase::Held))]
    #[case(json!({"seedName": "a", "lastOperation": last("Reconcile", "Error")}), Ok(Phase::Held))]
    #[case(json!({"seedName": "a", "lastOperation": last("Migrate", "Pending")}), Ok(Phase::Held))]
    #[case(json!({"seedName": "a", "lastOperation": last("Migrate", "Processing")}), Ok(Phase::Held))]
    #[case(json!({"seedName": "a", "lastOperation": last("Migrate", "Succeeded")}), Ok(Phase::Held))]
    #[case(json!({"seedName": "a", "ownership": {"epoch": 1}, "lastOperation": last("Migrate", "Aborted")}), Ok(Phase::Held))]
    #[case(json!({"seedName": "a", "ownership": {"epoch": 2}, "lastOperation": last("Migrate", "Succeeded")}), Err(NotRecorded::Unfinished))]
    #[case(json!({"seedName": "a", "ownership": {"epoch": 2}, "lastOperation": last("Migrate", "Aborted")}), Err(NotRecorded::Unfinished))]
    #[case(json!({"seedName": "a", "ownership": {"epoch": 1, "source": {"name": "b", "epoch": 0}}, "lastOperation": last("Migrate", "Aborted")}), Err(NotRecorded::Unfinished))]
    #[case(json!({"seedName": "a", "lastOperation": last("Restore", "Failed")}), Ok(Phase::Held))]
    #[case(json!({"seedName": "a", "ownership": {"epoch": 2}, "lastOperation": last("Restore", "Failed")}), Err(NotRecorded::Unfinished))]
    #[case(json!({"seedName": "a", "lastOperation": last("Restore", "Succeeded")}), Ok(Phase::Held))]
    #[case(json!({"seedName": "a", "ownership": {"epoch": 2, "phase": "Claiming"}, "lastOperation": last("Migrate", "Aborted")}), Ok(Phase::Claiming))]
    fn where_no_phase_is_recorded_nothing_is_guessed(
        #[case] status: Value,
        #[case] expected: Result<Phase, NotRecorded>,
    ) {
        assert_eq!(ownership(&shoot(&status)).map(|read| read.phase), expected);
    }

    fn last(type_: &str, state: &str) -> Value {
        json!({"type": type_, "state": state, "progress": 5, "description": "d", "lastUpdateTime": "2026-01-01T00:00:00Z"})
    }
}
