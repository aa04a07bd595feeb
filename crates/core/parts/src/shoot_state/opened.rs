//! A verified ShootState, which gives access to single pieces in the object or in chunks.
//!
//! Beside chunks, the object holds the gardenlet's own Secrets. These pieces take precedence over the copies
//! in the chunks: a hostile host can replace each chunk, and no Secret in the object. So the keys of the
//! shoot depend on no chunk and on no further piece ([`own`](super::own)).
//!
//! All content is verified before the first piece is returned (hashes, sizes, count, and
//! [`carried`](super::carried)). A piece that fails stops only the reader of this piece. A chunk is verified
//! again when a piece is read from the chunk. The process holds at most two chunks and a single piece at a
//! time, independent of the size of the state. For pieces in chunks an index is kept, some hundred bytes per
//! piece.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter::Peekable,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use api::{
    gardencore::{
        ExtensionResourceState, GardenerResourceData, Shoot, ShootState, ShootStateSpec, StateInChunks,
    },
    machine,
    meta::{CrossVersionObjectReference, RawExtension, ResourceData},
};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use runtime::{Error, Result, client::Garden};

use super::{
    chunk::{Whole, unpack},
    entries, own,
    piece::{Key, Piece, pieces_of},
    place::StateStore,
    restore_limit,
    sentences::cut_error,
    verified::VerifiedPieces,
};

/// Most bytes of a piece: more than an API server accepts for an object (R7-26, R7-28).
pub(super) const MOST_PIECE: usize = 8 * 1024 * 1024;

/// A verified ShootState.
#[derive(Debug)]
pub(crate) struct Opened {
    place: StateStore,
    /// The resourceVersion of the verified ShootState; used to detect a change.
    version: Option<String>,
    /// The uid of the ShootState, which owns the chunks.
    uid: String,
    content: Content,
    /// A sentence about each piece that no seed collects.
    left_out: BTreeMap<Key, String>,
    /// The reason for each key of the shoot that has an entry and cannot be restored.
    broken_keys: BTreeMap<String, String>,
    /// The reason why only the keys of the shoot can be read.
    unreadable: Option<Error>,
}

#[derive(Debug)]
enum Content {
    Here(BTreeMap<Key, Piece>),
    InChunks {
        /// The gardenlet's own Secrets.
        here: BTreeMap<Key, Piece>,
        chunks: StateInChunks,
        index: BTreeMap<Key, Range<usize>>,
        /// The chunk that was read last, because callers ask for neighbouring pieces in sequence.
        last: Mutex<Option<(usize, Arc<Vec<u8>>)>>,
    },
}

/// A cache of the verified ShootState. Each task reads the ShootState from the garden, and only the
/// verification of an unchanged version is skipped. So no task depends on the cache.
#[derive(Clone, Debug, Default)]
pub struct ShootStateCache(Arc<Mutex<Option<Arc<Opened>>>>);

impl ShootStateCache {
    /// The verified ShootState, if the version equals the version of `state`.
    pub(super) fn find_opened(&self, state: &ShootState) -> Option<Arc<Opened>> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        last.filter(|opened| opened.is_of(state))
    }

    pub(super) fn keep_opened(&self, opened: &Arc<Opened>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(opened));
    }
}

impl Opened {
    /// The verified ShootState of a Shoot, if the ShootState exists.
    pub(crate) async fn read(garden: &Garden, shoot: &Shoot) -> Result<Option<Self>> {
        let place = StateStore::new(garden, &shoot.namespace().unwrap_or_default(), &shoot.name_any());
        match place.state(&shoot.uid().unwrap_or_default()).await? {
            Some(state) => Self::open(place, state, None).await.map(Some),
            None => Ok(None),
        }
    }

    /// Verifies the content, of at most `limit` bytes beside the keys of the shoot. A piece that no seed
    /// collects is left out. Without the chunks, the ShootState gives only the keys.
    pub(super) async fn open(place: StateStore, mut state: ShootState, limit: Option<u64>) -> Result<Self> {
        let (version, uid) = (state.resource_version(), state.uid().unwrap_or_default());
        let chunks = state.spec.in_chunks.take();
        let mut pieces = Pieces::new(place.clone(), state, chunks.clone());
        pieces.limit = limit;
        let (mut verified, mut unreadable) = (VerifiedPieces::new(&place.name), None);
        if let Some(chunks) = &chunks
            && let Err(error) = restore_limit::check(&place.name, restore_limit::declared_size(chunks), limit)
        {
            pieces.leave_chunks();
            unreadable = Some(error);
        }
        loop {
            let added = match pieces.next_with_place().await {
                Ok(None) => break,
                Ok(Some((piece, range))) => verified.add(piece, range),
                Err(error) => Err(error),
            };
            match added {
                Ok(()) => {}
                Err(error @ (Error::Config { .. } | Error::NotReady { .. })) => {
                    pieces.leave_chunks();
                    unreadable = Some(cut_error(error));
                }
                Err(error) => return Err(error),
            }
        }
        if unreadable.is_some() {
            verified.forget_chunks();
        }
        let broken_keys = verified.broken_keys();
        let content = match chunks {
            None => Content::Here(verified.here),
            Some(chunks) => Content::InChunks {
                here: verified.here,
                chunks,
                index: verified.index,
                last: Mutex::default(),
            },
        };
        Ok(Self {
            place,
            version,
            uid,
            content,
            left_out: verified.left_out,
            broken_keys,
            unreadable,
        })
    }

