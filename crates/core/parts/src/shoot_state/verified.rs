//! The pieces of a ShootState that a restore may apply, and the pieces that the restore leaves out.
//!
//! The source of the pieces may be hostile. So no piece decides about a different piece: the keys of the
//! shoot are verified by themselves, and a piece that no seed collects is left out with a sentence.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use api::gardencore::GardenerResourceData;
use runtime::Result;

use super::{
    carried::{Check, RefusedPiece},
    entries, own,
    piece::{Key, Piece},
    sentences::{MOST_LEFT_OUT, cut},
};
use crate::configuration_problem;

/// Verifies the pieces of a single ShootState, in their order.
#[derive(Debug)]
pub(super) struct VerifiedPieces {
    state: String,
    check: Check,
    /// The pieces in the ShootState itself.
    pub(super) here: BTreeMap<Key, Piece>,
    /// The ranges of the pieces in chunks.
    pub(super) index: BTreeMap<Key, Range<usize>>,
    /// A sentence about each piece that is left out.
    pub(super) left_out: BTreeMap<Key, String>,
    /// The fault of an entry that has the name of a key, by name.
    faults: BTreeMap<String, String>,
    /// Names with several entries, each with a different key.
    ambiguous: BTreeSet<String>,
}

impl VerifiedPieces {
    /// The pieces of the ShootState of this name.
    pub(super) fn new(state: &str) -> Self {
        Self {
            state: state.to_owned(),
            check: Check::new(state),
            here: BTreeMap::new(),
            index: BTreeMap::new(),
            left_out: BTreeMap::new(),
            faults: BTreeMap::new(),
            ambiguous: BTreeSet::new(),
        }
    }

    /// Adds the next piece. `range`: the range of a piece in chunks. Fails if more pieces are left out than
    /// the process can tell apart.
    pub(super) fn add(&mut self, piece: Piece, range: Option<Range<usize>>) -> Result<()> {
        let key = piece.key();
        if let Piece::Gardener(entry) = &piece
            && key.is_own_secret()
        {
            return self.add_own(key, entry, range);
        }
        if let Err(refused) = self.check.accept(&piece) {
            return self.leave_out(key, &refused);
        }
        self.keep(key, piece, range);
        Ok(())
    }

    /// Forgets the pieces in chunks: the chunks are not what their writer has written.
    pub(super) fn forget_chunks(&mut self) {
        self.index.clear();
    }

    /// The reason for each key of the shoot that has an entry and cannot be restored, by name. An entry with
    /// a fault beside the right entry has no effect.
    pub(super) fn broken_keys(&self) -> BTreeMap<String, String> {
        let is_held = |name: &str| {
            let key = Key::gardener(entries::ENTRY_TYPE, name);
            self.here.contains_key(&key) || self.index.contains_key(&key)
        };
        let faults = self.faults.iter().filter(|(name, _)| !is_held(name));
        let mut broken: BTreeMap<_, _> = faults.map(|(name, why)| (name.clone(), why.clone())).collect();
        for name in &self.ambiguous {
            let why = "there are several entries of this name with different keys";
            broken.insert(name.clone(), why.to_owned());
        }
        broken
    }

    /// Takes the known content of an entry with the name of a key.
    fn add_own(&mut self, key: Key, entry: &GardenerResourceData, range: Option<Range<usize>>) -> Result<()> {
        let secret = match own::known_secret(entry) {
            Ok(secret) => secret,
            Err(why) => {
                self.faults.insert(entry.name.clone(), why);
                return Ok(());
            }
        };
        let known = entries::to_entry(&secret)?;
        let data = |entry: &GardenerResourceData| entry.data.0.get("data").cloned();
        let is_same = |piece: &Piece| matches!(piece, Piece::Gardener(held) if data(held) == data(&known));
        // Of two entries in chunks, only the last entry could be read again.
        if self.index.contains_key(&key) || self.here.get(&key).is_some_and(|piece| !is_same(piece)) {
            self.ambiguous.insert(entry.name.clone());
            return Ok(());
        }
        self.keep(key, Piece::Gardener(known), range);
        Ok(())
    }

    fn keep(&mut self, key: Key, piece: Piece, range: Option<Range<usize>>) {
        match range {
            Some(range) => drop(self.index.insert(key, range)),
            None => drop(self.here.insert(key, piece)),
        }
    }

    fn leave_out(&mut self, key: Key, refused: &RefusedPiece) -> Result<()> {
        if self.left_out.len() < MOST_LEFT_OUT {
            let sentence = cut(&refused.describe(&self.state));
            self.left_out.insert(key.cut(), sentence);
            return Ok(());
        }
        Err(configuration_problem(format!(
            "ShootState {} has more than {MOST_LEFT_OUT} pieces that no seed collects. Only the keys of the shoot are restored: \
             remove these pieces",
            self.state
        )))
    }
}

#[cfg(test)]
#[path = "verified_tests.rs"]
mod tests;
