//! The serial number of the certificate for etcd in a preparation.

use api::gardencore::shoot::MigrationPreparation;

use crate::hex::hex;

/// Serial number of the certificate for etcd, as long as a certificate may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EtcdSerial([u8; 20]);

impl EtcdSerial {
    /// Derived from the grant, so that the source can list the serial number without the certificate: also
    /// after a restart, and after garden-controller-manager has deleted the object with the keys.
    pub(crate) fn from_grant(granted: &MigrationPreparation) -> Self {
        let MigrationPreparation {
            uid,
            source,
            destination,
            epoch,
            expiry,
        } = granted;
        // No name and no uid has a slash.
        let text = format!("{uid}/{source}/{destination}/{epoch}/{}", expiry.0.as_second());
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        let mut serial = [0; 20];
        for (byte, hashed) in serial.iter_mut().zip(digest.as_ref()) {
            *byte = *hashed;
        }
        // A positive number without a leading zero has the same bytes in the certificate.
        serial[0] = (serial[0] & 0x3f) | 0x40;
        Self(serial)
    }

    /// As in lists for the gate.
    pub(crate) fn to_hex(self) -> String {
        hex(&self.0)
    }
}

impl AsRef<[u8]> for EtcdSerial {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
