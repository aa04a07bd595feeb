//! Writes the pieces of a state: into the ShootState while the pieces are small, otherwise into chunks
//! (R7-27). The gardenlet's own Secrets stand in the ShootState in both cases, because a policy keeps these
//! entries from a hostile host, and no policy can keep chunks.
//!
//! The order of writes makes every crash harmless. A reader always sees the content of the last finished
//! write of the ShootState:
//! 1. A write of the ShootState claims the attempt and gives the attempt a number. From here on, a concurrent
//!    attempt fails.
//! 2. The chunks are created under names that only this attempt uses. An existing chunk with the same content
//!    is referenced again.
//! 3. A single write of the ShootState references all chunks, and lists the chunks that are no longer needed.
//! 4. The listed chunks are deleted, and the list is cleared ([`leftovers`]). The list also covers the
//!    leftovers of a crash, so the next write deletes these leftovers.
//!
//! Each write states the ownership epoch of the writer. No write replaces the content of a later epoch.
//!
//! Unchanged content is not written: chunks are compared by hash. The writer holds at most two copies of a
//! single chunk and a single piece in memory. A state that fits into the ShootState (1 MiB) is held as a
//! whole.

use std::collections::HashMap;

use api::{
    constants::TIMESTAMP,
    gardencore::{ChunkAttempt, ShootState, ShootStateSpec, StateChunk, StateInChunks},
};
use runtime::{Error, clock};
use serde_json::{Value, json};

use super::{
    carried::Check,
    chunk::{Splitter, Whole, pack},
    entries,
    float_bytes::float_bytes,
    leftovers,
    opened::MOST_PIECE,
    own,
    piece::{Key, Piece, pieces_of},
    place::StateStore,
    sentences::{MOST_LEFT_OUT, cut},
};
use crate::configuration_problem;

/// Most bytes of text in the ShootState itself, as the API server stores and policy `gardenlet-shootstate`
/// counts the text. With the rest of the object this is less than the limit of etcd (1.5 MiB).
pub(super) const MOST_HERE: usize = 1024 * 1024;
/// Most entries of `spec.gardener` in the ShootState itself, also in policy `gardenlet-shootstate`: the
/// policy compares each entry.
const MOST_ENTRIES: usize = 1000;
/// Most bytes of text of a whole state. Bounds a state that grows without end; the ShootState could refer to
/// ten times as much.
const MOST: usize = 1024 * 1024 * 1024;
/// The highest number that the schema of a ShootState allows (`api::limits`).
const HIGHEST_NUMBER: i64 = (1 << 53) - 1;

/// The reason why a state was not written.
#[derive(Debug)]
pub(super) enum Unwritten {
    /// A concurrent writer has changed the ShootState: the caller collects the state again.
    Collided,
    /// The state cannot be written.
    Failed(Error),
}

impl From<Error> for Unwritten {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShootStateWrite {
    /// Whether the content changed.
    pub changed: bool,
    /// Size of the text in bytes.
    pub bytes: usize,
    /// Number of InternalSecrets that hold the state; 0: the ShootState itself holds the state.
    pub chunks: usize,
    /// Sentences about state of the namespace that the ShootState leaves out because no seed could restore
    /// this state.
    pub left_out: Vec<String>,
}

/// Takes the pieces of a single state, in the order of their keys.
#[derive(Debug)]
pub(super) struct Writer {
    place: StateStore,
    /// Ownership epoch of the writer.
    epoch: i64,
    /// The ShootState at the last read or write.
    state: ShootState,
    check: Check,
    whole: Whole,
    /// [`stored_bytes`] of the pieces so far.
    stored: usize,
    here: ShootStateSpec,
    chunks: Option<Chunks>,
    /// Sentences about earlier pieces that no seed collects.
    left_out: Vec<String>,
}

#[derive(Debug, Default)]
struct Chunks {
    splitter: Splitter,
    all: Vec<StateChunk>,
    /// Chunks that the ShootState references now, by hash.
    before: HashMap<String, StateChunk>,
    /// Number of this attempt, once a chunk has to be created, and the number of chunks that the attempt
    /// created.
    claimed: Option<(i64, usize)>,
}

impl Writer {
    /// A writer for the seed that has the shoot in this epoch. Fails when the last write is of a later epoch,
    /// because a different owner has had the shoot since.
    pub(super) fn new(place: StateStore, state: ShootState, epoch: i64) -> Result<Self, Unwritten> {
        check_epoch(&place.name, state.spec.epoch(), epoch)?;
        Ok(Self {
            check: Check::new(&place.name),
            place,
            epoch,
            state,
            whole: Whole::default(),
            stored: 0,
            here: ShootStateSpec::default(),
            chunks: None,
            left_out: Vec::new(),
        })
    }

