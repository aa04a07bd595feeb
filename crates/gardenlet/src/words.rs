//! Words that several parts tell in the same way.

/// So many names are told of many.
const NAMES: usize = 5;

/// Some names, and how many there are besides.
pub(crate) fn names(all: &[impl AsRef<str>]) -> String {
    let some: Vec<_> = all.iter().take(NAMES).map(AsRef::as_ref).collect();
    match all.len().saturating_sub(NAMES) {
        0 => some.join(", "),
        more => format!("{} and {more} more", some.join(", ")),
    }
}
