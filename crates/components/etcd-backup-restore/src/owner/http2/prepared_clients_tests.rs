#![allow(clippy::unwrap_used)]

use super::*;
use jiff::SignedDuration;
use rcgen::{CertificateParams, DnType, KeyPair, SerialNumber};
use sidecar_protocol::{PREPARED_CLIENT_UNIT, PreparedClient};
use tokio::time::advance;

const SERIAL: [u8; 2] = [0x4a, 0x0f];
/// A second less than the validity of a list.
const ALMOST: Duration = Duration::from_secs(59);

fn certificate(unit: Option<&str>) -> [CertificateDer<'static>; 1] {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.serial_number = Some(SerialNumber::from_slice(&SERIAL));
    if let Some(unit) = unit {
        params
            .distinguished_name
            .push(DnType::OrganizationalUnitName, unit);
    }
    let key = KeyPair::generate().unwrap();
    [params.self_signed(&key).unwrap().der().clone()]
}

fn now() -> Timestamp {
    Timestamp::from_second(1_767_225_600).unwrap()
}

/// A list with these serial numbers, whose grants end in an hour.
fn list(serials: &[&str]) -> PreparedClientList {
    let clients = serials.iter().map(|serial| PreparedClient {
        serial: (*serial).to_owned(),
        expiry: now() + SignedDuration::from_hours(1),
    });
    PreparedClientList {
        epoch: 3,
        valid_for_milliseconds: 60_000,
        clients: clients.collect(),
    }
}

fn clients() -> PreparedClients {
    let limits = PreparedLimits {
        connections: 2,
        requests: 1,
    };
    let mut clients = PreparedClients::new(true, limits, GateMetrics::default());
    clients.clock = Clock::with_suspension(|| Duration::ZERO);
    clients
}

