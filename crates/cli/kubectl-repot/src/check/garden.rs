//! Checks of the garden: the API server, the kinds and the admission policies.

use std::collections::BTreeMap;

use api::{Target, all_crds};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use kube::Api;
use runtime::client::Cluster;

use super::report::CheckLine;
use crate::{failure::Failure, session::Session};

/// The oldest minor version of Kubernetes, as `kubeVersion` of the charts.
const OLDEST_KUBERNETES: (u64, u64) = (1, 30);
/// Bindings of the policies that keep two seeds from acting on the same shoot.
const POLICIES: [&str; 4] = [
    "gardenlet-shoot",
    "shoot-seed-name",
    "shoot-ownership",
    "shoot-force-restore",
];

/// Asks the API server for the version.
///
/// # Errors
/// The garden does not answer, so that no check is possible.
pub(super) async fn reach(session: &Session) -> Result<(String, Vec<CheckLine>), Failure> {
    let client = session.garden().client();
    let doing = "the version of the garden's Kubernetes cannot be read";
    let info = session.request(doing, client.apiserver_version()).await?;
    let line = CheckLine::ok("the API server answers");
    Ok((info.git_version, vec![line]))
}

/// Whether the version of Kubernetes is supported.
pub(super) fn judge_version(version: &str) -> CheckLine {
    let (major, minor) = OLDEST_KUBERNETES;
    match parse_minor(version) {
        Some(found) if found < OLDEST_KUBERNETES => CheckLine::fail(
            format!("Kubernetes has version {version}"),
            format!("upgrade the garden to Kubernetes {major}.{minor} or later"),
        ),
        Some(_) => CheckLine::ok(format!("Kubernetes has version {version}")),
        None => CheckLine::warn(
            format!("Kubernetes has the unknown version {version}"),
            format!("use Kubernetes {major}.{minor} or later"),
        ),
    }
}

/// Major and minor version.
fn parse_minor(version: &str) -> Option<(u64, u64)> {
    let mut numbers = version.trim_start_matches('v').split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Whether the garden serves all kinds of this version.
pub(super) async fn kinds(session: &Session, before_install: bool) -> Vec<CheckLine> {
    let mut missing = Vec::new();
    let mut count = 0;
    for (group_version, kinds) in wanted_kinds() {
        let served = match Box::pin(served(session, &group_version)).await {
            Ok(served) => served,
            Err(failure) => return vec![CheckLine::unreadable(&failure)],
        };
        count += kinds.len();
        missing.extend(kinds.into_iter().filter(|kind| !served.contains(kind)));
    }
    vec![judge_kinds(count, &missing, before_install)]
}

/// The plural names of the kinds, by group and version.
fn wanted_kinds() -> BTreeMap<String, Vec<String>> {
    let mut wanted: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for crd in all_crds().into_iter().filter(|crd| crd.target == Target::Garden) {
        let spec = crd.definition.spec;
        for version in spec.versions.iter().filter(|version| version.served) {
            let group_version = format!("{}/{}", spec.group, version.name);
            wanted
                .entry(group_version)
                .or_default()
                .push(spec.names.plural.clone());
        }
    }
    wanted
}

/// The plural names that the garden serves. Empty for an unknown group.
async fn served(session: &Session, group_version: &str) -> Result<Vec<String>, Failure> {
    let client = session.garden().client();
    let doing = format!("the kinds of {group_version} cannot be read");
    let request = async {
        match client.list_api_group_resources(group_version).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
            answer => answer.map(|list| list.resources),
        }
    };
    let resources = session.request(&doing, request).await?;
    Ok(resources.into_iter().map(|resource| resource.name).collect())
}

fn judge_kinds(count: usize, missing: &[String], before_install: bool) -> CheckLine {
    let is_complete = missing.is_empty();
    match (before_install, missing.len() == count) {
        (true, true) => CheckLine::ok("no kind of the suite is installed yet"),
        (true, false) => CheckLine::warn(
            format!(
                "{} of {count} kinds of the suite are installed already",
                count - missing.len()
            ),
            "this is an upgrade: read docs/operate/upgrade.md first",
        ),
        (false, _) if is_complete => CheckLine::ok(format!("all {count} kinds of the suite are served")),
        (false, _) => CheckLine::fail(
            format!("these kinds are not served: {}", missing.join(", ")),
            "install or upgrade chart garden in the garden, or name the kubeconfig of the garden (--kubeconfig)",
        ),
    }
}

/// Whether the admission policies against two acting seeds are bound.
pub(super) async fn policies(session: &Session) -> CheckLine {
    let bindings: Api<ValidatingAdmissionPolicyBinding> = session.garden().cluster_wide();
    let mut missing = Vec::new();
    for name in POLICIES {
        let doing = format!("ValidatingAdmissionPolicyBinding {name} cannot be read");
        match Box::pin(session.request(&doing, bindings.get_opt(name))).await {
            Ok(Some(_)) => {}
            Ok(None) => missing.push(name),
            Err(failure) => return CheckLine::unreadable(&failure),
        }
    }
    judge_policies(&missing)
}

fn judge_policies(missing: &[&str]) -> CheckLine {
    if missing.is_empty() {
        CheckLine::ok("the admission policies of the suite are bound")
    } else {
        CheckLine::fail(
            format!("these admission policies are not bound: {}", missing.join(", ")),
            "install or upgrade chart garden: without the policies a seed can write to shoots of other seeds",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::CheckLevel;

    #[test]
    fn an_old_kubernetes_fails() {
        for (version, level) in [
            ("v1.29.9", CheckLevel::Fail),
            ("v1.30.0", CheckLevel::Ok),
            ("v1.34.4+k3s1", CheckLevel::Ok),
            ("master", CheckLevel::Warn),
        ] {
            assert_eq!(judge_version(version).level, level, "{version}");
        }
    }

    #[test]
    fn kinds_are_awaited_after_an_installation_only() {
        let missing = ["shoots".to_owned()];
        for (missing, before, level) in [
            (&missing[..], true, CheckLevel::Warn),
            (&missing[..], false, CheckLevel::Fail),
            (&[], false, CheckLevel::Ok),
            (&[], true, CheckLevel::Warn),
        ] {
            let line = judge_kinds(2, missing, before);
            assert_eq!(line.level, level, "{line:?}");
        }
        let none = ["shoots".to_owned(), "seeds".to_owned()];
        assert_eq!(judge_kinds(2, &none, true).level, CheckLevel::Ok);
        let core = &wanted_kinds()["core.gardener.cloud/v1beta1"];
        assert!(core.iter().any(|kind| kind == "shoots"), "{core:?}");
    }

    #[test]
    fn a_missing_policy_fails() {
        assert_eq!(judge_policies(&[]).level, CheckLevel::Ok);
        let line = judge_policies(&["shoot-ownership"]);
        assert!(
            line.level == CheckLevel::Fail && line.message.contains("shoot-ownership"),
            "{line:?}"
        );
    }
}
