//! The part of a ControllerDeployment that this gardenlet can render. Pure.

use api::gardencore::ControllerDeployment;
use kube::ResourceExt;
use serde_json::Value;

/// The first bytes of every gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Longest name of a registration: `extension-<name>` must be a valid name of a namespace.
const LONGEST_NAME: usize = 53;

/// A chart and its values.
#[derive(Debug, PartialEq)]
pub(super) struct Chart<'a> {
    /// A compressed archive.
    pub(super) archive: &'a [u8],
    /// The values of the operator.
    pub(super) values: Option<&'a Value>,
}

/// The chart of a deployment.
///
/// # Errors
/// A sentence for the condition `Valid`: the fault and the remedy.
pub(super) fn read_chart(deployment: &ControllerDeployment) -> Result<Chart<'_>, String> {
    let (name, fields) = (deployment.name_any(), &deployment.spec);
    let refuse = |why: &str| Err(format!("ControllerDeployment {name}: {why}"));
    if fields.inject_garden_kubeconfig == Some(true) {
        return refuse(
            "injectGardenKubeconfig is not supported: its pods get no access to the garden here; set it to false",
        );
    }
    let Some(helm) = &fields.helm else {
        return refuse("it has no helm: give helm.rawChart");
    };
    if helm.oci_repository.is_some() {
        return refuse(
            "helm.ociRepository is not supported: nothing is pulled here; put the chart's archive into helm.rawChart (helm package, base64)",
        );
    }
    let archive = helm
        .raw_chart
        .as_ref()
        .map_or(&[][..], |chart| chart.0.as_slice());
    if archive.is_empty() {
        return refuse("helm.rawChart is empty: put the chart's archive there (helm package, base64)");
    }
    if !archive.starts_with(&GZIP) {
        return refuse(
            "helm.rawChart is no archive that gzip has compressed: make it with helm package, and encode it once with base64",
        );
    }
    let values = helm
        .values
        .as_ref()
        .map(|values| &values.0)
        .filter(|values| !values.is_null());
    if values.is_some_and(|values| !values.is_object()) {
        return refuse("helm.values is no map: give names and values");
    }
    Ok(Chart { archive, values })
}

/// The name of the release and of the namespace.
///
/// # Errors
/// A sentence for the condition `Valid`.
pub(super) fn namespace_of(registration: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if registration.len() > LONGEST_NAME
        || registration.contains(|c| !allowed(c))
        || registration.starts_with('-')
    {
        return Err(format!(
            "ControllerRegistration {registration} gives no namespace extension-{registration}: it may have {LONGEST_NAME} small letters, digits and hyphens; register it under another name"
        ));
    }
    Ok(format!("extension-{registration}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    /// `H4sIAAAA` are the first bytes of an archive.
    fn deployment(fields: &Value) -> ControllerDeployment {
        let mut body = json!({"apiVersion": "core.gardener.cloud/v1", "kind": "ControllerDeployment", "metadata": {"name": "d"}});
        body.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        serde_json::from_value(body).unwrap()
    }

    #[test]
    fn what_cannot_be_rendered_says_what_to_do() {
        for (fields, words) in [
            (json!({}), "has no helm"),
            (json!({"helm": {}}), "rawChart is empty"),
            (json!({"helm": {"rawChart": ""}}), "rawChart is empty"),
            (
                json!({"helm": {"rawChart": "YXBpVmVyc2lvbjogdjI="}}),
                "no archive that gzip",
            ),
            (
                json!({"helm": {"ociRepository": {"ref": "r"}}}),
                "ociRepository is not supported",
            ),
            (json!({"helm": {"rawChart": "H4sIAAAA", "values": [1]}}), "no map"),
            (
                json!({"helm": {"rawChart": "H4sIAAAA"}, "injectGardenKubeconfig": true}),
                "no access to the garden",
            ),
        ] {
            let why = read_chart(&deployment(&fields)).unwrap_err();
            assert!(
                why.contains(words) && why.contains("ControllerDeployment d"),
                "{why}"
            );
        }
    }

    #[test]
    fn values_may_be_left_out() {
        for values in [json!(null), json!({})] {
            let fields = json!({"helm": {"rawChart": "H4sIAAAA", "values": values}});
            assert!(read_chart(&deployment(&fields)).is_ok());
        }
    }

    #[test]
    fn the_name_of_a_registration_becomes_that_of_a_namespace() {
        assert_eq!(
            namespace_of("provider-local").unwrap(),
            "extension-provider-local"
        );
        for name in ["with.dot", "-a", &"a".repeat(54)] {
            assert!(namespace_of(name).is_err(), "{name}");
        }
    }
}
