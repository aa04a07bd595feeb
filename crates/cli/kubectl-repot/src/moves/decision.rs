//! The edit of `spec.seedName` for a move and for a cancellation: pure decisions.

use api::gardencore::{Shoot, shoot::OwnershipPhase};
use kube::ResourceExt;
use placement::{Journey, journey};
use serde_json::json;

use crate::{edit::Edit, failure::Failure, hint::command_line};

/// The edit that moves the shoot to the seed. The policies of the garden decide whether the user may move the
/// shoot at this moment; the sentences of the policies reach the user.
///
/// # Errors
/// A refusal where the edit would have a different effect than a move to this seed.
pub fn decide_move(shoot: &Shoot, seed: &str) -> Result<Edit, Failure> {
    let name = shoot.name_any();
    if shoot.metadata.deletion_timestamp.is_some() {
        return Err(Failure::refused(format!(
            "shoot {name} is being deleted and cannot move"
        )));
    }
    let Some(acting) = acting_seed(shoot) else {
        return Err(Failure::refused(format!(
            "shoot {name} is on no seed yet (status.seedName): wait until status.lastOperation is Create Succeeded"
        )));
    };
    let wanted = shoot.spec.seed_name.as_deref();
    if wanted == Some(seed) {
        return Ok(Edit::Unchanged(
            if acting == seed && journey(shoot) == Journey::Settled {
                format!("Shoot {name} is on seed {seed} already.")
            } else {
                format!("The move of shoot {name} to seed {seed} is requested already.")
            },
        ));
    }
    if acting == seed {
        return Err(Failure::refused(format!(
            "shoot {name} is still on seed {seed} and is to move to seed {}: {} keeps the shoot on seed {seed}",
            wanted.unwrap_or_default(),
            command_line(&format!("cancel {name}"), shoot.namespace().as_deref())
        )));
    }
    Ok(Edit::Patch(json!({"spec": {"seedName": seed}})))
}

/// The edit that keeps the shoot on the seed that has the shoot.
///
/// # Errors
/// A refusal where no move can be cancelled: none is requested, or the point of no return has passed.
pub fn decide_cancellation(shoot: &Shoot) -> Result<Edit, Failure> {
    let name = shoot.name_any();
    let Some(acting) = acting_seed(shoot) else {
        return Err(Failure::refused(format!(
            "shoot {name} is on no seed yet, so that no move can be cancelled"
        )));
    };
    if placement::is_move_wanted(shoot) {
        return Ok(Edit::Patch(json!({"spec": {"seedName": acting}})));
    }
    match journey(shoot) {
        Journey::Settled => Err(Failure::refused(format!(
            "shoot {name} is on seed {acting}, and no move is requested"
        ))),
        Journey::Leaving => Ok(Edit::Unchanged(format!(
            "The move of shoot {name} is cancelled already: seed {acting} takes the shoot back."
        ))),
        Journey::Restoring if !was_handed_over(shoot) => Ok(Edit::Unchanged(format!(
            "The move of shoot {name} is cancelled already: seed {acting} restores the shoot."
        ))),
        Journey::Arriving | Journey::Restoring => Err(Failure::refused(after_no_return(shoot, acting))),
    }
}

/// The effect of a cancellation, by the progress of the move at the time of the write.
#[must_use]
pub fn effect_of_cancellation(shoot: &Shoot) -> String {
    let (name, acting) = (shoot.name_any(), acting_seed(shoot).unwrap_or_default());
    let phase = shoot
        .status
        .as_ref()
        .and_then(|status| status.ownership.as_ref()?.phase);
    match journey(shoot) {
        Journey::Settled => {
            format!(
                "The move of shoot {name} is cancelled before its begin: nothing has changed on seed {acting}."
            )
        }
        Journey::Leaving if phase == Some(OwnershipPhase::Sealing) => format!(
            "The move of shoot {name} is cancelled: seed {acting} keeps the shoot in a new ownership epoch. The API stays stopped \
             until the fence has passed."
        ),
        Journey::Leaving => {
            format!(
                "The move of shoot {name} is cancelled: seed {acting} takes the shoot back (operation Restore)."
            )
        }
        Journey::Arriving | Journey::Restoring => {
            format!("Shoot {name} stays on seed {acting}, which has the shoot after the hand-over.")
        }
    }
}

/// The write of `status.seedName` is the point of no return of a move.
fn after_no_return(shoot: &Shoot, acting: &str) -> String {
    let name = shoot.name_any();
    let former = former_owner(shoot);
    let back = former.map_or_else(String::new, |former| {
        let command = command_line(&format!("move {name} {former}"), shoot.namespace().as_deref());
        format!(", then move the shoot back with {command}")
    });
    format!(
        "the point of no return has passed: shoot {name} was handed over to seed {acting} (status.seedName), and no other seed may begin \
         with its data; wait until status.lastOperation is Restore Succeeded{back}"
    )
}

/// Whether the present epoch began with a hand-over from a different seed. A seed that takes a shoot back
/// after a cancellation in phase `Sealing` is the former owner, too.
fn was_handed_over(shoot: &Shoot) -> bool {
    let acting = acting_seed(shoot);
    let status = shoot.status.as_ref();
    let recorded = status.and_then(|status| status.migration.as_ref());
    recorded.is_some_and(|move_| Some(move_.destination.as_str()) == acting)
        || former_owner(shoot).is_some_and(|former| Some(former) != acting)
}

