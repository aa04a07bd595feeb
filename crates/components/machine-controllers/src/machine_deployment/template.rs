//! Finds the set of a template. The template of a set counts, not the hash in the name: a set that was
//! created elsewhere has a different hash of the same template, and must not be taken for an old set (R7-03).

use api::machine::{MachineSet, MachineTemplateSpec};
use ring::digest::{SHA256, digest};
use runtime::{Error, Result};
use serde_json::{Value, json};

use crate::{constants::TEMPLATE_HASH, hex::hex};

/// Characters of a hash. Short, because the name of a Node has at most 63 characters.
const LENGTH: usize = 5;

/// The fields of a template that need a new machine: class, labels, annotations. The remaining fields are
/// changed in place.
fn template_identity(template: &MachineTemplateSpec) -> Value {
    let meta = template.metadata.clone().unwrap_or_default();
    let mut labels = meta.labels.unwrap_or_default();
    labels.remove(TEMPLATE_HASH);
    let class = template.spec.as_ref().and_then(|spec| spec.class.as_ref());
    json!({
        "labels": labels,
        "annotations": meta.annotations.unwrap_or_default(),
        "class": class.and_then(|class| class.name.as_ref()),
    })
}

/// Whether the set has a template with the same identity.
pub fn has_same_template(set: &MachineSet, template: &MachineTemplateSpec) -> bool {
    set.spec
        .template
        .as_ref()
        .is_some_and(|own| template_identity(own) == template_identity(template))
}

/// The hash of a template, with a new value after each collision.
pub fn hash_template(template: &MachineTemplateSpec, collisions: i32) -> Result<String> {
    let text = serde_json::to_vec(&json!([template_identity(template), collisions]))
        .map_err(|error| Error::bug("a template does not serialise").caused_by(error))?;
    let hash = digest(&SHA256, &text);
    Ok(hex(hash.as_ref()).chars().take(LENGTH).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rstest::rstest;

    use super::*;

    fn template(body: Value) -> MachineTemplateSpec {
        serde_json::from_value(body).unwrap()
    }

    fn base() -> Value {
        json!({"metadata": {"labels": {"pool": "a"}}, "spec": {"class": {"kind": "MachineClass", "name": "c"}}})
    }

    #[rstest]
    #[case::class("/spec/class/name", json!("d"), false)]
    #[case::label("/metadata/labels/pool", json!("b"), false)]
    #[case::another_label("/metadata/labels/more", json!("b"), false)]
    #[case::annotation("/metadata/annotations", json!({"a": "b"}), false)]
    #[case::the_hash_itself("/metadata/labels/machine-template-hash", json!("12345"), true)]
    #[case::kind_of_class("/spec/class/kind", json!("AWSMachineClass"), true)]
    #[case::bound("/spec/drainTimeout", json!("1h"), true)]
    #[case::node_template("/spec/nodeTemplate", json!({"metadata": {"labels": {"x": "y"}}}), true)]
    fn what_makes_a_machine_another_one(#[case] path: &str, #[case] value: Value, #[case] alike: bool) {
        let mut changed = base();
        let (parent, field) = path.rsplit_once('/').unwrap();
        changed.pointer_mut(parent).unwrap()[field] = value;
        let (before, after) = (template(base()), template(changed));
        let mut set = MachineSet::default();
        set.spec.template = Some(before.clone());
        assert_eq!(has_same_template(&set, &after), alike);
        let (former, present) = (hash_template(&before, 0), hash_template(&after, 0));
        assert_eq!(former.unwrap() == present.unwrap(), alike);
    }

    #[test]
    fn a_collision_gives_another_hash_and_the_same_template_the_same() {
        let template = template(base());
        let hashes: std::collections::BTreeSet<_> =
            (0..4).map(|n| hash_template(&template, n).unwrap()).collect();
        assert_eq!(hashes.len(), 4);
        assert!(hashes.iter().all(|hash| hash.len() == LENGTH));
        // The same template keeps the same hash: a different hash in a later version would roll all machines.
        assert_eq!(
            hash_template(&template, 0).unwrap(),
            hash_template(&template, 0).unwrap()
        );
    }
}
