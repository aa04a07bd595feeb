//! What several parts say of things in the same way.

use runtime::words::some_of;

/// So many names are told of many.
const NAMES: usize = 5;

/// Some names, and how many there are besides.
pub(crate) fn names(all: &[impl AsRef<str>]) -> String {
    some_of(all, NAMES)
}
