//! Shoots that the caller leaves out of a drain, or of a takeover of a seed.

use std::slice;

use api::gardencore::Shoot;
use kube::ResourceExt;

use crate::{failure::Failure, session::Session};

/// In the place of a name: all Shoots of the namespace.
pub const ALL_NAMES: &str = "*";

/// Whether an entry of the list, `NAMESPACE/NAME` or `NAMESPACE/*`, leaves the Shoot out.
#[must_use]
pub fn is_excluded(shoot: &Shoot, excluded: &[String]) -> bool {
    let (namespace, name) = (shoot.namespace().unwrap_or_default(), shoot.name_any());
    let mut entries = excluded.iter().filter_map(|entry| entry.split_once('/'));
    entries.any(|(project, excluded)| project == namespace && (excluded == ALL_NAMES || excluded == name))
}

/// An entry of the list that leaves no Shoot out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmatchedEntry {
    sentence: String,
    /// Whether no Shoot of the entry is known, so that the entry may be mistyped.
    may_be_mistyped: bool,
}

impl UnmatchedEntry {
    /// The warning above the question of a command.
    #[must_use]
    pub fn warning(&self) -> String {
        format!("warning: {}", self.sentence)
    }
}

/// The entries that leave none of the Shoots out. The Shoot of an entry may have left the seed since a former
/// command.
pub async fn find_unmatched(
    session: &Session,
    excluded: &[String],
    read: &[Shoot],
    seed: &str,
) -> Vec<UnmatchedEntry> {
    let mut unmatched = Vec::new();
    for entry in excluded {
        if read
            .iter()
            .any(|shoot| is_excluded(shoot, slice::from_ref(entry)))
        {
            continue;
        }
        let (reason, may_be_mistyped) = match entry.split_once('/') {
            None => ("write NAMESPACE/NAME".to_owned(), true),
            Some((namespace, ALL_NAMES)) => describe_namespace(Box::pin(session.has_shoots(namespace)).await),
            Some((namespace, name)) => describe_found(Box::pin(session.find_shoot(namespace, name)).await),
        };
        unmatched.push(UnmatchedEntry {
            sentence: format!("--exclude {entry} leaves no Shoot on seed {seed} out: {reason}"),
            may_be_mistyped,
        });
    }
    unmatched
}

/// With an approval in advance no person reads the warnings. The shoot of a mistyped entry would move, or
/// would be taken over with a loss.
///
/// # Errors
/// A refusal where the caller has approved in advance, and an entry may be mistyped.
pub fn check_unmatched(unmatched: &[UnmatchedEntry], approval: Option<&str>) -> Result<(), Failure> {
    let mistyped = unmatched.iter().find(|entry| entry.may_be_mistyped);
    match mistyped {
        Some(entry) if approval.is_some() => Err(Failure::refused(format!(
            "{}; nothing was changed: correct or remove this --exclude, or repeat the command without --yes",
            entry.sentence
        ))),
        _ => Ok(()),
    }
}

/// Where the Shoot of an entry is, and whether the entry may be mistyped.
fn describe_found(found: Result<Option<Shoot>, Failure>) -> (String, bool) {
    match found {
        Ok(None) => ("no Shoot has this name".to_owned(), true),
        Ok(Some(shoot)) => {
            let acting = shoot.status.and_then(|status| status.seed_name);
            let place = acting.map_or_else(
                || "the Shoot is on no seed".to_owned(),
                |acting| format!("the Shoot is on seed {acting}"),
            );
            (place, false)
        }
        Err(failure) => (failure.to_string(), true),
    }
}

/// Why an entry for a namespace leaves no Shoot out, and whether the entry may be mistyped.
fn describe_namespace(has_shoots: Result<bool, Failure>) -> (String, bool) {
    match has_shoots {
        Ok(true) => ("the namespace has no such Shoot".to_owned(), false),
        Ok(false) => ("the namespace has no Shoots".to_owned(), true),
        Err(failure) => (failure.to_string(), true),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shoot(status: &str) -> Shoot {
        let yaml = format!(
            "metadata: {{name: demo, namespace: garden-dev}}\nspec: {{region: r, provider: {{type: t}}}}\nstatus: {status}\n"
        );
        serde_yaml_ng::from_str(&yaml).unwrap()
    }

    #[test]
    fn a_shoot_is_left_out_by_namespace_and_name() {
        let is_left_out = |entry: &str| is_excluded(&shoot("{}"), &[entry.to_owned()]);
        for entry in ["garden-dev/demo", "garden-dev/*"] {
            assert!(is_left_out(entry), "{entry}");
        }
        for entry in [
            "garden-dev/demo2",
            "garden-test/demo",
            "garden-test/*",
            "*/demo",
            "demo",
            "/demo",
            "*",
        ] {
            assert!(!is_left_out(entry), "{entry}");
        }
    }

    #[test]
    fn an_entry_without_a_shoot_on_the_seed_has_a_reason() {
        let no_right = || Failure::refused("no right");
        for ((reason, may_be_mistyped), expected, is_doubtful) in [
            (describe_found(Ok(None)), "no Shoot has this name", true),
            (
                describe_found(Ok(Some(shoot("{}")))),
                "the Shoot is on no seed",
                false,
            ),
            (
                describe_found(Ok(Some(shoot("{seedName: b}")))),
                "the Shoot is on seed b",
                false,
            ),
            (describe_found(Err(no_right())), "no right", true),
            (
                describe_namespace(Ok(true)),
                "the namespace has no such Shoot",
                false,
            ),
            (describe_namespace(Ok(false)), "the namespace has no Shoots", true),
            (describe_namespace(Err(no_right())), "no right", true),
        ] {
            assert_eq!((reason.as_str(), may_be_mistyped), (expected, is_doubtful));
        }
    }

    /// Otherwise the shoot that was to stay moves, or is taken over with a loss.
    #[test]
    fn an_approval_in_advance_is_refused_beside_a_mistyped_entry() {
        let entry = |may_be_mistyped: bool| UnmatchedEntry {
            sentence: "--exclude x/y leaves no Shoot out".to_owned(),
            may_be_mistyped,
        };
        let all = [entry(false), entry(true)];
        let refused = check_unmatched(&all, Some("a")).unwrap_err();
        assert!(
            matches!(&refused, Failure::Refused(why) if why.starts_with("--exclude x/y")),
            "{refused}"
        );
        assert_eq!(check_unmatched(&all, None), Ok(()));
        assert_eq!(check_unmatched(&all[..1], Some("a")), Ok(()));
    }
}