    /// Fails if a key of the shoot has an entry and cannot be restored.
    pub(super) fn check_keys(&self) -> Result<()> {
        let first = self.broken_keys.iter().next();
        first.map_or(Ok(()), |(name, why)| {
            Err(own::broken_key(&self.place.name, name, why))
        })
    }

    /// Whether the pieces beside the keys of the shoot can be read.
    pub(super) fn is_readable(&self) -> bool {
        self.unreadable.is_none()
    }

    /// Sentences about the content that a restore leaves out. Fails while the right to read the chunks is
    /// missing.
    pub(crate) fn left_out(&self) -> Result<Vec<String>> {
        let mut all = Vec::new();
        match &self.unreadable {
            Some(error @ Error::NotReady { .. }) => return Err(error.clone()),
            Some(error) => all.push(error.to_string()),
            None => {}
        }
        all.extend(self.left_out.values().cloned());
        Ok(all)
    }

    /// Whether `state` is the verified version.
    pub(super) fn is_of(&self, state: &ShootState) -> bool {
        self.version.is_some() && self.version == state.resource_version()
    }

    /// Names of the readable Secrets in `spec.gardener`.
    pub(crate) fn secret_names(&self) -> Vec<String> {
        let is_readable = |key: &&Key| self.is_readable() || key.is_own_secret();
        let names = |key: &Key| key.gardener_name(entries::ENTRY_TYPE).map(str::to_owned);
        self.keys()
            .into_iter()
            .filter(is_readable)
            .filter_map(names)
            .collect()
    }

    /// The keys of all pieces, in order.
    fn keys(&self) -> Vec<&Key> {
        let mut keys: Vec<_> = match &self.content {
            Content::Here(here) => here.keys().collect(),
            Content::InChunks { here, index, .. } => here.keys().chain(index.keys()).collect(),
        };
        keys.sort();
        keys
    }

    /// Returns a Secret of `spec.gardener` by name. Of several Secrets of an extension with the same name,
    /// the first valid Secret counts: a planted entry must not stop the restore of all further Secrets.
    pub(crate) async fn secret(&self, name: &str) -> Result<Option<Secret>> {
        let key = Key::gardener(entries::ENTRY_TYPE, name);
        let found = if key.is_own_secret() {
            self.piece(&key).await?
        } else {
            self.find(&key).await?
        };
        let Some(Piece::Gardener(entry)) = found else {
            return Ok(None);
        };
        let secret = if key.is_own_secret() {
            own::known_secret(&entry).map_err(|why| own::broken_key(&self.place.name, name, &why))
        } else {
            entries::to_secret(&self.place.name, &entry)
        };
        secret.map(Some)
    }

    /// The state of the shoot's machines, in the form of a Worker's status.
    pub(crate) async fn machines(&self) -> Result<Option<RawExtension>> {
        let (type_, name) = (machine::state::ENTRY, machine::state::ENTRY);
        Ok(self.gardener(type_, name).await?.map(|entry| entry.data))
    }

    /// The state of a single extension object.
    pub(crate) async fn extension(
        &self,
        kind: &str,
        name: &str,
        purpose: Option<&str>,
    ) -> Result<Option<ExtensionResourceState>> {
        Ok(
            match self.piece(&Key::extension(kind, Some(name), purpose)).await? {
                Some(Piece::Extension(entry)) => Some(entry),
                _ => None,
            },
        )
    }

    /// An object that a state refers to. A state without this object would be worthless, so the absence is an
    /// error.
    pub(crate) async fn resource(&self, reference: &CrossVersionObjectReference) -> Result<ResourceData> {
        if let Some(Piece::Resource(resource)) = self.piece(&Key::resource(reference)).await? {
            return Ok(resource);
        }
        Err(crate::configuration_problem(format!(
            "ShootState {} does not hold {} {}, which the state of an extension refers to: put it into spec.resources",
            self.place.name, reference.kind, reference.name
        )))
    }

