//! Certificates of preparations at the gate: the source issues such a certificate for the destination of a
//! grant, and the gate admits the certificate while the gardenlet of the source lists the serial number.
//!
//! The subject of such a certificate has an organizational unit, and the subject of no further certificate of
//! etcd's CA has an organizational unit. The list is in memory: after a start of this process the gate admits
//! no certificate of a preparation until the gardenlet repeats the list.

use super::prepared_share::{PreparedLimits, PreparedShare};
use crate::error::{Class, Error, Result};
use crate::metrics::GateMetrics;
use jiff::Timestamp;
use permit::{Clock, Issuer, Permit};
use rustls::pki_types::CertificateDer;
use sidecar_protocol::PreparedClientList;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Serial numbers in a list. A shoot has one grant at a time.
const MOST: usize = 16;

/// Digits of the longest serial number: 20 bytes, and a byte for the sign.
const SERIAL_DIGITS: usize = 42;

/// The longest validity of a list, whatever the sender asks for.
const LONGEST_VALIDITY: Duration = Duration::from_secs(5 * 60);

/// The certificate of a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ClientCertificate {
    /// Issued for a process of this seed.
    Own,
    /// Issued for a preparation, with this serial number.
    Prepared(String),
}

impl ClientCertificate {
    /// `None` where the certificate cannot be read: the gate then refuses the client.
    pub(super) fn read(chain: Option<&[CertificateDer<'_>]>) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(chain?.first()?).ok()?;
        let is_own = certificate.subject().iter_organizational_unit().next().is_none();
        if is_own {
            return Some(Self::Own);
        }
        let mut serial = String::new();
        for byte in certificate.raw_serial() {
            write!(serial, "{byte:02x}").ok()?;
        }
        Some(Self::Prepared(serial))
    }
}

/// Whether [`ClientCertificate::read`] may return this serial number.
fn is_serial(serial: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (2..=SERIAL_DIGITS).contains(&serial.len())
        && serial.len().is_multiple_of(2)
        && serial.bytes().all(is_digit)
}

/// The serial numbers that the gate admits, each with a right that ends with the list.
pub struct PreparedClients {
    admitted: Mutex<BTreeMap<String, Issuer>>,
    share: Arc<PreparedShare>,
    clock: Clock,
    metrics: GateMetrics,
    /// Whether TLS of clients ends in the gate.
    sees_certificates: bool,
}

impl PreparedClients {
    /// A gate that sees no certificates takes no list.
    pub(in crate::owner) fn new(
        sees_certificates: bool,
        limits: PreparedLimits,
        metrics: GateMetrics,
    ) -> Self {
        Self {
            admitted: Mutex::default(),
            share: Arc::new(PreparedShare::new(limits)),
            clock: Clock::default(),
            metrics,
            sees_certificates,
        }
    }

