//! The order of takeovers of all shoots of a dead seed: pure.

use std::cmp::Reverse;

use api::gardencore::{Shoot, shoot::ShootPurpose};
use kube::ResourceExt;

/// First a shoot of little importance as a trial, as the trial shows obstacles that all shoots share. Then
/// the most important shoots. `shoot_in` gives the Shoot of an item.
pub(super) fn order<T>(mut items: Vec<T>, shoot_in: impl Fn(&T) -> &Shoot) -> Vec<T> {
    items.sort_by_key(|item| {
        let shoot = shoot_in(item);
        let importance = importance(shoot.spec.purpose);
        (Reverse(importance), shoot.namespace(), shoot.name_any())
    });
    if let Some(trial) = items.pop() {
        items.insert(0, trial);
    }
    items
}

/// The higher number, the more important.
pub(crate) fn importance(purpose: Option<ShootPurpose>) -> u8 {
    match purpose {
        Some(ShootPurpose::Infrastructure) => 4,
        Some(ShootPurpose::Production) => 3,
        None => 2,
        Some(ShootPurpose::Development) => 1,
        Some(ShootPurpose::Testing | ShootPurpose::Evaluation) => 0,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_unimportant_shoot_is_the_trial_and_important_shoots_follow() {
        let shoots = [
            "a development",
            "b production",
            "c testing",
            "d infrastructure",
            "e production",
        ];
        let shoots = shoots.map(|shoot| -> Shoot {
            let (name, purpose) = shoot.split_once(' ').unwrap();
            let yaml = format!(
                "metadata: {{name: {name}}}\nspec: {{region: r, provider: {{type: t}}, purpose: {purpose}}}\n"
            );
            serde_yaml_ng::from_str(&yaml).unwrap()
        });
        let ordered = order(Vec::from(shoots), |shoot| shoot);
        let names: Vec<String> = ordered.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, ["c", "d", "b", "e", "a"]);
    }
}
