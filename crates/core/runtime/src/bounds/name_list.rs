//! Phrases that several modules use in the same form.

/// Some names, so many at most, and how many there are besides.
#[must_use]
pub fn some_of(all: &[impl AsRef<str>], most: usize) -> String {
    let some: Vec<_> = all.iter().take(most).map(AsRef::as_ref).collect();
    match all.len().saturating_sub(most) {
        0 => some.join(", "),
        more => format!("{} and {more} more", some.join(", ")),
    }
}
