//! Compression of snapshot objects: written with gzip or zstd; read with gzip, zstd, zlib or without
//! compression.
//!
//! Both directions stream: the writer returns compressed bytes as they come, the reader is an `AsyncRead`.

use crate::error::{Class, Error, Result};
use async_compression::tokio::bufread::{GzipDecoder, ZlibDecoder, ZstdDecoder};
use std::io::{self, Write};
use tokio::io::{AsyncBufRead, AsyncRead};

/// How an object is packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Compression {
    /// The bytes of etcd, unchanged.
    None,
    /// Readable by every tool, including Gardener's.
    #[default]
    Gzip,
    /// For objects in Gardener's buckets.
    Zlib,
    /// A fraction of gzip's time; only this project reads zstd.
    Zstd,
}

impl Compression {
    /// End of the object name.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
            Self::Zlib => ".zlib",
            Self::Zstd => ".zst",
        }
    }

    /// The reverse; `None` for packings that cannot be read.
    #[must_use]
    pub fn from_suffix(suffix: &str) -> Option<Self> {
        [Self::None, Self::Gzip, Self::Zlib, Self::Zstd]
            .into_iter()
            .find(|c| c.suffix() == suffix)
    }

    /// Unpacks while reading. An object that ends too early is an error, not an end.
    pub fn unpack(
        self,
        packed: impl AsyncBufRead + Send + Unpin + 'static,
    ) -> Box<dyn AsyncRead + Send + Unpin> {
        match self {
            Self::None => Box::new(packed),
            Self::Gzip => {
                let mut decoder = GzipDecoder::new(packed);
                decoder.multiple_members(true);
                Box::new(decoder)
            }
            Self::Zlib => Box::new(ZlibDecoder::new(packed)),
            Self::Zstd => {
                let mut decoder = ZstdDecoder::new(packed);
                decoder.multiple_members(true);
                Box::new(decoder)
            }
        }
    }

    /// Starts to pack.
    pub fn packer(self) -> Result<Packer> {
        // The lowest levels: during a move the snapshot delays the first write on the destination, and the
        // difference in size is small in comparison.
        let level = flate2::Compression::fast();
        Ok(match self {
            Self::None => Packer::None(Vec::new()),
            Self::Gzip => Packer::Gzip(flate2::write::GzEncoder::new(Vec::new(), level)),
            Self::Zlib => Packer::Zlib(flate2::write::ZlibEncoder::new(Vec::new(), level)),
            Self::Zstd => {
                Packer::Zstd(zstd::stream::write::Encoder::new(Vec::new(), 1).map_err(|e| packing(&e))?)
            }
        })
    }
}

fn packing(error: &io::Error) -> Error {
    Error::new(Class::Configuration, format!("cannot compress: {error}"))
}

/// Compresses the written bytes.
pub enum Packer {
    /// Without compression.
    None(Vec<u8>),
    /// gzip.
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    /// zlib.
    Zlib(flate2::write::ZlibEncoder<Vec<u8>>),
    /// zstd.
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Packer {
    /// Adds content.
    pub fn write(&mut self, content: &[u8]) -> Result<()> {
        match self {
            Self::None(out) => out.write_all(content),
            Self::Gzip(encoder) => encoder.write_all(content),
            Self::Zlib(encoder) => encoder.write_all(content),
            Self::Zstd(encoder) => encoder.write_all(content),
        }
        .map_err(|e| packing(&e))
    }

    /// The compressed bytes that were not taken yet.
    pub fn ready(&mut self) -> &mut Vec<u8> {
        match self {
            Self::None(out) => out,
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Zlib(encoder) => encoder.get_mut(),
            Self::Zstd(encoder) => encoder.get_mut(),
        }
    }

    /// Ends the stream and returns the remaining bytes.
    pub fn finish(self) -> Result<Vec<u8>> {
        match self {
            Self::None(out) => Ok(out),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zlib(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
        .map_err(|e| packing(&e))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tokio::io::AsyncReadExt;

    const ALL: [Compression; 4] = [
        Compression::None,
        Compression::Gzip,
        Compression::Zlib,
        Compression::Zstd,
    ];

    fn pack(compression: Compression, content: &[u8]) -> Vec<u8> {
        let (mut packer, mut out) = (compression.packer().unwrap(), Vec::new());
        for piece in content.chunks(100) {
            packer.write(piece).unwrap();
            out.append(packer.ready());
        }
        out.extend(packer.finish().unwrap());
        out
    }

    #[tokio::test]
    async fn every_packing_can_be_read_again() {
        let content: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        for compression in ALL {
            let packed = pack(compression, &content);
            let mut read = Vec::new();
            compression
                .unpack(io::Cursor::new(packed))
                .read_to_end(&mut read)
                .await
                .unwrap();
            assert!(read == content, "{compression:?}");
        }
    }

    #[tokio::test]
    async fn a_cut_object_is_an_error() {
        let content = vec![7; 100_000];
        for compression in &ALL[1..] {
            let mut packed = pack(*compression, &content);
            packed.truncate(packed.len() - 5);
            let mut read = Vec::new();
            let cut = compression
                .unpack(io::Cursor::new(packed))
                .read_to_end(&mut read)
                .await;
            assert!(cut.is_err(), "{compression:?}");
        }
    }
}
