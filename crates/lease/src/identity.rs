//! Who a candidate is.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A name that no other process has: `<hostname>_<32 random hexadecimal digits>`, as client-go's managers
/// make it. The random part matters: a process that is started again must not take its predecessor's lock for
/// its own.
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
