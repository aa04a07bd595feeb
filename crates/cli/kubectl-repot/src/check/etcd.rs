//! Checks of the flags that bound the history of objects in the etcd of the garden. The API server reports no
//! flags, so the flags are known only where kube-apiserver and etcd are Pods of the garden, as kubeadm
//! creates the Pods.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::ListParams};
use runtime::client::Cluster;

use super::report::CheckLine;
use crate::session::Session;

/// The namespace of the Pods of kubeadm.
const NAMESPACE: &str = "kube-system";
/// Pods of a process. A control plane has fewer.
const PAGE: u32 = 20;
/// The section with the flags and the reasons.
const PAGE_OF_FLAGS: &str = "docs/operate/install-requirements.md#etcd-of-the-garden";
/// Former values of objects stay in etcd for two of these intervals.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);
/// Room for the objects of the garden, and for the history of two intervals.
const LEAST_QUOTA: u64 = 8 << 30;

/// A process of the garden's control plane, and a flag of the process.
#[derive(Clone, Copy, Debug)]
struct Flag {
    /// The value of label `component` of the Pods.
    component: &'static str,
    name: &'static str,
    /// The value that the requirements name.
    wanted: &'static str,
    is_enough: fn(&str) -> bool,
}

const FLAGS: [Flag; 2] = [
    Flag {
        component: "kube-apiserver",
        name: "--etcd-compaction-interval",
        wanted: "1m",
        is_enough: compacts_often,
    },
    Flag {
        component: "etcd",
        name: "--quota-backend-bytes",
        wanted: "8589934592",
        is_enough: has_room,
    },
];

/// Whether changes of few objects can fill the etcd of the garden.
pub(super) async fn flags(session: &Session) -> Vec<CheckLine> {
    let mut lines = Vec::new();
    for flag in FLAGS {
        lines.push(Box::pin(check(session, flag)).await);
    }
    lines
}

async fn check(session: &Session, flag: Flag) -> CheckLine {
    let pods: Api<Pod> = session.garden().namespaced(NAMESPACE);
    let selected = ListParams::default()
        .labels(&format!("component={}", flag.component))
        .limit(PAGE);
    let doing = format!(
        "flag {} of the garden's {} cannot be read",
        flag.name, flag.component
    );
    match Box::pin(session.request(&doing, pods.list(&selected))).await {
        Ok(found) => judge(flag, &found.items),
        Err(failure) => CheckLine::unreadable(&failure),
    }
}

fn judge(flag: Flag, pods: &[Pod]) -> CheckLine {
    let Flag {
        component,
        name,
        wanted,
        is_enough,
    } = flag;
    if pods.is_empty() {
        return CheckLine::warn(
            format!(
                "flag {name} of the garden's {component} is not known: namespace {NAMESPACE} has no Pod with label component={component}"
            ),
            format!("not checked; set {name}={wanted}, or ask the provider of the cluster: {PAGE_OF_FLAGS}"),
        );
    }
    let remedy =
        format!("set {name}={wanted} and read {PAGE_OF_FLAGS}: changes of few objects can fill etcd");
    for pod in pods {
        match value(pod, name) {
            None => return CheckLine::warn(format!("the garden's {component} has no flag {name}"), remedy),
            Some(found) if !is_enough(&found) => {
                return CheckLine::warn(format!("the garden's {component} has {name}={found}"), remedy);
            }
            Some(_) => {}
        }
    }
    CheckLine::ok(format!("the garden's {component} has {name} as needed"))
}

/// The value of a flag in the command lines of a Pod.
fn value(pod: &Pod, flag: &str) -> Option<String> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut words = containers.flat_map(|container| {
        let command = container.command.iter().flatten();
        command.chain(container.args.iter().flatten())
    });
    words.find_map(|word| Some(word.strip_prefix(flag)?.strip_prefix('=')?.to_owned()))
}

/// Zero switches the compaction off.
fn compacts_often(interval: &str) -> bool {
    let parsed = interval.parse::<SignedDuration>().ok();
    let parsed = parsed.and_then(|interval| Duration::try_from(interval).ok());
    parsed.is_some_and(|interval| !interval.is_zero() && interval <= LONGEST_INTERVAL)
}

fn has_room(quota: &str) -> bool {
    quota.parse::<u64>().is_ok_and(|quota| quota >= LEAST_QUOTA)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::check::CheckLevel;

    fn pod(command: &[&str]) -> Pod {
        let containers = json!([{"name": "x", "command": command}]);
        serde_json::from_value(json!({"metadata": {"name": "x"}, "spec": {"containers": containers}}))
            .unwrap()
    }

    fn level(index: usize, commands: &[&[&str]]) -> CheckLevel {
        let pods: Vec<_> = commands.iter().map(|command| pod(command)).collect();
        judge(FLAGS[index], &pods).level
    }

    #[test]
    fn a_long_history_and_a_small_etcd_are_reported() {
        for (interval, expected) in [
            ("1m", CheckLevel::Ok),
            ("1m0s", CheckLevel::Ok),
            ("30s", CheckLevel::Ok),
            ("5m", CheckLevel::Warn),
            ("0s", CheckLevel::Warn),
            ("often", CheckLevel::Warn),
        ] {
            let flag = format!("--etcd-compaction-interval={interval}");
            let found = level(0, &[&["kube-apiserver", "--v=2", flag.as_str()]]);
            assert_eq!(found, expected, "{interval}");
        }
        for (quota, expected) in [
            ("8589934592", CheckLevel::Ok),
            ("8589934591", CheckLevel::Warn),
            ("0", CheckLevel::Warn),
            ("8Gi", CheckLevel::Warn),
        ] {
            let flag = format!("--quota-backend-bytes={quota}");
            assert_eq!(level(1, &[&["etcd", flag.as_str()]]), expected, "{quota}");
        }
        // The defaults are 5 minutes and 2 GiB.
        assert_eq!(level(0, &[&["kube-apiserver"]]), CheckLevel::Warn);
        assert_eq!(level(1, &[&["etcd"]]), CheckLevel::Warn);
    }

    #[test]
    fn each_member_of_the_control_plane_needs_the_flag() {
        let good: &[&str] = &["etcd", "--quota-backend-bytes=8589934592"];
        assert_eq!(level(1, &[good, good]), CheckLevel::Ok);
        assert_eq!(level(1, &[good, &["etcd"]]), CheckLevel::Warn);
    }

    #[test]
    fn a_control_plane_without_pods_is_not_known() {
        let line = judge(FLAGS[0], &[]);
        assert_eq!(line.level, CheckLevel::Warn);
        assert!(line.message.contains("is not known"), "{line:?}");
        let remedy = line.remedy.unwrap();
        assert!(remedy.contains("ask the provider of the cluster"), "{remedy}");
    }
}
