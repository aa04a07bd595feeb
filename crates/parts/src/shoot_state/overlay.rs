//! Lays what is there now over what was collected before, in one pass over both, so that a later, poorer look
//! never loses anything: what was collected earlier and is not there any more (an extension object that let
//! go and went) stays.

use runtime::Error;

use super::{
    opened::Pieces,
    piece::{Key, Piece},
    writer::{Kept, Unwritten, Writer},
};

/// Takes the pieces that are there now, in their order.
pub(super) struct Overlay {
    writer: Writer,
    before: Option<Pieces>,
    /// The next of those before.
    next: Option<Piece>,
    last: Option<Key>,
}

impl Overlay {
    /// `before`: what stays where nothing is laid over it; `None`: what is there now is all there is.
    pub(super) async fn new(writer: Writer, before: Option<Pieces>) -> Result<Self, Unwritten> {
        let mut overlay = Self {
            writer,
            before,
            next: None,
            last: None,
        };
        overlay.step().await?;
        Ok(overlay)
    }

    /// Takes a piece that is there now.
    pub(super) async fn put(&mut self, piece: Piece) -> Result<(), Unwritten> {
        let key = piece.key();
        if self.last.as_ref().is_some_and(|last| *last >= key) {
            return Err(Error::bug(format!("{} was collected out of order", piece.describe())).into());
        }
        while let Some(before) = self.next.take_if(|before| before.key() < key) {
            self.keep(before).await?;
            self.step().await?;
        }
        if self.next.take_if(|before| before.key() == key).is_some() {
            self.step().await?;
        }
        self.last = Some(key);
        self.writer.put(piece).await
    }

    /// All that is there now was put in.
    pub(super) async fn finish(mut self) -> Result<Kept, Unwritten> {
        while let Some(before) = self.next.take() {
            self.keep(before).await?;
            self.step().await?;
        }
        self.writer.finish().await
    }

    /// What a state referred to earlier and does not any more nobody would restore.
    async fn keep(&mut self, piece: Piece) -> Result<(), Unwritten> {
        if let Piece::Resource(resource) = &piece
            && !self.writer.check().is_referred_to(resource)
        {
            return Ok(());
        }
        self.writer.put(piece).await
    }

    async fn step(&mut self) -> Result<(), Unwritten> {
        self.next = match &mut self.before {
            Some(before) => before.next().await?,
            None => None,
        };
        Ok(())
    }
}
