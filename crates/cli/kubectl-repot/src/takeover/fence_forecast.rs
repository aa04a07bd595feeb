//! Whether a fence would stop all processes of the old seed, as far as the garden knows: pure decisions with
//! the rules of garden-controller-manager. The garden decides again on each request.

use std::{collections::BTreeSet, net::SocketAddr};

use api::{
    constants::condition::{OWNER_CHECKS_COMPLETE, OWNERSHIP_VERIFIED, SHOOT_STATE_UP_TO_DATE},
    gardencore::{Seed, Shoot, ShootStatus, seed::OwnerChecks, shoot::OwnershipPhase},
};
use kube::ResourceExt;
use placement::takeover::{
    EtcdFenceGap, OwnerCheckGap, SHORTEST_FENCE_SECONDS, find_etcd_fence_gap, find_owner_check_gap,
    is_state_saved,
};

use crate::terminal::one_line;

/// Why no fence stops all processes of the source. Empty where the fence holds, as far as the garden knows.
#[must_use]
pub(super) fn obstacles(shoot: &Shoot, source: &Seed, destination: &Seed) -> Vec<String> {
    let mut obstacles = Vec::new();
    for seed in [source, destination] {
        if !seed.spec.checks_owners() {
            obstacles.push(format!(
                "Seed {} does not publish in DNS which shoots the seed owns (spec.settings.ownerChecks.enabled)",
                seed.name_any()
            ));
        }
    }
    let status = shoot.status.clone().unwrap_or_default();
    let from = source.name_any();
    let is_claimed = phase(&status) == Some(OwnershipPhase::Claiming);
    if !is_claimed && !placement::is_asleep_on_request(shoot) {
        obstacles.extend(unverified(shoot, source));
    }
    if servers(source) != servers(destination) {
        obstacles.push(format!(
            "the Seeds {from} and {} name different servers (spec.settings.ownerChecks.authorities)",
            destination.name_any()
        ));
    }
    if !is_claimed {
        obstacles.extend(incomplete(&status, source));
    }
    obstacles
}

/// Why no seed can restore the shoot, with any fence.
#[must_use]
pub(super) fn unsaved(shoot: &Shoot) -> Option<String> {
    if placement::is_half_created(shoot) {
        return Some("no seed has reported the end of the creation, so no backup of the shoot is known (status.lastOperation)".to_owned());
    }
    (!is_state_saved(shoot)).then(|| {
        format!("the garden has no state of the shoot that a seed could restore (constraint {SHOOT_STATE_UP_TO_DATE})")
    })
}

/// Processes of the old seed that no fence stops.
#[must_use]
pub(super) fn unfenced_processes(shoot: &Shoot, from: &str) -> Vec<String> {
    let status = shoot.status.as_ref();
    let mut processes = Vec::new();
    for entry in status.iter().flat_map(|status| &status.owner_checks) {
        let unchecked = entry.unchecked.iter();
        processes.extend(unchecked.map(|process| {
            format!(
                "{process} in seed {} runs without an owner check",
                entry.seed_name
            )
        }));
    }
    if status.is_none_or(|status| status.owner_check_in(from).is_none()) {
        processes.push(format!(
            "seed {from} has reported no owner checks (status.ownerChecks)"
        ));
    }
    processes.push(format!(
        "actuators of providers in seed {from} stop only if they use the library of Repot for extensions"
    ));
    processes
}

/// The longest fence of all seeds that may still have processes of the shoot, in seconds.
#[must_use]
pub(super) fn fence_seconds(shoot: &Shoot, source: Option<&Seed>) -> i64 {
    let entries = shoot.status.iter().flat_map(|status| &status.owner_checks);
    let of_source = source.and_then(|source| source.status.as_ref()?.owner_check_fence_seconds);
    let all = entries.filter_map(|entry| entry.fence_seconds).chain(of_source);
    all.max().unwrap_or_default().max(SHORTEST_FENCE_SECONDS.into())
}

