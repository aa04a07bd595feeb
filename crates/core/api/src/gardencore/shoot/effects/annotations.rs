//! Annotations of Gardener without effect.

/// An annotation of Gardener that is accepted on a Shoot or Seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The key. A key that ends with a slash stands for all keys with this prefix.
    pub key: &'static str,
    /// The effect that the annotation has in Gardener.
    pub meaning: &'static str,
    /// The values that have no effect, as CEL over the `value`. `None`: all values.
    pub when: Option<&'static str>,
}

const fn annotation(key: &'static str, meaning: &'static str) -> Annotation {
    Annotation {
        key,
        meaning,
        when: None,
    }
}

/// Gardener reads a switch as Go's `strconv.ParseBool` does, and takes an unreadable value for `false`.
const fn switch(key: &'static str, meaning: &'static str) -> Annotation {
    Annotation {
        key,
        meaning,
        when: Some(NOT_A_SWITCH),
    }
}

const NOT_A_SWITCH: &str =
    "!(value in ['1', 't', 'T', 'true', 'TRUE', 'True', '0', 'f', 'F', 'false', 'FALSE', 'False'])";

/// Annotations of a Shoot without effect.
pub const SHOOT_ANNOTATIONS: &[Annotation] = &[
    annotation(
        "alpha.control-plane.scaling.shoot.gardener.cloud/",
        "keeps the control plane from being scaled down",
    ),
    annotation(
        "alpha.control-plane.shoot.gardener.cloud/",
        "configures the VPN between control plane and nodes",
    ),
    annotation(
        "alpha.featuregates.shoot.gardener.cloud/",
        "switches features of the shoot on or off",
    ),
    annotation(
        "alpha.kube-apiserver.scaling.shoot.gardener.cloud/",
        "sizes the API server",
    ),
    annotation(
        "authentication.gardener.cloud/issuer",
        "lets the garden publish the issuer of tokens",
    ),
    annotation(
        "maintenance.shoot.gardener.cloud/needs-retry-operation",
        "retries a failed Shoot in the next maintenance window; `gardener.cloud/operation=retry` does at once",
    ),
    annotation(
        "migration.gardener.cloud/allow-distant-regions",
        "allows a move to a far region; moves between regions are not restricted",
    ),
    annotation(
        "migration.gardener.cloud/live-migrate",
        "keeps the API serving during a move",
    ),
    annotation(
        "shoot.gardener.cloud/cleanup-extended-apis-finalize-grace-period-seconds",
        "removes finalizers of extended APIs after this time in a deletion",
    ),
    annotation(
        "shoot.gardener.cloud/cleanup-infrastructure-resources-grace-period-seconds",
        "delays the deletion of the infrastructure",
    ),
    annotation(
        "shoot.gardener.cloud/cleanup-kubernetes-resources-finalize-grace-period-seconds",
        "removes finalizers of objects in the shoot after this time in a deletion",
    ),
    annotation(
        "shoot.gardener.cloud/cleanup-namespaces-finalize-grace-period-seconds",
        "removes finalizers of namespaces in the shoot after this time in a deletion",
    ),
    annotation(
        "shoot.gardener.cloud/cleanup-webhooks-finalize-grace-period-seconds",
        "removes finalizers of webhooks in the shoot after this time in a deletion",
    ),
    annotation(
        "shoot.gardener.cloud/cloud-config-execution-max-delay-seconds",
        "spreads updates of nodes over this time",
    ),
    annotation(
        "shoot.gardener.cloud/disable-istio-tls-termination",
        "ends TLS at the API server",
    ),
    annotation(
        "shoot.gardener.cloud/expiration-timestamp",
        "deletes the Shoot at this time",
    ),
    switch(
        "shoot.gardener.cloud/ignore",
        "holds back new reconciliations; only a truth value such as `true` does",
    ),
    annotation("shoot.gardener.cloud/ignore-alerts", "silences alerts"),
    annotation(
        "shoot.gardener.cloud/infrastructure-cleanup-wait-period-seconds",
        "delays the deletion of the infrastructure",
    ),
    annotation(
        "shoot.gardener.cloud/skip-readiness",
        "does not wait for nodes and components",
    ),
    annotation(
        "shoot.gardener.cloud/sync-period",
        "sets how often the Shoot is reconciled; the gardenlet's flag does",
    ),
    annotation(
        "shoot.gardener.cloud/tasks",
        "adds tasks to the next reconciliation; each reconciliation runs all tasks",
    ),
    annotation(
        "shoot.gardener.cloud/use-as-seed",
        "registers the shoot as a seed",
    ),
];

/// Annotations of a Seed without effect.
pub const SEED_ANNOTATIONS: &[Annotation] = &[
    annotation(
        "gardener.cloud/operation",
        "reconciles the Seed, or renews credentials of its gardenlet and extensions",
    ),
    switch(
        "shoot.gardener.cloud/emergency-stop-reconciliations",
        "holds back new reconciliations of all Shoots of the seed; only a truth value such as `true` does",
    ),
];

/// All annotations of an object, in CEL.
pub(super) const ALL: &str = "metadata.?annotations.orValue({})";

/// A list of the keys of annotations that this write adds or changes and that have no effect. An annotation
/// from before is not reported again: controllers write annotations of the same object.
pub(super) fn idle_annotations(annotations: &[Annotation]) -> String {
    let judged: Vec<String> = annotations
        .iter()
        .map(|annotation| {
            let Annotation { key, when, .. } = annotation;
            let is_it = if key.ends_with('/') {
                format!("key.startsWith('{key}')")
            } else {
                format!("key == '{key}'")
            };
            let value = |when: &str| format!(" && [object.metadata.annotations[key]].exists(value, {when})");
            format!("{is_it}{}", when.map_or_else(String::new, value))
        })
        .collect();
    let same = format!("oldObject != null && oldObject.{ALL}[?key] == object.{ALL}[?key]");
    format!(
        "object.{ALL}.filter(key, !({same}) && ({})).map(key, 'metadata.annotations[' + key + ']')",
        judged.join(" || ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_is_reported_once_and_a_prefix_stands_for_all_its_keys() {
        let reported = idle_annotations(&[
            annotation("x.gardener.cloud/", ""),
            switch("gardener.cloud/y", ""),
        ]);
        let written = "object.metadata.?annotations.orValue({})";
        let before = "oldObject.metadata.?annotations.orValue({})";
        assert_eq!(
            reported,
            format!(
                "{written}.filter(key, !(oldObject != null && {before}[?key] == {written}[?key]) \
                 && (key.startsWith('x.gardener.cloud/') || key == 'gardener.cloud/y' \
                 && [object.metadata.annotations[key]].exists(value, {NOT_A_SWITCH}))).map(key, 'metadata.annotations[' + key + ']')"
            )
        );
    }
}
