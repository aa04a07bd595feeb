//! A write that tests what was read: in the garden a JSON patch with a test, in DNS an update with
//! prerequisites, in a bucket a PUT with If-Match. Whoever sends one may have been asleep since it read.

/// Replaces exactly what was read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Conditional<T> {
    /// What was read, all of it. A test of the epoch alone is not enough: an owner may have begun to open in
    /// between, and whoever comes next would take its data from the wrong place.
    pub tests: T,
    /// What is there afterwards.
    pub becomes: T,
}

impl<T: PartialEq> Conditional<T> {
    /// What is there after the write has met `now`; None if it is refused.
    pub fn applied_to(self, now: &T) -> Option<T> {
        (self.tests == *now).then_some(self.becomes)
    }
}
