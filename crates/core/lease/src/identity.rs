//! The identity of a candidate.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A unique identity: `<hostname>_<32 random hexadecimal digits>`, like the managers of client-go. The random
/// part matters: a restarted process must not take the predecessor's lock for a lock of its own.
#[must_use]
pub fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = match host.trim() {
        "" => "unknown",
        host => host,
    };
    // The keys of the standard library's hasher come from the operating system's source of randomness.
    let random = || RandomState::new().build_hasher().finish();
    format!("{host}_{:016x}{:016x}", random(), random())
}

#[cfg(test)]
mod tests {
    #[test]
    fn identities_differ_and_begin_with_the_host() {
        let (one, other) = (super::identity(), super::identity());
        assert_ne!(one, other);
        let (host, random) = one.rsplit_once('_').unwrap_or_default();
        assert!(!host.is_empty());
        assert_eq!(random.len(), 32);
    }
}