    /// The check, with all pieces so far.
    pub(super) fn check(&self) -> &Check {
        &self.check
    }

    /// Checks and adds the next piece.
    pub(super) async fn add_piece(&mut self, piece: Piece) -> Result<(), Unwritten> {
        self.check.piece(&piece)?;
        self.append(piece).await
    }

    /// Adds a piece of the earlier ShootState. A former host may have planted the piece, so that a piece that
    /// no seed collects is left out and named. A key of the shoot is never left out.
    pub(super) async fn add_earlier(&mut self, piece: Piece) -> Result<(), Unwritten> {
        let piece = match piece {
            Piece::Gardener(entry) if Key::gardener(&entry.type_, &entry.name).is_own_secret() => {
                if self.check.has(&Key::gardener(&entry.type_, &entry.name)) {
                    return Ok(());
                }
                let secret = own::known_secret(&entry)
                    .map_err(|why| own::broken_key(&self.place.name, &entry.name, &why))?;
                Piece::Gardener(entries::to_entry(&secret)?)
            }
            other => other,
        };
        match self.check.accept(&piece) {
            Ok(()) => self.append(piece).await,
            Err(refused) => {
                if self.left_out.len() < MOST_LEFT_OUT {
                    self.left_out.push(cut(&refused.describe(&self.place.name)));
                }
                Ok(())
            }
        }
    }

    async fn append(&mut self, piece: Piece) -> Result<(), Unwritten> {
        let line = piece.to_line()?;
        let (what, size) = (piece.describe(), line.len());
        if size > MOST_PIECE || self.whole.size() + size > MOST {
            return Err(configuration_problem(format!(
                "{what} has {size} bytes, after {} of others: ShootState {} holds at most {MOST_PIECE} of one piece and {MOST} \
                 of all. Make it smaller or spread it over several objects",
                self.whole.size(),
                self.place.name
            ))
            .into());
        }
        self.whole.add(&line);
        self.stored += stored_bytes(&line);
        if self.chunks.is_none() && !fits_here(self.stored, self.here.gardener.len() + 1) {
            self.begin_chunks().await?;
        }
        if self.chunks.is_none() {
            piece.put_into(&mut self.here);
            return Ok(());
        }
        self.feed(&line).await?;
        self.keep_here(piece);
        Ok(())
    }

    /// Keeps a copy of an own Secret beside the chunks.
    fn keep_here(&mut self, piece: Piece) {
        if piece.key().is_own_secret() {
            piece.put_into(&mut self.here);
        }
    }

    /// Writes the rest after the last piece, and deletes the leftovers.
    pub(super) async fn finish(mut self) -> Result<ShootStateWrite, Unwritten> {
        if let Some(chunks) = &mut self.chunks
            && let Some(rest) = std::mem::take(&mut chunks.splitter).rest()
        {
            self.put_chunk(&rest).await?;
        }
        let spec = self.wanted();
        let changed = ShootStateSpec {
            chunk_attempt: None,
            ..self.state.spec.clone()
        } != spec;
        let write = ShootStateWrite {
            changed,
            bytes: self.whole.size(),
            chunks: spec.in_chunks.as_ref().map_or(0, |chunks| chunks.chunks.len()),
            left_out: std::mem::take(&mut self.left_out),
        };
        if changed {
            self.commit(&spec).await?;
        }
        self.clean_up().await?;
        Ok(write)
    }

