//! Merges the present pieces with the pieces of the earlier ShootState, in a single pass over both. A later
//! collection with fewer objects loses no piece: earlier pieces of objects that no longer exist (a migrated
//! and deleted extension object) stay.

use runtime::Error;

use super::{
    opened::Pieces,
    piece::{Key, Piece},
    writer::{ShootStateWrite, Unwritten, Writer},
};

/// Takes the present pieces in their order.
pub(super) struct Overlay {
    writer: Writer,
    before: Option<Pieces>,
    /// The next piece of the earlier ShootState.
    next: Option<Piece>,
    last: Option<Key>,
}

impl Overlay {
    /// `before`: pieces that stay unless replaced; `None`: the present pieces are the whole state.
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

    /// Adds a present piece.
    pub(super) async fn add_piece(&mut self, piece: Piece) -> Result<(), Unwritten> {
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
        self.writer.add_piece(piece).await
    }

    /// Finishes after the last present piece.
    pub(super) async fn finish(mut self) -> Result<ShootStateWrite, Unwritten> {
        while let Some(before) = self.next.take() {
            self.keep(before).await?;
            self.step().await?;
        }
        self.writer.finish().await
    }

    /// Drops an object that no state refers to any more, because no restore would read the object. A piece
    /// that no seed collects is left out: an error would stop the move while the shoot's API is down.
    async fn keep(&mut self, piece: Piece) -> Result<(), Unwritten> {
        if let Piece::Resource(resource) = &piece
            && !self.writer.check().is_referred_to(resource)
        {
            return Ok(());
        }
        self.writer.add_earlier(piece).await
    }

    async fn step(&mut self) -> Result<(), Unwritten> {
        self.next = match &mut self.before {
            Some(before) => before.next().await?,
            None => None,
        };
        Ok(())
    }
}
