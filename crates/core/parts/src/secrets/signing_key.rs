//! The key that signs service account tokens, in the format that kube-apiserver accepts for both uses.
//!
//! kube-apiserver reads the same file as signing key and as verification key. As verification key,
//! kube-apiserver accepts a public key or a private key in SEC 1 (`EC PRIVATE KEY`), but not PKCS #8
//! (`PRIVATE KEY`). kube-apiserver does not start with a PKCS #8 file.

use rcgen::KeyPair;
use runtime::{Error, Result};

/// The bytes before the private number in the PKCS #8 form of a P-256 key, and the bytes between the private
/// number and the public point.
const BEFORE_PRIVATE: [u8; 7] = [0x30, 0x6b, 0x02, 0x01, 0x01, 0x04, 0x20];
const BEFORE_PUBLIC: [u8; 5] = [0xa1, 0x44, 0x03, 0x42, 0x00];
/// The curve, which SEC 1 places between the private number and the public point.
const CURVE: [u8; 12] = [
    0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07,
];
/// Start of the SEC 1 form: a sequence of 119 bytes, version 1, 32 bytes of private number.
const BEGIN: [u8; 7] = [0x30, 0x77, 0x02, 0x01, 0x01, 0x04, 0x20];

/// A new P-256 key as `EC PRIVATE KEY`.
pub(super) fn generate() -> Result<String> {
    let key = KeyPair::generate().map_err(|e| Error::bug("no signing key could be made").caused_by(e))?;
    let der =
        sec1(key.serialized_der()).ok_or_else(|| Error::bug("a new signing key has an unknown form"))?;
    let config = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    Ok(pem::encode_config(&pem::Pem::new("EC PRIVATE KEY", der), config))
}

fn sec1(pkcs8: &[u8]) -> Option<Vec<u8>> {
    let start = pkcs8
        .windows(BEFORE_PRIVATE.len())
        .position(|window| window == BEFORE_PRIVATE)?;
    let (private, rest) = pkcs8[start + BEFORE_PRIVATE.len()..].split_at_checked(32)?;
    let public = rest
        .strip_prefix(&BEFORE_PUBLIC)
        .filter(|public| public.len() == 65)?;
    Some([&BEGIN[..], private, &CURVE, &BEFORE_PUBLIC, public].concat())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_signing_key_is_in_sec_1_form() {
        let key = pem::parse(generate().unwrap()).unwrap();
        assert_eq!(key.tag(), "EC PRIVATE KEY");
        assert_eq!(key.contents().len(), 121);
    }

    #[test]
    fn an_unknown_form_is_refused() {
        assert!(sec1(b"not a key").is_none());
    }
}