    /// The spec to write into the ShootState.
    fn wanted(&mut self) -> ShootStateSpec {
        let mut spec = std::mem::take(&mut self.here);
        spec.epoch = omit_first_epoch(self.epoch);
        if let Some(chunks) = &mut self.chunks {
            spec.in_chunks = Some(StateInChunks {
                size: number(self.whole.size()),
                sha256: self.whole.sha256(),
                chunks: std::mem::take(&mut chunks.all),
            });
        }
        spec
    }

    async fn begin_chunks(&mut self) -> Result<(), Unwritten> {
        let before = self.state.spec.in_chunks.iter().flat_map(|before| &before.chunks);
        self.chunks = Some(Chunks {
            before: before
                .map(|chunk| (chunk.sha256.clone(), chunk.clone()))
                .collect(),
            ..Chunks::default()
        });
        for piece in pieces_of(std::mem::take(&mut self.here)) {
            self.feed(&piece.to_line()?).await?;
            self.keep_here(piece);
        }
        Ok(())
    }

    async fn feed(&mut self, line: &[u8]) -> Result<(), Unwritten> {
        let full = self.chunks.as_mut().map(|chunks| chunks.splitter.push(line));
        for text in full.into_iter().flatten() {
            self.put_chunk(&text).await?;
        }
        Ok(())
    }

    async fn put_chunk(&mut self, text: &[u8]) -> Result<(), Unwritten> {
        let packed = pack(text).map_err(|error| Error::bug("zstd").caused_by(error))?;
        let before = self
            .chunks
            .as_ref()
            .and_then(|chunks| chunks.before.get(&packed.sha256))
            .cloned();
        let chunk = match before {
            Some(chunk) if self.place.has_chunk(&chunk.name, &self.state).await? => chunk,
            _ => {
                let name = self.next_name().await?;
                self.place.make_chunk(&name, packed.bytes, &self.state).await?;
                StateChunk {
                    name,
                    size: number(packed.size),
                    sha256: packed.sha256,
                }
            }
        };
        if let Some(chunks) = &mut self.chunks {
            chunks.all.push(chunk);
        }
        Ok(())
    }

    /// The name of the next chunk. The attempt is claimed before the first chunk.
    async fn next_name(&mut self) -> Result<String, Unwritten> {
        let claimed = self.chunks.as_ref().and_then(|chunks| chunks.claimed);
        let (attempt, made) = match claimed {
            Some(claimed) => claimed,
            None => (self.claim().await?, 0),
        };
        if let Some(chunks) = &mut self.chunks {
            chunks.claimed = Some((attempt, made + 1));
        }
        Ok(self.place.chunk_name(attempt, made))
    }

    async fn claim(&mut self) -> Result<i64, Unwritten> {
        let mut attempt = self.attempt();
        attempt.number = next_number(&self.place.name, attempt.number)?;
        attempt.unfinished.push(attempt.number);
        self.write(&json!({"spec": {"chunkAttempt": note(&attempt)}}))
            .await?;
        Ok(attempt.number)
    }

    /// The single write that makes the new content visible to readers.
    async fn commit(&mut self, spec: &ShootStateSpec) -> Result<(), Unwritten> {
        let mut attempt = self.attempt();
        let claimed = self.chunks.as_ref().and_then(|chunks| chunks.claimed);
        attempt
            .unfinished
            .retain(|number| Some(*number) != claimed.map(|(number, _)| number));
        let needed = |name: &String| {
            let now = spec.in_chunks.iter().flat_map(|chunks| &chunks.chunks);
            now.into_iter().any(|chunk| chunk.name == *name)
        };
        let before = self.state.spec.in_chunks.iter().flat_map(|before| &before.chunks);
        let old: Vec<_> = before.map(|chunk| chunk.name.clone()).collect();
        attempt
            .leftovers
            .extend(old.into_iter().filter(|name| !needed(name)));
        let body = json!({
            "metadata": {"annotations": {TIMESTAMP: clock::now().to_string()}},
            "spec": {
                "gardener": or_null(json!(spec.gardener)),
                "extensions": or_null(json!(spec.extensions)),
                "resources": or_null(json!(spec.resources)),
                "inChunks": spec.in_chunks,
                "chunkAttempt": note(&attempt),
            },
        });
        self.write(&body).await
    }

