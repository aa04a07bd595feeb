//! The expansion of a rule of a role into rights.

use serde::Deserialize;

use super::shapes::Cluster;

/// A right: a verb on a resource of a process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    pub process: String,
    pub cluster: Cluster,
    /// The namespace of the binding. `None`: the whole cluster.
    pub namespace: Option<String>,
    pub group: String,
    /// With the subresource.
    pub resource: String,
    /// Empty: all names.
    pub names: Vec<String>,
    pub verb: String,
    /// The value of the chart that the right needs. `None`: each installation has the right.
    pub value: Option<String>,
    /// The file with the right, relative to the repository.
    pub file: String,
}

/// A rule of a Role or ClusterRole, from a chart or from the sources.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyRule {
    #[serde(default)]
    pub api_groups: Vec<String>,
    #[serde(default)]
    pub resources: Vec<String>,
    #[serde(default)]
    pub resource_names: Vec<String>,
    #[serde(default)]
    pub verbs: Vec<String>,
}

/// The process that a binding gives rights to, and the scope of the binding.
pub struct RightHolder {
    pub process: String,
    pub cluster: Cluster,
    /// The namespace of the binding. `None`: the whole cluster.
    pub namespace: Option<String>,
    /// The file with the rules, relative to the repository.
    pub file: String,
}

impl RightHolder {
    /// A right for each verb on each resource of each group of the rule.
    pub fn expand(&self, rule: &PolicyRule) -> Vec<Right> {
        let mut rights = Vec::new();
        for group in &rule.api_groups {
            for resource in &rule.resources {
                for verb in &rule.verbs {
                    rights.push(Right {
                        process: self.process.clone(),
                        cluster: self.cluster,
                        namespace: self.namespace.clone(),
                        group: group.clone(),
                        resource: resource.clone(),
                        names: rule.resource_names.clone(),
                        verb: verb.clone(),
                        value: None,
                        file: self.file.clone(),
                    });
                }
            }
        }
        rights
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The page would lack the URLs.
    #[test]
    fn a_rule_with_a_field_that_is_not_expanded_is_an_error() {
        let rule = "{nonResourceURLs: [/metrics], verbs: [get]}";
        assert!(serde_yaml_ng::from_str::<PolicyRule>(rule).is_err());
    }

    #[test]
    fn each_right_has_the_holder_and_the_names_of_the_rule() {
        let holder = RightHolder {
            process: "gardenlet".to_owned(),
            cluster: Cluster::Garden,
            namespace: Some("garden".to_owned()),
            file: "role.yaml".to_owned(),
        };
        let rule =
            "{apiGroups: ['', apps], resources: [a, b/status], resourceNames: [c], verbs: [get, list]}";
        let rights = holder.expand(&serde_yaml_ng::from_str(rule).unwrap());
        assert_eq!(rights.len(), 8);
        for right in rights {
            assert_eq!(right.namespace.as_deref(), Some("garden"));
            assert_eq!(right.names, ["c"]);
            assert_eq!(right.value, None);
        }
    }
}
