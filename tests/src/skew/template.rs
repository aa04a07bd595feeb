//! The templates of the two managers' pods, and the settings of each release. No I/O.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use serde_json::{Value, json};

use super::{LABEL, LOCK, MADE, Release};
use crate::managers::{self, WITHOUT_NODE_IPAM};

/// Folder of the files in pods.
const FILES: &str = "/srv/version-skew";
/// Locks that expire sooner than by default, so that the test need not wait long. Not much sooner: a manager
/// whose API does not answer until the deadline rightly ends, and the locks would then move to unexpected
/// nodes.
const TIMING: [&str; 3] = [
    "--leader-elect-lease-duration=10s",
    "--leader-elect-renew-deadline=8s",
    "--leader-elect-retry-period=1s",
];
/// Flags of node IPAM and the timing of locks: the test sets different values.
const REPLACED: [&str; 7] = [
    "--allocate-node-cidrs",
    "--cluster-cidr",
    "--enable-leader-migration",
    "--leader-migration-config",
    "--leader-elect-lease-duration",
    "--leader-elect-renew-deadline",
    "--leader-elect-retry-period",
];

/// A manager.
pub(super) struct Template {
    /// Name of the manager's Deployment.
    pub name: &'static str,
    /// The main lock of the manager.
    pub lock: String,
    pod: Value,
    flags: Vec<String>,
    /// Flags for the assignment of ranges.
    ranges: Vec<String>,
}

impl Template {
    /// From the two Deployments; the cloud-controller-manager must assign ranges.
    pub(super) fn both(kubernetes: &Deployment, cloud: &Deployment) -> Result<(Self, Self)> {
        let gives =
            |flag: &String| flag.starts_with("--allocate-node-cidrs") || flag.starts_with("--cluster-cidr=");
        let ranges: Vec<_> = managers::flags(cloud).into_iter().filter(gives).collect();
        ensure!(
            ranges.len() == 2,
            "the cloud-controller-manager gives no ranges: {ranges:?}"
        );
        Ok((
            Self::from_deployment(managers::KUBERNETES, kubernetes, ranges.clone())?,
            Self::from_deployment(managers::CLOUD, cloud, ranges)?,
        ))
    }

    fn from_deployment(name: &'static str, deployment: &Deployment, ranges: Vec<String>) -> Result<Self> {
        let template = deployment.spec.as_ref().map(|spec| &spec.template);
        let pod = serde_json::to_value(template.and_then(|template| template.spec.as_ref()))?;
        let given = managers::flags(deployment);
        let named = given
            .iter()
            .find_map(|flag| flag.strip_prefix("--leader-elect-resource-name="));
        let lock = named.unwrap_or(name).to_owned();
        let replaced = |flag: &String| REPLACED.contains(&flag.split('=').next().unwrap_or_default());
        let kept = given.into_iter().filter(|flag| !replaced(flag));
        let flags = kept
            .map(|flag| flag.replace(&format!(",{WITHOUT_NODE_IPAM}"), ""))
            .collect();
        Ok(Self {
            name,
            lock,
            pod,
            flags,
            ranges,
        })
    }

    /// A pod of a release on a node.
    pub(super) fn pod(&self, name: &str, node: usize, release: Release) -> Result<Pod> {
        let kubernetes = self.name == managers::KUBERNETES;
        let mut flags = self.flags.clone();
        flags.extend(TIMING.map(str::to_owned));
        let file = match (kubernetes, release) {
            (true, Release::N) => Some("kubernetes.yaml".to_owned()),
            (false, Release::Next) => Some(format!("cloud-{node}.yaml")),
            (true, Release::Next) => {
                let chosen = flags.iter_mut().find(|flag| flag.starts_with("--controllers="));
                let chosen = chosen.context("the kube-controller-manager has no --controllers")?;
                *chosen = format!("{chosen},{WITHOUT_NODE_IPAM}");
                None
            }
            (false, Release::N) => None,
        };
        if let Some(file) = file {
            flags.extend(self.ranges.iter().cloned());
            flags.push("--enable-leader-migration".to_owned());
            flags.push(format!("--leader-migration-config={FILES}/{file}"));
        }
        let mut spec = self.pod.clone();
        spec["containers"][0]["args"] = json!(flags);
        let volume = json!({"name": MADE, "configMap": {"name": MADE}});
        push(&mut spec["volumes"], volume);
        let mount = json!({"name": MADE, "mountPath": FILES});
        push(&mut spec["containers"][0]["volumeMounts"], mount);
        let (key, value) = LABEL.split_once('=').context("a label has a value")?;
        let pod = json!({"metadata": {"name": name, "labels": {key: value}}, "spec": spec});
        Ok(serde_json::from_value(pod)?)
    }
}

