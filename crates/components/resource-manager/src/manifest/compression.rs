//! Data of a Secret key, compressed or not, by the ending of the key. The size of the unpacked data is
//! bounded.

use std::io::Read;

/// Maximum bytes of all unpacked manifests of a ManagedResource. A Secret holds 1 MiB, and such text rarely
/// compresses to less than a tenth.
pub const LARGEST: usize = 16 << 20;
/// Bytes of the buffer for packed data.
const BUFFER: usize = 4096;

/// The text of a key, at most `most` bytes.
pub fn unpack(key: &str, bytes: &[u8], most: usize) -> Result<String, String> {
    let ending = key.rsplit_once('.').map_or("", |(_, ending)| ending);
    let (how, unpacked) = if ending == "br" {
        (
            "brotli",
            bounded(brotli_decompressor::Decompressor::new(bytes, BUFFER), most),
        )
    } else if ending == "gz" {
        ("gzip", bounded(flate2::read::MultiGzDecoder::new(bytes), most))
    } else if ending == "zst" {
        let decoder =
            zstd::stream::read::Decoder::new(bytes).map_err(|_| "cannot be unpacked as zstd".to_owned())?;
        ("zstd", bounded(decoder, most))
    } else {
        ("plain", bounded(bytes, most))
    };
    let unpacked = unpacked.map_err(|_| format!("cannot be unpacked as {how}: the data is damaged"))?;
    if unpacked.len() > most {
        return Err(format!(
            "unpacked, the manifests are more than {LARGEST} bytes: use several ManagedResources"
        ));
    }
    String::from_utf8(unpacked).map_err(|_| "is not text in UTF-8".to_owned())
}

/// The unpacked data, cut at one byte more than `most`.
fn bounded(packed: impl Read, most: usize) -> std::io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    packed.take(most.saturating_add(1)).read_to_end(&mut unpacked)?;
    Ok(unpacked)
}