/// The seed that had the shoot in the epoch before, if this seed is recorded.
fn former_owner(shoot: &Shoot) -> Option<&str> {
    let status = shoot.status.as_ref()?;
    let before = status.epoch() - 1;
    let former = status.former_seeds.iter().find(|former| former.epoch == before)?;
    Some(former.name.as_str())
}

fn acting_seed(shoot: &Shoot) -> Option<&str> {
    let acting = shoot.status.as_ref()?.seed_name.as_deref();
    acting.filter(|seed| !seed.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shoot(wanted: &str, acting: &str, last: &str, more: &str) -> Shoot {
        let (type_, state) = last.split_once(' ').unwrap();
        serde_yaml_ng::from_str(&format!(
            "metadata: {{name: demo}}\n\
             spec: {{region: r, provider: {{type: t}}, seedName: {wanted}}}\n\
             status: {{seedName: {acting}, lastOperation: {{type: {type_}, state: {state}, progress: 1, description: d, \
             lastUpdateTime: 2026-01-01T00:00:00Z}}{more}}}\n"
        ))
        .unwrap()
    }

    const HANDED_OVER: &str = ", ownership: {epoch: 2, phase: Claiming}, formerSeeds: [{name: a, epoch: 1}]";

    #[test]
    fn a_move_names_the_destination_once() {
        let patch = decide_move(&shoot("a", "a", "Reconcile Succeeded", ""), "b").unwrap();
        assert_eq!(patch, Edit::Patch(json!({"spec": {"seedName": "b"}})));
        let again = decide_move(&shoot("b", "a", "Migrate Processing", ""), "b").unwrap();
        assert!(matches!(again, Edit::Unchanged(why) if why.contains("requested already")));
        let there = decide_move(&shoot("a", "a", "Reconcile Succeeded", ""), "a").unwrap();
        assert!(matches!(there, Edit::Unchanged(why) if why.contains("on seed a already")));
    }

    #[test]
    fn a_move_back_to_the_acting_seed_is_a_cancellation() {
        let why = decide_move(&shoot("b", "a", "Migrate Processing", ""), "a").unwrap_err();
        assert!(why.to_string().contains("kubectl repot cancel demo"), "{why}");
    }

    #[test]
    fn a_cancellation_before_the_hand_over_names_the_acting_seed() {
        for last in [
            "Reconcile Succeeded",
            "Migrate Pending",
            "Migrate Processing",
            "Migrate Error",
        ] {
            let patch = decide_cancellation(&shoot("b", "a", last, "")).unwrap();
            assert_eq!(patch, Edit::Patch(json!({"spec": {"seedName": "a"}})), "{last}");
        }
    }

    #[test]
    fn after_the_hand_over_no_cancellation_is_possible() {
        for last in [
            "Migrate Succeeded",
            "Migrate Aborted",
            "Restore Processing",
            "Restore Error",
        ] {
            let why = decide_cancellation(&shoot("b", "b", last, HANDED_OVER)).unwrap_err();
            assert!(
                why.to_string().contains("point of no return") && why.to_string().contains("move demo a"),
                "{last}: {why}"
            );
        }
    }

    #[test]
    fn the_next_command_names_the_namespace_of_the_shoot() {
        let mut leaving = shoot("b", "a", "Migrate Processing", "");
        let mut arrived = shoot("b", "b", "Migrate Succeeded", HANDED_OVER);
        for shoot in [&mut leaving, &mut arrived] {
            shoot.metadata.namespace = Some("garden-dev".to_owned());
        }
        let why = decide_move(&leaving, "a").unwrap_err().to_string();
        assert!(why.contains("`kubectl repot cancel demo -n garden-dev`"), "{why}");
        let why = decide_cancellation(&arrived).unwrap_err().to_string();
        assert!(why.contains("`kubectl repot move demo a -n garden-dev`"), "{why}");
    }

    #[test]
    fn a_second_cancellation_changes_nothing() {
        for last in ["Migrate Processing", "Restore Processing"] {
            let again = decide_cancellation(&shoot("a", "a", last, "")).unwrap();
            assert!(
                matches!(again, Edit::Unchanged(why) if why.contains("cancelled already")),
                "{last}"
            );
        }
        let none = decide_cancellation(&shoot("a", "a", "Reconcile Succeeded", "")).unwrap_err();
        assert!(none.to_string().contains("no move is requested"), "{none}");
    }

    #[test]
    fn the_effect_of_a_cancellation_follows_from_the_progress() {
        for (last, more, words) in [
            ("Reconcile Succeeded", "", "nothing has changed"),
            ("Migrate Processing", "", "takes the shoot back"),
            (
                "Migrate Processing",
                ", ownership: {epoch: 1, phase: Sealing}",
                "new ownership epoch",
            ),
        ] {
            let effect = effect_of_cancellation(&shoot("b", "a", last, more));
            assert!(effect.contains(words), "{effect}");
        }
    }
}
