//! A write that tests the state that was read: in the garden a JSON patch with a test, in DNS an update with
//! prerequisites, in a bucket a PUT with If-Match. The writer may have been suspended between read and write.

/// Replaces exactly the state that was read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Conditional<T> {
    /// The complete state that was read. A test of the epoch alone is not enough: an owner may have begun to
    /// open etcd in between, and the next owner would take the data from the wrong place.
    pub tests: T,
    /// The state after the write.
    pub becomes: T,
}

impl<T: PartialEq> Conditional<T> {
    /// The state after the write has met `now`; `None` if the write is refused.
    pub fn applied_to(self, now: &T) -> Option<T> {
        (self.tests == *now).then_some(self.becomes)
    }
}