    /// Deletes chunks without a reference. Names are never used again, so the deletion is safe during
    /// concurrent writes.
    async fn clean_up(&mut self) -> Result<(), Unwritten> {
        let listed = self.state.spec.chunk_attempt.clone().unwrap_or_default();
        if listed.leftovers.is_empty() && listed.unfinished.is_empty() {
            return Ok(());
        }
        let attempt = self.attempt();
        let ignored = listed.leftovers.len() - attempt.leftovers.len();
        if ignored > 0 {
            tracing::warn!(
                shoot_state = self.place.name,
                ignored,
                "spec.chunkAttempt.leftovers lists chunks that are needed, are of other shoots, or are too many: they stay"
            );
        }
        let left = leftovers::delete(&self.place, &self.state, attempt).await?;
        if left == listed {
            return Ok(());
        }
        match self.write(&json!({"spec": {"chunkAttempt": note(&left)}})).await {
            // The concurrent writer has read the list and keeps the list.
            Err(Unwritten::Collided) => Ok(()),
            other => other,
        }
    }

    async fn write(&mut self, body: &Value) -> Result<(), Unwritten> {
        let mut body = body.clone();
        body["spec"]["epoch"] = json!(omit_first_epoch(self.epoch));
        let written = self.place.write(&self.state, &body).await?;
        self.state = written.ok_or(Unwritten::Collided)?;
        Ok(())
    }

    fn attempt(&self) -> ChunkAttempt {
        leftovers::attempt_of(&self.place.name, &self.state.spec)
    }
}

/// The most bytes that policy `gardenlet-shootstate` counts for a line of JSON. The API server stores some
/// signs with an escape sequence. The policy also counts a space after each separator.
fn stored_bytes(line: &[u8]) -> usize {
    let most = |byte: &u8| -> usize {
        match *byte {
            // A character outside of ASCII counts with the first byte of the character.
            b'<' | b'>' | b'&' | 0x7f | 0xc0..=0xef => 6,
            b',' => 2,
            0x80..=0xbf => 0,
            0xf0..=0xff => 10,
            _ => 1,
        }
    };
    line.iter().map(most).sum::<usize>() + float_bytes(line)
}

/// Whether a state of this size stands in the ShootState itself.
fn fits_here(bytes: usize, entries: usize) -> bool {
    bytes <= MOST_HERE && entries <= MOST_ENTRIES
}

/// The number after the number of the last attempt. Only a hostile owner writes the highest number.
fn next_number(name: &str, last: i64) -> Result<i64, Error> {
    let next = last.checked_add(1).filter(|next| *next <= HIGHEST_NUMBER);
    next.ok_or_else(|| {
        configuration_problem(format!(
            "spec.chunkAttempt.number of ShootState {name} is the highest number, so that no further chunk can be named: set \
             the number to 1 more than the number in the names of the InternalSecrets {name}.state-<number>-<number>"
        ))
    })
}

/// Refuses a writer that was stopped or cut off, and wakes up after the shoot has moved on.
fn check_epoch(name: &str, written: i64, epoch: i64) -> Result<(), Error> {
    if written <= epoch {
        return Ok(());
    }
    Err(Error::not_owner(format!(
        "ShootState {name} was written in ownership epoch {written}, and what is to be written is of epoch {epoch}: the shoot has \
         gone on, and nothing was changed"
    )))
}

/// Epoch 1 is not written: the state may be older than epochs.
fn omit_first_epoch(epoch: i64) -> Option<i64> {
    (epoch > 1).then_some(epoch)
}

/// The merge patch for `chunkAttempt`: empty fields become null, which removes the fields.
fn note(attempt: &ChunkAttempt) -> Value {
    if *attempt == ChunkAttempt::default() {
        return Value::Null;
    }
    json!({
        "number": attempt.number,
        "leftovers": or_null(json!(attempt.leftovers)),
        "unfinished": or_null(json!(attempt.unfinished)),
    })
}

fn or_null(list: Value) -> Value {
    if list == json!([]) { Value::Null } else { list }
}

fn number(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