fn phase(status: &ShootStatus) -> Option<OwnershipPhase> {
    status.ownership.as_ref()?.phase
}

fn servers(seed: &Seed) -> Option<BTreeSet<SocketAddr>> {
    Some(seed.spec.owner_authorities().ok()?.into_iter().collect())
}

/// Why waiting cannot fence etcd of the source.
fn unverified(shoot: &Shoot, source: &Seed) -> Option<String> {
    let from = source.name_any();
    let tolerates = source
        .spec
        .owner_checks()
        .is_some_and(OwnerChecks::tolerates_silence);
    Some(match find_etcd_fence_gap(shoot, tolerates)? {
        EtcdFenceGap::NeverReported => format!(
            "seed {from} has never reported that etcd asks for the owner (condition {OWNERSHIP_VERIFIED})"
        ),
        EtcdFenceGap::OutlastsFence => format!(
            "seed {from} serves the shoot for longer than a fence lasts (condition {OWNERSHIP_VERIFIED})"
        ),
        EtcdFenceGap::ToleratesSilence => format!(
            "seed {from} serves the shoot without an answer about the owner (ownerChecks.silence: Tolerate)"
        ),
    })
}

/// Why processes of the source may have no owner check.
fn incomplete(status: &ShootStatus, source: &Seed) -> Option<String> {
    let from = source.name_any();
    Some(match find_owner_check_gap(status, source)? {
        OwnerCheckGap::NeverReported => format!(
            "seed {from} has never reported that all processes check the owner (condition {OWNER_CHECKS_COMPLETE})"
        ),
        OwnerCheckGap::Incomplete(complete) => format!(
            "condition {OWNER_CHECKS_COMPLETE} is {:?}: {}",
            complete.status,
            one_line(&complete.message)
        ),
        OwnerCheckGap::Unfinished => format!(
            "a reconciliation in seed {from} has begun to change the owner checks and has not ended (status.ownerChecks)"
        ),
        // Terms of a different epoch have a different hash, too.
        OwnerCheckGap::OtherEpoch | OwnerCheckGap::SeedEdited => format!(
            "Seed {from} was edited after the last reconciliation of the shoot: undo the edit of \
             spec.settings.ownerChecks, spec.dns or status.clusterIdentity"
        ),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn seed(name: &str, checks: &str) -> Seed {
        serde_yaml_ng::from_str(&format!(
            "metadata: {{name: {name}}}\nspec: {{dns: {{}}, networks: {{pods: p, services: s}}, provider: {{type: t, region: r}}, \
             settings: {{ownerChecks: {checks}}}}}\n"
        ))
        .unwrap()
    }

    fn condition(type_: &str, status: &str, reason: &str) -> String {
        format!(
            "{{type: {type_}, status: '{status}', reason: {reason}, message: m, lastTransitionTime: 2026-01-01T00:00:00Z, \
             lastUpdateTime: 2026-01-01T00:00:00Z}}"
        )
    }

    fn shoot(conditions: &[String], entry: &str) -> Shoot {
        serde_yaml_ng::from_str(&format!(
            "metadata: {{name: demo}}\nspec: {{region: r, provider: {{type: t}}, seedName: a}}\n\
             status: {{seedName: a, conditions: [{}], ownerChecks: [{entry}]}}\n",
            conditions.join(", ")
        ))
        .unwrap()
    }

    fn complete() -> Vec<String> {
        vec![
            condition("OwnershipVerified", "True", "Owner"),
            condition("OwnerChecksComplete", "True", "TermsApplied"),
        ]
    }

    fn entry_for(source: &Seed) -> String {
        let terms = placement::owner_terms::hash(source, 1).unwrap();
        format!("{{seedName: a, epoch: 1, terms: {terms:?}, fenceSeconds: 40, unchecked: [Deployment mcm]}}")
    }

    #[test]
    fn a_fence_holds_where_all_checks_are_reported() {
        let (source, destination) = (seed("a", "{enabled: true}"), seed("b", "{enabled: true}"));
        let shoot = shoot(&complete(), &entry_for(&source));
        assert_eq!(obstacles(&shoot, &source, &destination), [""; 0]);
        assert_eq!(fence_seconds(&shoot, Some(&source)), 40);
        let processes = unfenced_processes(&shoot, "a");
        assert_eq!(
            processes[0],
            "Deployment mcm in seed a runs without an owner check"
        );
    }

    #[test]
    fn each_missing_report_is_an_obstacle() {
        let (on, off) = (seed("a", "{enabled: true}"), seed("a", "{enabled: false}"));
        let other = seed("b", "{enabled: true, authorities: ['192.0.2.1:53']}");
        let destination = seed("b", "{enabled: true}");
        let tolerant = seed("a", "{enabled: true, silence: Tolerate}");
        let entry = entry_for(&on);
        let cases = vec![
            (shoot(&complete(), &entry), &off, &destination, "does not publish"),
            (shoot(&complete(), &entry), &on, &other, "different servers"),
            (
                shoot(&complete()[1..], &entry),
                &on,
                &destination,
                "etcd asks for the owner",
            ),
            (
                shoot(&complete()[..1], &entry),
                &on,
                &destination,
                "all processes check",
            ),
            (
                shoot(&complete(), "{seedName: a, epoch: 1}"),
                &on,
                &destination,
                "has not ended",
            ),
            (shoot(&complete(), &entry), &tolerant, &destination, "Tolerate"),
        ];
        for (shoot, source, destination, words) in cases {
            let obstacles = obstacles(&shoot, source, destination);
            assert!(
                obstacles.iter().any(|why| why.contains(words)),
                "{words}: {obstacles:?}"
            );
        }
    }

    #[test]
    fn a_report_of_hibernation_counts_only_at_the_request_of_a_user() {
        let (source, destination) = (seed("a", "{enabled: true}"), seed("b", "{enabled: true}"));
        let mut shoot = shoot(&complete()[1..], &entry_for(&source));
        shoot.status.as_mut().unwrap().hibernated = true;
        let refused = obstacles(&shoot, &source, &destination);
        assert!(refused[0].contains("etcd asks for the owner"), "{refused:?}");
        shoot.spec.hibernation = serde_yaml_ng::from_str("{enabled: true}").unwrap();
        assert_eq!(obstacles(&shoot, &source, &destination), [""; 0]);
    }

    #[test]
    fn a_statement_of_a_person_replaces_the_report_of_etcd() {
        let tolerant = seed("a", "{enabled: true, silence: Tolerate}");
        let stated = [
            condition("OwnershipVerified", "Unknown", "SeedIsOff"),
            complete().remove(1),
        ];
        let shoot = shoot(&stated, &entry_for(&tolerant));
        assert_eq!(
            obstacles(&shoot, &tolerant, &seed("b", "{enabled: true}")),
            [""; 0]
        );
    }

    #[test]
    fn a_shoot_without_a_saved_state_cannot_be_restored() {
        assert!(unsaved(&shoot(&[], "{seedName: a, epoch: 1}")).is_some());
        let saved = condition("ShootStateUpToDate", "True", "ShootStateSynced");
        let mut shoot = shoot(&[], "{seedName: a, epoch: 1}");
        let status = shoot.status.as_mut().unwrap();
        status.constraints = serde_yaml_ng::from_str(&format!("[{saved}]")).unwrap();
        let last =
            "{type: Create, state: Error, progress: 1, description: d, lastUpdateTime: 2026-01-01T00:00:00Z}";
        status.last_operation = serde_yaml_ng::from_str(last).unwrap();
        assert!(unsaved(&shoot).unwrap().contains("the end of the creation"));
        shoot.status.as_mut().unwrap().last_operation = None;
        assert!(unsaved(&shoot).unwrap().contains("the end of the creation"));
        let last = last.replace("Error", "Succeeded");
        shoot.status.as_mut().unwrap().last_operation = serde_yaml_ng::from_str(&last).unwrap();
        assert_eq!(unsaved(&shoot), None);
    }
}
