//! Splits a long text into chunks that fit into objects, and joins chunks again. Pure functions.
//!
//! Each chunk is a separate zstd frame, so that a chunk is read without the remaining chunks. The end of a
//! chunk depends on the lines in the chunk. So a change within a line changes the chunks of that line, and
//! seldom further chunks.

use api::gardencore::StateChunk;
use sha2::{Digest, Sha256};

use crate::hex::hex;

/// Most bytes of text in a chunk. zstd adds at most a few thousand bytes to incompressible text. In base64,
/// with the rest of the object, the result stays below 1 MiB (R7-26).
pub(super) const MOST_TEXT: usize = 740_000;
/// Compression level: the default of zstd. Fixed, because equal text must give equal bytes.
const LEVEL: i32 = 3;

/// Cuts text into chunks.
#[derive(Debug, Default)]
pub(super) struct Splitter(Vec<u8>);

impl Splitter {
    /// Adds a line, and returns the texts of the chunks that are full now.
    pub(super) fn push(&mut self, line: &[u8]) -> Vec<Vec<u8>> {
        let mut full = Vec::new();
        let does_not_fit = self.0.len() + line.len() > MOST_TEXT;
        if does_not_fit && self.0.len() >= MOST_TEXT / 2 {
            full.push(std::mem::take(&mut self.0));
        }
        let mut rest = line;
        while self.0.len() + rest.len() > MOST_TEXT {
            let (head, tail) = rest.split_at(MOST_TEXT - self.0.len());
            self.0.extend_from_slice(head);
            full.push(std::mem::take(&mut self.0));
            rest = tail;
        }
        self.0.extend_from_slice(rest);
        full
    }

    /// The text of the last chunk, unless the text is empty.
    pub(super) fn rest(self) -> Option<Vec<u8>> {
        (!self.0.is_empty()).then_some(self.0)
    }
}

/// A compressed text.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) bytes: Vec<u8>,
    /// SHA-256 of the bytes, in hexadecimal.
    pub(super) sha256: String,
    /// Size of the text in bytes.
    pub(super) size: usize,
}

/// Compresses the text of one chunk.
pub(super) fn pack(text: &[u8]) -> std::io::Result<Packed> {
    let bytes = zstd::bulk::compress(text, LEVEL)?;
    Ok(Packed {
        sha256: hash(&bytes),
        bytes,
        size: text.len(),
    })
}

/// The text of a chunk, or the reason why the bytes are not the written bytes. The size of the chunk bounds
/// the decompression.
pub(super) fn unpack(chunk: &StateChunk, bytes: &[u8]) -> Result<Vec<u8>, String> {
    if hash(bytes) != chunk.sha256 {
        return Err(format!(
            "it holds other bytes than were written: their SHA-256 is {}, not {}",
            hash(bytes),
            chunk.sha256
        ));
    }
    let size = usize::try_from(chunk.size)
        .ok()
        .filter(|size| *size <= MOST_TEXT)
        .ok_or_else(|| {
            format!(
                "it is said to hold {} bytes of text, and at most {MOST_TEXT} are written",
                chunk.size
            )
        })?;
    let text = zstd::bulk::decompress(bytes, size)
        .map_err(|error| format!("it cannot be unpacked to {size} bytes: {error}"))?;
    if text.len() != size {
        return Err(format!("it holds {} bytes of text, not {size}", text.len()));
    }
    Ok(text)
}

/// Hashes a text piece by piece.
#[derive(Clone, Debug, Default)]
pub(super) struct Whole {
    hash: Sha256,
    size: usize,
}

impl Whole {
    pub(super) fn add(&mut self, text: &[u8]) {
        self.hash.update(text);
        self.size += text.len();
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn sha256(&self) -> String {
        hex(&self.hash.clone().finalize())
    }
}

fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

#[cfg(test)]
#[path = "chunk_tests.rs"]
mod tests;