fn push(list: &mut Value, entry: Value) {
    match list.as_array_mut() {
        Some(list) => list.push(entry),
        None => *list = json!([entry]),
    }
}

/// The files: one file of the home manager, and a file of each node's guest. Kubernetes knows only the new
/// name of the controller.
pub(super) fn files() -> Value {
    let file = |version: &str, more: &str, name: &str, component: &str| {
        format!(
            "apiVersion: controllermanager.config.k8s.io/{version}\nkind: LeaderMigrationConfiguration\nleaderName: {LOCK}\n{more}\
             controllerLeaders:\n- name: {name}\n  component: \"{component}\"\n"
        )
    };
    let (old, new) = ("nodeipam", "node-ipam-controller");
    json!({
        "kubernetes.yaml": file("v1alpha1", "resourceLock: leases\n", new, "*"),
        "cloud-0.yaml": file("v1beta1", "resourceLock: leases\n", old, "*"),
        "cloud-1.yaml": file("v1", "", new, "cloud-controller-manager"),
        "cloud-2.yaml": file("v1", "", old, "*"),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn deployment(flags: &[&str]) -> Deployment {
        let pod = json!({"containers": [{"name": "c", "args": flags}]});
        let spec = json!({"selector": {}, "template": {"spec": pod}});
        serde_json::from_value(json!({"spec": spec})).unwrap()
    }

    fn flags(of: &Template, release: Release) -> Vec<String> {
        let pod = of.pod("p", 1, release).unwrap();
        let mut flags = pod.spec.unwrap().containers[0].args.clone().unwrap();
        flags.retain(|flag| !TIMING.contains(&flag.as_str()));
        flags
    }

    /// In no release do both managers own node IPAM alone, regardless of the Deployments.
    #[test]
    fn each_release_is_told_its_part() {
        let (kubernetes, cloud) = Template::both(
            &deployment(&["--controllers=*,tokencleaner,-node-ipam-controller"]),
            &deployment(&[
                "--leader-elect-resource-name=main",
                "--allocate-node-cidrs",
                "--cluster-cidr=100.96.0.0/11",
            ]),
        )
        .unwrap();
        assert_eq!(
            (kubernetes.lock.as_str(), cloud.lock.as_str()),
            ("kube-controller-manager", "main")
        );
        let migrates = |file: &str| {
            let file = format!("--leader-migration-config={FILES}/{file}");
            [
                "--allocate-node-cidrs",
                "--cluster-cidr=100.96.0.0/11",
                "--enable-leader-migration",
                &file,
            ]
            .map(str::to_owned)
        };
        let with = |first: &str, more: &[String]| [&[first.to_owned()], more].concat();
        assert_eq!(
            flags(&kubernetes, Release::N),
            with("--controllers=*,tokencleaner", &migrates("kubernetes.yaml"))
        );
        assert_eq!(
            flags(&kubernetes, Release::Next),
            with("--controllers=*,tokencleaner,-node-ipam-controller", &[])
        );
        assert_eq!(
            flags(&cloud, Release::N),
            with("--leader-elect-resource-name=main", &[])
        );
        assert_eq!(
            flags(&cloud, Release::Next),
            with("--leader-elect-resource-name=main", &migrates("cloud-1.yaml"))
        );
    }
}
