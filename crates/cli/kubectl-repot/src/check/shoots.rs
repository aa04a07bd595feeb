//! Checks of the shoots that a takeover depends on: saved states, owner terms, and the owner checks of etcd.
//! Owner checks need conditional writes of the bucket, so a verified owner shows that the store supports such
//! writes.

use api::{
    constants::condition::{OWNER_CHECKS_COMPLETE, OWNERSHIP_VERIFIED, SHOOT_STATE_UP_TO_DATE},
    gardencore::Shoot,
    meta::{Condition, ConditionStatus, find_condition},
};
use kube::{Api, ResourceExt, api::ListParams};
use runtime::client::Cluster;

use super::report::CheckLine;
use crate::session::Session;

/// Shoots in an answer of the garden: a command reads thousands of Shoots, and a Shoot may have 1.5 MB.
const PAGE: u32 = 25;
/// Names in a sentence.
const NAMES: usize = 5;

/// The conditions of all shoots.
const CHECKS: [(&str, &str); 3] = [
    (
        SHOOT_STATE_UP_TO_DATE,
        "no seed could take these shoots over: docs/operate/runbooks.md, ShootStateUpToDate is False",
    ),
    (
        OWNER_CHECKS_COMPLETE,
        "reconcile the shoots once (gardener.cloud/operation=reconcile): docs/operate/runbooks.md, OwnerChecksComplete is False",
    ),
    (
        OWNERSHIP_VERIFIED,
        "check that the servers of the zone answer, and that the store supports conditional writes: docs/operate/runbooks.md",
    ),
];

/// The parts of a Shoot that the checks need.
#[derive(Clone, Debug, PartialEq)]
struct ShootConditions {
    name: String,
    all: Vec<Condition>,
}

impl ShootConditions {
    fn new(shoot: &Shoot) -> Option<Self> {
        let status = shoot.status.as_ref()?;
        // A shoot without a seed has no reports yet.
        status.seed_name.as_deref().filter(|seed| !seed.is_empty())?;
        Some(Self {
            name: format!("{}/{}", shoot.namespace().unwrap_or_default(), shoot.name_any()),
            all: status
                .conditions
                .iter()
                .chain(&status.constraints)
                .cloned()
                .collect(),
        })
    }
}

/// The checks of all shoots that the caller may list.
pub(super) async fn check(session: &Session) -> Vec<CheckLine> {
    let api: Api<Shoot> = session.garden().all();
    let mut shoots = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let doing = "the Shoots of all namespaces cannot be listed";
        let list = match Box::pin(session.request(doing, api.list(&page))).await {
            Ok(list) => list,
            Err(failure) => return vec![CheckLine::unreadable(&failure)],
        };
        shoots.extend(list.items.iter().filter_map(ShootConditions::new));
        page.continue_token = list.metadata.continue_.filter(|token| !token.is_empty());
        if page.continue_token.is_none() {
            break;
        }
    }
    if shoots.is_empty() {
        return vec![CheckLine::ok("no shoot has a seed yet")];
    }
    let lines = CHECKS.iter().map(|(type_, remedy)| judge(&shoots, type_, remedy));
    lines.collect()
}

/// A condition that a shoot does not report is no fault: seeds without owner checks report none.
fn judge(shoots: &[ShootConditions], type_: &str, remedy: &str) -> CheckLine {
    let reports = shoots
        .iter()
        .filter_map(|shoot| Some((shoot, find_condition(&shoot.all, type_)?)));
    let reports: Vec<_> = reports.collect();
    let not_true = reports
        .iter()
        .filter(|(_, condition)| condition.status != ConditionStatus::True);
    let failing: Vec<&str> = not_true.map(|(shoot, _)| shoot.name.as_str()).collect();
    if failing.is_empty() {
        return CheckLine::ok(format!(
            "condition {type_} is True for {} of {} shoots, and fails for none",
            reports.len(),
            shoots.len()
        ));
    }
    let names = failing[..failing.len().min(NAMES)].join(", ");
    CheckLine::warn(
        format!(
            "condition {type_} is not True for {} of {} shoots: {names}",
            failing.len(),
            shoots.len()
        ),
        remedy,
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::check::CheckLevel;

    fn shoot(name: &str, status: &str) -> Shoot {
        serde_yaml_ng::from_str(&format!(
            "metadata: {{name: {name}, namespace: n}}\nspec: {{region: r, provider: {{type: t}}}}\nstatus: {status}\n"
        ))
        .unwrap()
    }

    fn verified(status: &str) -> String {
        format!(
            "{{seedName: a, conditions: [{{type: OwnershipVerified, status: '{status}', reason: r, message: m, \
             lastTransitionTime: 2026-01-01T00:00:00Z, lastUpdateTime: 2026-01-01T00:00:00Z}}]}}"
        )
    }

    #[test]
    fn failing_shoots_are_named() {
        let shoots = [
            ("good", verified("True")),
            ("bad", verified("Unknown")),
            ("plain", "{seedName: a}".to_owned()),
            ("new", "{}".to_owned()),
        ];
        let read = shoots.iter().map(|(name, status)| shoot(name, status));
        let read: Vec<_> = read.filter_map(|shoot| ShootConditions::new(&shoot)).collect();
        assert_eq!(read.len(), 3);
        let line = judge(&read, OWNERSHIP_VERIFIED, "r");
        assert_eq!(line.level, CheckLevel::Warn);
        assert!(line.message.ends_with("for 1 of 3 shoots: n/bad"), "{line:?}");
        let fine = judge(&read, SHOOT_STATE_UP_TO_DATE, "r");
        assert_eq!(fine.level, CheckLevel::Ok);
    }
}
