//! The certificates of a preparation that the gate in front of etcd-main admits. The gardenlet of the source
//! lists the serial number of a valid grant.

use std::time::Duration;

use api::gardencore::shoot::MigrationPreparation;
use http::{Method, StatusCode};
use runtime::{Error, Result};
use sidecar_protocol::{PREPARED_CLIENTS_PATH, PreparedClient, PreparedClientList, PreparedClientsAnswer};

use crate::{
    Residency, configuration_problem,
    etcd::sidecar::{SidecarAnswer, ask_with, client},
    secrets::etcd_serial::EtcdSerial,
};

/// Validity of a list. Longer than a restart of the gardenlet, so that a restart cuts no connection of a
/// destination.
pub(crate) const LISTED_FOR: Duration = Duration::from_secs(60);
/// Longest wait for etcd-backup-restore, which answers from memory.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// Lists the certificate of this grant, and no further certificate. Without a grant the gate refuses all
/// certificates of preparations.
///
/// # Errors
/// The gate has not confirmed the list. A gate that does not know the rule is an error: the caller must not
/// issue a certificate for a preparation.
pub(crate) async fn list(
    residency: &Residency,
    epoch: i64,
    granted: Option<&MigrationPreparation>,
) -> Result<()> {
    let body = serde_json::to_vec(&list_of(epoch, granted)).map_err(|e| Error::bug(e.to_string()))?;
    let answered = async {
        let client = client(residency).await?;
        ask_with(&client, Method::PUT, PREPARED_CLIENTS_PATH, body).await
    };
    let answer = tokio::time::timeout(ANSWERED_WITHIN, answered).await;
    let answer = answer.map_err(|_| {
        Error::transient("etcd-backup-restore does not answer to the list of certificates of a preparation")
    })??;
    judge(&answer, epoch, granted.is_some())
}

fn list_of(epoch: i64, granted: Option<&MigrationPreparation>) -> PreparedClientList {
    let clients = granted.into_iter().map(|granted| PreparedClient {
        serial: EtcdSerial::from_grant(granted).to_hex(),
        expiry: granted.expiry.0,
    });
    PreparedClientList {
        epoch,
        valid_for_milliseconds: u64::try_from(LISTED_FOR.as_millis()).unwrap_or_default(),
        clients: clients.collect(),
    }
}

/// `admits`: a certificate is listed. The gate of an etcd-backup-restore that answers 404 knows no list.
fn judge(answer: &SidecarAnswer, epoch: i64, admits: bool) -> Result<()> {
    if answer.status == StatusCode::NOT_FOUND {
        return Err(configuration_problem(
            "etcd-backup-restore of the shoot cannot refuse the certificate of a preparation (404), so no keys are issued: enable \
             owner checks of the Seed, and update etcd-druid",
        ));
    }
    let confirmed: PreparedClientsAnswer = answer.read("list the certificates of a preparation")?;
    if confirmed.epoch != epoch || (admits && confirmed.admitted == 0) {
        return Err(Error::transient(format!(
            "etcd-backup-restore has not admitted the certificate of a preparation in ownership epoch {epoch} (epoch {}, {} \
             admitted): the grant ends, or the clocks of the seed differ",
            confirmed.epoch, confirmed.admitted
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn answer(status: u16, body: &str) -> SidecarAnswer {
        SidecarAnswer {
            status: StatusCode::from_u16(status).unwrap(),
            body: body.as_bytes().to_vec(),
        }
    }

    /// The keys of a preparation follow this verdict.
    #[test]
    fn a_gate_without_the_rule_gets_no_certificate_of_a_preparation() {
        let why = |status, body| {
            let refused = judge(&answer(status, body), 3, true);
            refused.err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(why(200, r#"{"admitted":1,"epoch":3}"#), "");
        let bytes = r#"{"code":"configuration","error":"Configuration: the gate forwards bytes"}"#;
        for (status, body, reason) in [
            (404, "", "cannot refuse the certificate"),
            (409, bytes, "the gate forwards bytes"),
            (
                409,
                r#"{"code":"other-epoch","error":"OtherEpoch: 4"}"#,
                "OtherEpoch: 4",
            ),
            (200, "", "cannot be read"),
            (200, r#"{"ok":true}"#, "cannot be read"),
            (200, r#"{"admitted":0,"epoch":3}"#, "has not admitted"),
            (200, r#"{"admitted":1,"epoch":4}"#, "has not admitted"),
            (405, "", "(405"),
        ] {
            let why = why(status, body);
            assert!(why.contains(reason), "{status} {body}: {why}");
        }
        assert!(judge(&answer(200, r#"{"admitted":0,"epoch":3}"#), 3, false).is_ok());
    }

    #[test]
    fn a_list_has_the_certificate_of_the_grant_alone() {
        let granted: MigrationPreparation = crate::from_json(json!({
            "uid": "u", "source": "a", "destination": "b", "epoch": 3, "expiry": "2026-01-01T00:00:00Z",
        }))
        .unwrap();
        let list = list_of(3, Some(&granted));
        let serial = EtcdSerial::from_grant(&granted).to_hex();
        assert_eq!((list.epoch, list.valid_for_milliseconds), (3, 60_000));
        assert_eq!(list.clients.len(), 1);
        assert_eq!(list.clients[0].serial, serial);
        assert_eq!(list.clients[0].expiry, granted.expiry.0);
        assert!(list_of(3, None).clients.is_empty());
    }
}
