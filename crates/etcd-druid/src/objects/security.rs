//! What the pods may do: nothing but read and write their volumes and use the network.

use k8s_openapi::api::core::v1::{Capabilities, PodSecurityContext, SeccompProfile, SecurityContext};

use crate::wanted::Wanted;

/// The user and group of every process in the pods, as in the images.
const NON_ROOT: i64 = 65532;

/// For the whole pod. `runAsRoot` is for volumes whose folders only root may write (some host-path provisioners).
#[must_use]
pub fn pod(wanted: &Wanted) -> PodSecurityContext {
    let user = if wanted.run_as_root { 0 } else { NON_ROOT };
    PodSecurityContext {
        run_as_non_root: Some(!wanted.run_as_root),
        run_as_user: Some(user),
        run_as_group: Some(user),
        fs_group: Some(user),
        // A volume with many files is not walked through on every start: that would be downtime.
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            localhost_profile: None,
        }),
        ..PodSecurityContext::default()
    }
}

/// For each container.
#[must_use]
pub fn container() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        privileged: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            add: None,
        }),
        ..SecurityContext::default()
    }
}