    /// Replaces the list. Connections with a serial number that is not in the new list end now, further
    /// connections end with the list or with the grant. Returns the number of admitted serial numbers. The
    /// caller checks the epoch.
    ///
    /// # Errors
    /// The gate cannot follow the list.
    pub fn replace(&self, list: &PreparedClientList, now: Timestamp) -> Result<usize> {
        if !self.sees_certificates {
            let what = "the gate cannot refuse the certificate of a preparation, because the gate forwards bytes or etcd has no \
                 TLS: set backupRestore.gateProtocol of etcd-druid to HTTP2";
            return Err(Error::new(Class::Configuration, what));
        }
        if !self.share.has_connections() {
            let what = "the gate has no connection for the certificate of a preparation, because the limit of open files is too \
                 low for --gate-max-connections and further connections: raise the limit of the container";
            return Err(Error::new(Class::Configuration, what));
        }
        if list.clients.len() > MOST {
            let what = format!(
                "{} serial numbers are listed for the gate, and at most {MOST} are taken",
                list.clients.len()
            );
            return Err(Error::new(Class::Configuration, what));
        }
        if !list.clients.iter().all(|client| is_serial(&client.serial)) {
            let what = format!(
                "a serial number is listed for the gate that no certificate has: write the bytes as pairs of digits and \
                 letters a to f, at most {SERIAL_DIGITS}"
            );
            return Err(Error::new(Class::Configuration, what));
        }
        let validity = Duration::from_millis(list.valid_for_milliseconds).min(LONGEST_VALIDITY);
        let rights = list.clients.iter().filter_map(|client| {
            let left = Duration::try_from(client.expiry.duration_since(now));
            let validity = validity.min(left.unwrap_or_default());
            (!validity.is_zero()).then(|| (client.serial.clone(), validity))
        });
        let rights: BTreeMap<_, _> = rights.collect();
        let mut admitted = self.admitted();
        admitted.retain(|serial, issuer| {
            let is_listed = rights.contains_key(serial);
            if !is_listed {
                issuer.end("the certificate is not in the list any more");
                tracing::info!(%serial, "the gate refuses the certificate of a preparation");
            }
            is_listed
        });
        for (serial, validity) in rights {
            let until = self.clock.now() + validity;
            let is_extended = admitted.get(&serial).is_some_and(|issuer| issuer.extend(until));
            if !is_extended {
                tracing::info!(%serial, "the gate admits the certificate of a preparation");
                let issuer = Issuer::new("the list of preparations", self.clock.clone(), until);
                admitted.insert(serial, issuer);
            }
        }
        Ok(admitted.len())
    }

    /// Judges the certificate of a client. `None`: the certificate belongs to a process of this seed.
    ///
    /// # Errors
    /// The certificate was issued for a preparation, and is not in the list, or the share has no free place.
    pub(super) fn admit(
        &self,
        chain: Option<&[CertificateDer<'_>]>,
    ) -> io::Result<Option<PreparedConnection>> {
        let serial = match ClientCertificate::read(chain) {
            Some(ClientCertificate::Own) => return Ok(None),
            Some(ClientCertificate::Prepared(serial)) => serial,
            None => {
                tracing::warn!("the gate refuses a client whose certificate cannot be read");
                return Err(io::ErrorKind::PermissionDenied.into());
            }
        };
        let permit = self.admitted().get(&serial).map(Issuer::permit);
        let permit = permit.filter(Permit::is_valid);
        match permit.and_then(|permit| Some((permit, self.share.admit_connection()?))) {
            Some((permit, place)) => {
                self.metrics.prepared_connections(1);
                Ok(Some(PreparedConnection {
                    permit,
                    share: self.share.clone(),
                    metrics: self.metrics.clone(),
                    _place: place,
                }))
            }
            None => Err(self.refuse(&serial)),
        }
    }

    /// Number of open connections with a listed certificate.
    pub(super) fn open_connections(&self) -> usize {
        self.share.open_connections()
    }

    fn refuse(&self, serial: &str) -> io::Error {
        self.metrics.prepared_refused();
        tracing::debug!(
            serial,
            "a client with the certificate of a preparation is refused"
        );
        io::ErrorKind::PermissionDenied.into()
    }

    /// Replaces the clock, before the first list.
    #[cfg(test)]
    pub(super) fn use_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    fn admitted(&self) -> MutexGuard<'_, BTreeMap<String, Issuer>> {
        self.admitted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection with a listed certificate, counted while open.
pub(super) struct PreparedConnection {
    permit: Permit,
    share: Arc<PreparedShare>,
    metrics: GateMetrics,
    _place: OwnedSemaphorePermit,
}

impl PreparedConnection {
    /// The right of the connection, beside the permit of the gate. Ends with the list or with the grant.
    pub(super) fn permit(&self) -> &Permit {
        &self.permit
    }

    /// The bounds of the requests of the connection.
    pub(super) fn share(&self) -> &Arc<PreparedShare> {
        &self.share
    }
}

impl Drop for PreparedConnection {
    fn drop(&mut self) {
        self.metrics.prepared_connections(-1);
    }
}

#[cfg(test)]
#[path = "prepared_clients_tests.rs"]
mod tests;
