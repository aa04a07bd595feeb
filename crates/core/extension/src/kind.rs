//! Names that are derived from a kind.

use std::borrow::Cow;

use api::extensions::ExtensionObject;

/// The finalizer that extension controllers keep on objects of a kind, as people and scripts know the
/// finalizer. For kind `Extension`, the finalizer contains the type: [`finalizer_of`].
#[must_use]
pub fn finalizer<K: ExtensionObject>() -> String {
    let kind = name::<K>().to_lowercase();
    // The only plural among the finalizers; existing clusters carry this name.
    let suffix = if kind == "operatingsystemconfig" {
        "operatingsystemconfigs"
    } else {
        kind.as_str()
    };
    format!("extensions.gardener.cloud/{suffix}")
}

/// The finalizer of an object. Objects of kind `Extension` belong to many extensions, and each extension has
/// a separate finalizer.
#[must_use]
pub fn finalizer_of<K: ExtensionObject>(object: &K) -> String {
    if name::<K>() == "Extension" {
        format!("extensions.gardener.cloud/{}", object.default_spec().type_)
    } else {
        finalizer::<K>()
    }
}

/// The kind's name.
#[must_use]
pub fn name<K: ExtensionObject>() -> Cow<'static, str> {
    K::kind(&())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::extensions::{
        BackupBucket, BackupEntry, Bastion, ContainerRuntime, ControlPlane, DNSRecord, Extension,
        Infrastructure, Network, OperatingSystemConfig, SelfHostedShootExposure, SubnetIsolation, Worker,
    };
    use serde_json::json;

    use super::{finalizer, finalizer_of};

    #[test]
    fn finalizers_are_the_known_ones() {
        for (ours, known) in [
            (finalizer::<BackupBucket>(), "backupbucket"),
            (finalizer::<BackupEntry>(), "backupentry"),
            (finalizer::<Bastion>(), "bastion"),
            (finalizer::<ContainerRuntime>(), "containerruntime"),
            (finalizer::<ControlPlane>(), "controlplane"),
            (finalizer::<DNSRecord>(), "dnsrecord"),
            (finalizer::<Infrastructure>(), "infrastructure"),
            (finalizer::<Network>(), "network"),
            (finalizer::<OperatingSystemConfig>(), "operatingsystemconfigs"),
            (finalizer::<SelfHostedShootExposure>(), "selfhostedshootexposure"),
            (finalizer::<SubnetIsolation>(), "subnetisolation"),
            (finalizer::<Worker>(), "worker"),
        ] {
            assert_eq!(ours, format!("extensions.gardener.cloud/{known}"));
        }
        let extension: Extension =
            serde_json::from_value(json!({"metadata": {"name": "x"}, "spec": {"type": "shoot-dns-service"}}))
                .unwrap();
        assert_eq!(
            finalizer_of(&extension),
            "extensions.gardener.cloud/shoot-dns-service"
        );
    }
}
