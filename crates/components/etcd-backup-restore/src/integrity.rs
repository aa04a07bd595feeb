//! The hash at the end of a snapshot: its last 32 bytes are the sha256 of everything before them.
//!
//! etcd ends its own snapshot stream in this format, and delta snapshots use the same format. So each object
//! can be checked alone, after decompression, in a single pass and with 32 bytes held back.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Bytes of the hash.
pub const TRAILER: usize = 32;

/// Checks a stream piece by piece.
#[derive(Default)]
pub struct TrailerCheck {
    hasher: Sha256,
    held: Vec<u8>,
    length: u64,
}

impl TrailerCheck {
    /// The next piece of the stream.
    pub fn update(&mut self, piece: &[u8]) {
        self.length += piece.len() as u64;
        if piece.len() >= TRAILER {
            self.hasher.update(&self.held);
            let (content, trailer) = piece.split_at(piece.len() - TRAILER);
            self.hasher.update(content);
            self.held.clear();
            self.held.extend_from_slice(trailer);
        } else {
            self.held.extend_from_slice(piece);
            let surplus = self.held.len().saturating_sub(TRAILER);
            self.hasher.update(&self.held[..surplus]);
            self.held.drain(..surplus);
        }
    }

    /// The length of the stream, or the fault of the stream.
    pub fn finish(self) -> Result<u64, String> {
        if self.held.len() < TRAILER {
            return Err(format!(
                "it has {} bytes, which is too short to hold a hash",
                self.length
            ));
        }
        if self.hasher.finalize().as_slice() != self.held {
            return Err("its content does not match the sha256 at its end".to_owned());
        }
        Ok(self.length)
    }
}

/// Hash of bytes that come piece by piece, in hex at the end.
#[derive(Default)]
pub struct Fingerprint(Sha256);

impl Fingerprint {
    /// The next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash.
    #[must_use]
    pub fn hex(self) -> String {
        self.0.finalize().iter().fold(String::new(), |mut hex, byte| {
            // Writing to a string does not fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(content: &[u8]) -> Vec<u8> {
        [content, Sha256::digest(content).as_slice()].concat()
    }

    fn check(stream: &[u8], piece: usize) -> Result<u64, String> {
        let mut check = TrailerCheck::default();
        stream.chunks(piece).for_each(|p| check.update(p));
        check.finish()
    }

    #[test]
    fn any_cutting_into_pieces_gives_the_same_answer() {
        for length in [0, 1, 31, 32, 33, 64, 1000] {
            let stream = sealed(&vec![9; length]);
            for piece in [1, 7, 31, 32, 33, 64, 5000] {
                assert_eq!(
                    check(&stream, piece),
                    Ok(length as u64 + 32),
                    "{length} by {piece}"
                );
            }
        }
    }

    #[test]
    fn a_changed_bit_or_a_missing_byte_is_found() {
        let stream = sealed(b"some content that matters");
        for index in 0..stream.len() {
            let mut changed = stream.clone();
            changed[index] ^= 1;
            assert!(check(&changed, 10).is_err(), "{index}");
            assert!(check(&stream[..index], 10).is_err(), "{index}");
        }
    }
}
