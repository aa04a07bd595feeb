//! Names that follow from a kind.

use std::borrow::Cow;

use api::extensions::ExtensionObject;

/// The finalizer that extension controllers keep on objects of a kind, as people and scripts know it.
#[must_use]
pub fn finalizer<K: ExtensionObject>() -> String {
    let kind = name::<K>().to_lowercase();
    // The one plural among them; it is what existing clusters carry.
    let suffix = if kind == "operatingsystemconfig" {
        "operatingsystemconfigs"
    } else {
        kind.as_str()
    };
    format!("extensions.gardener.cloud/{suffix}")
}

/// The kind's name.
#[must_use]
pub fn name<K: ExtensionObject>() -> Cow<'static, str> {
    K::kind(&())
}

#[cfg(test)]
mod tests {
    use api::extensions::{BackupBucket, DNSRecord, Infrastructure};

    use super::finalizer;

    #[test]
    fn finalizers_are_the_known_ones() {
        assert_eq!(
            finalizer::<Infrastructure>(),
            "extensions.gardener.cloud/infrastructure"
        );
        assert_eq!(finalizer::<DNSRecord>(), "extensions.gardener.cloud/dnsrecord");
        assert_eq!(
            finalizer::<BackupBucket>(),
            "extensions.gardener.cloud/backupbucket"
        );
    }
}