/// A mark that this version does not know is a mark all the same.
#[test]
fn a_certificate_with_an_organizational_unit_is_of_a_preparation() {
    let read = |chain: &[CertificateDer<'static>]| ClientCertificate::read(Some(chain));
    assert_eq!(read(&certificate(None)), Some(ClientCertificate::Own));
    for unit in [PREPARED_CLIENT_UNIT, "gardener.cloud:novelty", ""] {
        let prepared = ClientCertificate::Prepared("4a0f".to_owned());
        assert_eq!(read(&certificate(Some(unit))), Some(prepared), "{unit}");
    }
    assert_eq!(read(&[vec![0x30, 0x03, 1, 2, 3].into()]), None);
    assert_eq!(read(&[]), None);
    assert_eq!(ClientCertificate::read(None), None);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_of_a_preparation_is_admitted_while_it_is_listed() {
    let clients = clients();
    let [own, prepared] = [None, Some(PREPARED_CLIENT_UNIT)].map(certificate);
    let is_admitted = |chain: &[CertificateDer<'static>]| clients.admit(Some(chain)).is_ok();
    // After a start there is no list.
    assert!(clients.admit(Some(&own)).unwrap().is_none());
    assert!(!is_admitted(&prepared) && clients.admit(None).is_err());
    assert_eq!(clients.replace(&list(&["00"]), now()).unwrap(), 1);
    assert!(!is_admitted(&prepared));
    assert_eq!(clients.replace(&list(&["00", "4a0f"]), now()).unwrap(), 2);
    let connection = clients.admit(Some(&prepared)).unwrap().unwrap();

    // A repeated list keeps the connections.
    advance(ALMOST).await;
    clients.replace(&list(&["4a0f"]), now()).unwrap();
    advance(ALMOST).await;
    assert!(connection.permit().is_valid() && is_admitted(&prepared));
    advance(Duration::from_secs(1)).await;
    assert!(!connection.permit().is_valid() && !is_admitted(&prepared));

    clients.replace(&list(&["4a0f"]), now()).unwrap();
    let connection = clients.admit(Some(&prepared)).unwrap().unwrap();
    assert_eq!(clients.replace(&list(&[]), now()).unwrap(), 0);
    let cut = connection.permit().guard(std::future::pending::<()>()).await;
    assert!(cut.unwrap_err().to_string().contains("not in the list any more"));
    assert!(!is_admitted(&prepared) && is_admitted(&own));
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_admitted_no_longer_than_its_grant() {
    let clients = clients();
    let prepared = certificate(Some(PREPARED_CLIENT_UNIT));
    let near_the_end = now() + SignedDuration::from_secs(3600 - 5);
    assert_eq!(clients.replace(&list(&["4a0f"]), near_the_end).unwrap(), 1);
    let connection = clients.admit(Some(&prepared)).unwrap().unwrap();
    advance(Duration::from_millis(4_999)).await;
    assert!(connection.permit().is_valid());
    advance(Duration::from_millis(1)).await;
    assert!(!connection.permit().is_valid() && clients.admit(Some(&prepared)).is_err());
    for after in [3600, 3601] {
        let ended = now() + SignedDuration::from_secs(after);
        assert_eq!(clients.replace(&list(&["4a0f"]), ended).unwrap(), 0, "{after}");
    }
    let mut endless = list(&["4a0f"]);
    endless.valid_for_milliseconds = u64::MAX;
    clients.replace(&endless, now()).unwrap();
    let connection = clients.admit(Some(&prepared)).unwrap().unwrap();
    advance(LONGEST_VALIDITY).await;
    assert!(!connection.permit().is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_certificate_of_a_preparation_is_admitted_while_the_share_has_a_place() {
    let clients = clients();
    let [own, prepared] = [None, Some(PREPARED_CLIENT_UNIT)].map(certificate);
    clients.replace(&list(&["4a0f"]), now()).unwrap();
    let [first, second] = [clients.admit(Some(&prepared)), clients.admit(Some(&prepared))];
    assert!(first.is_ok() && second.is_ok() && clients.admit(Some(&prepared)).is_err());
    assert_eq!(clients.open_connections(), 2);
    assert!(clients.admit(Some(&own)).unwrap().is_none());
    drop(first);
    // A certificate that is not listed takes no place.
    clients.replace(&list(&["00"]), now()).unwrap();
    assert!(clients.admit(Some(&prepared)).is_err());
    assert_eq!(clients.open_connections(), 1);
    clients.replace(&list(&["4a0f"]), now()).unwrap();
    assert!(clients.admit(Some(&prepared)).is_ok());
}

/// The sender then issues no certificate.
#[test]
fn a_gate_that_cannot_follow_a_list_refuses_the_list() {
    let none = PreparedLimits {
        connections: 0,
        requests: 1,
    };
    for (sees_certificates, reason) in [
        (false, "backupRestore.gateProtocol"),
        (true, "limit of open files"),
    ] {
        let clients = PreparedClients::new(sees_certificates, none, GateMetrics::default());
        let why = clients.replace(&list(&[]), now()).unwrap_err();
        assert_eq!(why.class, Class::Configuration);
        assert!(why.to_string().contains(reason), "{why}");
    }
    let clients = clients();
    let why = clients.replace(&list(&["00"; MOST + 1]), now()).unwrap_err();
    assert_eq!(why.class, Class::Configuration);
    let [longest, too_long] = [21, 22].map(|bytes| "4a".repeat(bytes));
    for serial in ["", "4", "4A0F", "0x4a", "4a 0", "4a0", "4g", too_long.as_str()] {
        let why = clients.replace(&list(&["00", serial]), now()).unwrap_err();
        assert_eq!(why.class, Class::Configuration, "{serial}");
        assert!(why.to_string().contains("no certificate has"), "{why}");
    }
    assert!(clients.admitted().is_empty());
    assert_eq!(clients.replace(&list(&[longest.as_str()]), now()).unwrap(), 1);
}
