//! Decompresses answers that an API server has compressed on request (gzip).

use std::{io::Write as _, mem};

use flate2::write::GzDecoder;
use http::{HeaderMap, header::CONTENT_ENCODING};
use hyper::body::Bytes;

/// Decompresses the pieces of an answer.
pub(crate) struct Unzip(Option<GzDecoder<Vec<u8>>>);

impl Unzip {
    /// `None` if the answer is not compressed: an API server sends small answers as they are.
    pub(crate) fn new(head: &HeaderMap) -> Option<Self> {
        let encoding = head.get(CONTENT_ENCODING)?;
        (encoding.as_bytes() == b"gzip").then(|| Self(Some(GzDecoder::new(Vec::new()))))
    }

    /// The content of a further piece. After an invalid piece no content follows, so that the reader meets an
    /// incomplete document.
    pub(crate) fn over(&mut self, piece: &[u8]) -> Bytes {
        let Some(decoder) = &mut self.0 else {
            return Bytes::new();
        };
        // A flush brings out all content of the pieces so far.
        let outcome = decoder.write_all(piece).and_then(|()| decoder.flush());
        if outcome.is_err() {
            self.0 = None;
            return Bytes::new();
        }
        Bytes::from(mem::take(decoder.get_mut()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use flate2::{Compression, write::GzEncoder};
    use http::HeaderValue;

    use super::*;

    fn zipped(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn unzip() -> Unzip {
        let mut head = HeaderMap::new();
        head.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        Unzip::new(&head).unwrap()
    }

    #[test]
    fn pieces_of_any_size_give_the_whole_content() {
        let text: Vec<u8> = (0..200_000_u32)
            .map(|n| b'a' + u8::try_from(n % 7).unwrap())
            .collect();
        let zipped = zipped(&text);
        for size in [1, 7, 1000, zipped.len()] {
            let mut unzip = unzip();
            let pieces = zipped.chunks(size).map(|piece| unzip.over(piece));
            assert_eq!(pieces.collect::<Vec<_>>().concat(), text, "{size}");
        }
    }

    #[test]
    fn an_invalid_piece_ends_the_content() {
        let mut unzip = unzip();
        assert!(unzip.over(b"this is no gzip").is_empty());
        assert!(unzip.over(&zipped(b"text")).is_empty());
        assert!(Unzip::new(&HeaderMap::new()).is_none());
    }
}
