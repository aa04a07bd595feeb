//! IDs of zones. An ID is the name of a zone in all accounts. A name is the account's name of a zone, and is
//! used by pools, machine classes, instances and nodes' labels. In a real cloud, a request per account maps
//! an ID to a name. Here, a function maps the ID: the ID of the zone with the name `a` is `az-a`. So an ID
//! has exactly one name, and no name is the ID of the same zone.

use api::meta::ErrorCode;
use runtime::{Error, Result};

const PREFIX: &str = "az-";
/// Label of Nodes with the ID of the Node's zone.
pub const ID_LABEL: &str = "local.provider.extensions.gardener.cloud/zone-id";

/// The ID of the zone that accounts call by this name.
#[must_use]
pub fn id_of(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// The accounts' name of the zone with this ID. Whether the zone is in use is not known here.
///
/// # Errors
/// No zone has the ID: the author of the ID has to correct the ID.
pub fn name_of(id: &str) -> Result<&str> {
    let name = id.strip_prefix(PREFIX);
    name.filter(|name| is_name(name)).ok_or_else(|| {
        Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!(
                "{id:?} is no ID of a zone of the local cloud: an ID is {PREFIX:?} and the zone's name, {:?} for \
                 the zone \"a\"",
                id_of("a")
            ),
        )
    })
}

/// A zone's name is part of a node's label.
fn is_name(name: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let at_ends = |c: char| c.is_ascii_alphanumeric();
    name.chars().all(inside) && name.starts_with(at_ends) && name.ends_with(at_ends)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a")]
    #[case("local-1")]
    #[case("az-a")]
    fn an_id_has_one_name_and_differs_from_it(#[case] name: &str) {
        let id = id_of(name);
        assert_ne!(id, name);
        assert_eq!(name_of(&id).unwrap(), name);
    }

    #[rstest]
    #[case::a_name("a")]
    #[case::empty("")]
    #[case::no_name("az-")]
    #[case::of_no_label("az-a/b")]
    #[case::blank("az-a ")]
    fn what_is_no_id_is_refused(#[case] id: &str) {
        let refused = name_of(id).unwrap_err();
        assert_eq!(refused.codes(), [ErrorCode::ErrConfigurationProblem]);
        assert!(refused.to_string().contains("\"az-a\""), "{refused}");
    }
}
