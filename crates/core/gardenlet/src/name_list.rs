//! Texts that several parts share.

use runtime::bounds::some_of;

/// Maximum number of names in a text.
const NAMES: usize = 5;

/// Some names, and the number of further names.
pub(crate) fn names(all: &[impl AsRef<str>]) -> String {
    some_of(all, NAMES)
}
