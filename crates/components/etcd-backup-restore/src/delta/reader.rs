//! Reads the events of a delta in sequence; memory holds a single event, however large the array is.

use super::Entry;
use crate::integrity::TRAILER;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// Opens the array of a delta that was fetched and verified, without the hash at the end.
pub fn open_entries(path: &Path) -> io::Result<impl Read + use<>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    Ok(BufReader::with_capacity(64 * 1024, file).take(length.saturating_sub(TRAILER as u64)))
}

/// Calls `each` with every entry of a JSON array, in order. The hash at the end must be cut off before.
pub fn read_entries<F: FnMut(Entry) -> Result<(), String>>(
    content: impl Read,
    each: F,
) -> serde_json::Result<()> {
    let mut deserializer = serde_json::Deserializer::from_reader(content);
    deserializer.deserialize_seq(Entries(each))?;
    deserializer.end()
}

struct Entries<F>(F);

impl<'de, F: FnMut(Entry) -> Result<(), String>> Visitor<'de> for Entries<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        while let Some(entry) = entries.next_element::<Entry>()? {
            (self.0)(entry).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}