    /// All pieces that a restore may apply.
    pub(super) async fn whole(&self) -> Result<ShootStateSpec> {
        if let Some(error) = &self.unreadable {
            return Err(error.clone());
        }
        let mut spec = ShootStateSpec::default();
        for key in self.keys() {
            if let Some(piece) = self.find(key).await? {
                piece.put_into(&mut spec);
            }
        }
        Ok(spec)
    }

    async fn gardener(&self, type_: &str, name: &str) -> Result<Option<GardenerResourceData>> {
        Ok(match self.piece(&Key::gardener(type_, name)).await? {
            Some(Piece::Gardener(entry)) => Some(entry),
            _ => None,
        })
    }

    /// The piece for a reader. A left-out piece is an error for the reader: with an empty state instead, a
    /// provider would create the objects again.
    async fn piece(&self, key: &Key) -> Result<Option<Piece>> {
        let is_key_here = key.is_own_secret() && self.holds_here(key);
        if !is_key_here && let Some(error) = &self.unreadable {
            return Err(error.clone());
        }
        if let Some(sentence) = self.left_out.get(key) {
            return Err(crate::configuration_problem(format!(
                "{sentence}. Nothing is restored in its place: put its former content back"
            )));
        }
        self.find(key).await
    }

    fn holds_here(&self, key: &Key) -> bool {
        match &self.content {
            Content::Here(here) | Content::InChunks { here, .. } => here.contains_key(key),
        }
    }

    async fn find(&self, key: &Key) -> Result<Option<Piece>> {
        match &self.content {
            Content::Here(here) => Ok(here.get(key).cloned()),
            Content::InChunks { here, index, .. } => match (here.get(key), index.get(key)) {
                (Some(piece), _) => Ok(Some(piece.clone())),
                (None, None) => Ok(None),
                (None, Some(place)) => {
                    let line = self.text(place.clone()).await?;
                    let piece = Piece::from_line(&line).filter(|piece| piece.key() == *key);
                    piece
                        .map(Some)
                        .ok_or_else(|| Error::bug("an index of a state in chunks leads to another piece"))
                }
            },
        }
    }

    /// The bytes of the whole text in this range.
    async fn text(&self, range: Range<usize>) -> Result<Vec<u8>> {
        let Content::InChunks { chunks, .. } = &self.content else {
            return Ok(Vec::new());
        };
        let (mut text, mut begins) = (Vec::with_capacity(range.len()), 0);
        for (number, chunk) in chunks.chunks.iter().enumerate() {
            let ends = begins + usize::try_from(chunk.size).unwrap_or_default();
            if ends > range.start && begins < range.end {
                let held = self.chunk(number).await?;
                let from = range.start.saturating_sub(begins);
                let to = (range.end - begins).min(held.len());
                text.extend_from_slice(held.get(from..to).unwrap_or_default());
            }
            begins = ends;
        }
        Ok(text)
    }

    async fn chunk(&self, number: usize) -> Result<Arc<Vec<u8>>> {
        let Content::InChunks { chunks, last, .. } = &self.content else {
            return Ok(Arc::default());
        };
        let held = last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, text)) = held.filter(|(held, _)| *held == number) {
            return Ok(text);
        }
        let chunk = &chunks.chunks[number];
        let bytes = self.place.chunk(&chunk.name, &self.uid).await?;
        let text = unpack(chunk, &bytes).map_err(|why| self.place.spoilt(&chunk.name, &why))?;
        let text = Arc::new(text);
        *last.lock().unwrap_or_else(PoisonError::into_inner) = Some((number, Arc::clone(&text)));
        Ok(text)
    }
}

/// The pieces of a ShootState in sequence. The stream ends without an error only when all content equals the
/// written content.
pub(super) struct Pieces {
    place: StateStore,
    /// The uid of the ShootState, which owns the chunks.
    uid: String,
    /// The pieces in the ShootState itself; beside chunks, the gardenlet's own Secrets.
    here: Peekable<std::vec::IntoIter<Piece>>,
    /// Keys of pieces beside the chunks. The copies in the chunks are skipped.
    beside: BTreeSet<Key>,
    /// The next piece in chunks, with the range.
    pending: Option<(Piece, Range<usize>)>,
    chunks: Option<Arc<StateInChunks>>,
    next_chunk: usize,
    whole: Whole,
    /// Text that was read, from `begins` on.
    text: Vec<u8>,
    used: usize,
    begins: usize,
    /// The most bytes of all chunks. A hostile source may declare fewer bytes than the chunks have.
    limit: Option<u64>,
}

