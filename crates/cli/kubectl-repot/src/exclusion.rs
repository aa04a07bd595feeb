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

/// A sentence about each entry that leaves none of the Shoots out. No refusal: the Shoot may have left the
/// seed or may be deleted since a former command. The sentence shows a mistyped name before the approval.
pub async fn describe_unmatched(
    session: &Session,
    excluded: &[String],
    read: &[Shoot],
    seed: &str,
) -> Vec<String> {
    let mut sentences = Vec::new();
    for entry in excluded {
        if read
            .iter()
            .any(|shoot| is_excluded(shoot, slice::from_ref(entry)))
        {
            continue;
        }
        let reason = match entry.split_once('/') {
            None => "write NAMESPACE/NAME".to_owned(),
            Some((_, ALL_NAMES)) => "the namespace has no such Shoot".to_owned(),
            Some((namespace, name)) => describe_found(Box::pin(session.find_shoot(namespace, name)).await),
        };
        sentences.push(format!(
            "warning: --exclude {entry} leaves no Shoot on seed {seed} out: {reason}"
        ));
    }
    sentences
}

/// Where the Shoot of an entry is.
fn describe_found(found: Result<Option<Shoot>, Failure>) -> String {
    match found {
        Ok(None) => "no Shoot has this name".to_owned(),
        Ok(Some(shoot)) => {
            let acting = shoot.status.and_then(|status| status.seed_name);
            acting.map_or_else(
                || "the Shoot is on no seed".to_owned(),
                |acting| format!("the Shoot is on seed {acting}"),
            )
        }
        Err(failure) => failure.to_string(),
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
        assert_eq!(describe_found(Ok(None)), "no Shoot has this name");
        assert_eq!(describe_found(Ok(Some(shoot("{}")))), "the Shoot is on no seed");
        assert_eq!(
            describe_found(Ok(Some(shoot("{seedName: b}")))),
            "the Shoot is on seed b"
        );
        assert_eq!(describe_found(Err(Failure::refused("no right"))), "no right");
    }
}