impl Pieces {
    pub(super) fn new(place: StateStore, state: ShootState, chunks: Option<StateInChunks>) -> Self {
        let uid = state.uid().unwrap_or_default();
        let mut here = pieces_of(state.spec);
        let mut beside = BTreeSet::new();
        if chunks.is_some() {
            here.retain(|piece| piece.key().is_own_secret());
            beside = here.iter().map(Piece::key).collect();
        }
        Self {
            place,
            uid,
            here: here.into_iter().peekable(),
            beside,
            pending: None,
            chunks: chunks.map(Arc::new),
            next_chunk: 0,
            whole: Whole::default(),
            text: Vec::new(),
            used: 0,
            begins: 0,
            limit: None,
        }
    }

    /// Leaves out the pieces in chunks from here on. The pieces in the ShootState itself follow.
    fn leave_chunks(&mut self) {
        self.chunks = None;
        self.pending = None;
    }

    pub(super) async fn next(&mut self) -> Result<Option<Piece>> {
        Ok(self.next_with_place().await?.map(|(piece, _)| piece))
    }

    /// The next piece. A piece in chunks comes with the range in the whole text.
    async fn next_with_place(&mut self) -> Result<Option<(Piece, Option<Range<usize>>)>> {
        while self.pending.is_none() {
            let Some((piece, place)) = self.next_in_chunks().await? else {
                break;
            };
            if !self.beside.contains(&piece.key()) {
                self.pending = Some((piece, place));
            }
        }
        let pending = self.pending.as_ref().map(|(piece, _)| piece.key());
        let comes_first = |here: &Piece| pending.as_ref().is_none_or(|pending| here.key() < *pending);
        if let Some(piece) = self.here.next_if(comes_first) {
            return Ok(Some((piece, None)));
        }
        Ok(self.pending.take().map(|(piece, place)| (piece, Some(place))))
    }

    /// The next piece in chunks, with the range in the whole text.
    async fn next_in_chunks(&mut self) -> Result<Option<(Piece, Range<usize>)>> {
        let Some(chunks) = self.chunks.clone() else {
            return Ok(None);
        };
        let mut looked = 0;
        loop {
            let unread = &self.text[self.used..];
            if let Some(end) = unread[looked..].iter().position(|byte| *byte == b'\n') {
                let line = &unread[..looked + end];
                let from = self.begins + self.used;
                let place = from..from + line.len();
                let piece = Piece::from_line(line).ok_or_else(|| {
                    self.spoilt(&format!("at byte {from} of its text stands no piece of a state"))
                })?;
                self.used += line.len() + 1;
                return Ok(Some((piece, place)));
            }
            looked = unread.len();
            if looked > MOST_PIECE {
                return Err(self.spoilt(&format!("it has a piece of more than {MOST_PIECE} bytes")));
            }
            if !self.read_chunk(&chunks).await? {
                return self.check_end(&chunks).map(|()| None);
            }
        }
    }

    async fn read_chunk(&mut self, chunks: &StateInChunks) -> Result<bool> {
        let Some(chunk) = chunks.chunks.get(self.next_chunk) else {
            return Ok(false);
        };
        let bytes = self.place.chunk(&chunk.name, &self.uid).await?;
        let text = unpack(chunk, &bytes).map_err(|why| self.place.spoilt(&chunk.name, &why))?;
        self.whole.add(&text);
        let size = u64::try_from(self.whole.size()).unwrap_or(u64::MAX);
        restore_limit::check(&self.place.name, size, self.limit)?;
        self.begins += self.used;
        self.text.drain(..self.used);
        self.used = 0;
        self.text.extend_from_slice(&text);
        self.next_chunk += 1;
        Ok(true)
    }

    fn check_end(&self, chunks: &StateInChunks) -> Result<()> {
        if self.used < self.text.len() {
            return Err(self.spoilt("its text ends in the middle of a piece"));
        }
        let size = i64::try_from(self.whole.size()).unwrap_or(i64::MAX);
        if size != chunks.size || self.whole.sha256() != chunks.sha256 {
            return Err(self.spoilt(&format!(
                "its {} chunks have {size} bytes with SHA-256 {}, not {} with {}",
                chunks.chunks.len(),
                self.whole.sha256(),
                chunks.size,
                chunks.sha256
            )));
        }
        Ok(())
    }

    fn spoilt(&self, why: &str) -> Error {
        crate::configuration_problem(format!(
            "spec.inChunks of ShootState {} cannot be used: {why}. Only the keys of the shoot are restored: put its former \
             content back",
            self.place.name
        ))
    }
}
