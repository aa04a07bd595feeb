//! Certificates of preparations, with TLS.

use super::fixture::{Client, PlayedEtcd, RANGE, TXN, World, in_time, read};
use super::pausing::{PausingStream, ReadSwitch};
use super::tls::{
    client_config, connect, gate_paths, is_refused, tls_before, write_certificates, write_leaf,
};
use crate::clock;
use crate::owner::PreparedLimits;
use jiff::SignedDuration;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, SerialNumber};
use sidecar_protocol::{PREPARED_CLIENT_UNIT, PreparedClient, PreparedClientList};
use std::path::PathBuf;
use tokio::task::JoinSet;

const SERIAL: [u8; 2] = [0x4a, 0x0f];

/// A gate with TLS, the folder of a client of the shoot, and the folder of a client of a preparation.
pub(super) struct Gated {
    pub(super) world: World,
    own: PathBuf,
    prepared: PathBuf,
    _folder: tempfile::TempDir,
    _tls: JoinSet<()>,
}

impl Gated {
    async fn start() -> Self {
        Self::with_limits(64, PreparedLimits::default()).await
    }

    pub(super) async fn with_limits(most: usize, limits: PreparedLimits) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let [own, prepared] = ["own", "prepared"].map(|name| folder.path().join(name));
        let issuer = write_certificates(&own);
        let mut leaf = CertificateParams::new(Vec::<String>::new()).unwrap();
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        leaf.serial_number = Some(SerialNumber::from_slice(&SERIAL));
        leaf.distinguished_name
            .push(DnType::OrganizationalUnitName, PREPARED_CLIENT_UNIT);
        write_leaf(&prepared, &leaf, &issuer);
        let etcd = PlayedEtcd::start().await;
        let (target, tls) = tls_before(etcd.address, &own).await;
        let world = World::with_limits(etcd, target, Some(gate_paths(&own)), most, limits).await;
        Self {
            world,
            own,
            prepared,
            _folder: folder,
            _tls: tls,
        }
    }

    pub(super) fn list(&self, serials: &[&str]) {
        let clients = serials.iter().map(|serial| PreparedClient {
            serial: (*serial).to_owned(),
            expiry: clock::now() + SignedDuration::from_hours(1),
        });
        let list = PreparedClientList {
            epoch: 3,
            valid_for_milliseconds: 60_000,
            clients: clients.collect(),
        };
        let admitted = self.world.prepared.replace(&list, clock::now()).unwrap();
        assert_eq!(admitted, serials.len());
    }

    pub(super) async fn own_client(&self) -> Client {
        let config = client_config(&self.own, Some(&self.own));
        Client::over(connect(self.world.address, config).await.unwrap()).await
    }

    pub(super) async fn prepared_client(&self) -> Client {
        let config = client_config(&self.own, Some(&self.prepared));
        Client::over(connect(self.world.address, config).await.unwrap()).await
    }

    /// A client of the preparation whose reads stop and resume by the switch. No window stops the gate.
    pub(super) async fn pausing_client(&self) -> (Client, ReadSwitch) {
        let config = client_config(&self.own, Some(&self.prepared));
        let stream = connect(self.world.address, config).await.unwrap();
        let switch = ReadSwitch::default();
        let mut builder = h2::client::Builder::new();
        builder
            .initial_window_size(1 << 30)
            .initial_connection_window_size(1 << 30);
        let client = Client::with_builder(&builder, PausingStream::new(stream, &switch)).await;
        (client, switch)
    }

    /// The client of the preparation gets no byte of HTTP/2.
    pub(super) async fn assert_refused(&mut self) {
        let config = client_config(&self.own, Some(&self.prepared));
        if let Ok(stream) = connect(self.world.address, config).await {
            assert!(is_refused(stream).await);
        }
        assert!(!self.world.etcd.has_arrived());
    }

    pub(super) async fn assert_served(&mut self, client: &Client) {
        let asked = client.call(RANGE).await;
        self.world.etcd.next().await.answer(b"answer");
        let response = in_time(asked.response).await.unwrap();
        assert_eq!(read(response).await.0, b"answer");
    }
}

#[tokio::test]
async fn a_client_of_a_preparation_reaches_etcd_while_it_is_listed() {
    let mut gated = Gated::start().await;
    let own = gated.own_client().await;
    gated.assert_served(&own).await;
    // After a start there is no list.
    gated.assert_refused().await;
    gated.list(&["00"]);
    gated.assert_refused().await;
    gated
        .world
        .shows("etcdbr_gate_prepared_connections_refused_total 2")
        .await;

    gated.list(&["4a0f"]);
    let mut prepared = gated.prepared_client().await;
    gated.assert_served(&prepared).await;
    gated.world.shows("etcdbr_gate_prepared_connections 1").await;
    gated.list(&["4a0f", "00"]);
    gated.assert_served(&prepared).await;

    // A request under way is cut, too.
    let under_way = prepared.call(TXN).await;
    let _arrived = gated.world.etcd.next().await;
    gated.list(&["00"]);
    in_time(under_way.response).await.unwrap_err();
    prepared.end().await.unwrap_err();
    gated.world.shows("etcdbr_gate_prepared_connections 0").await;
    gated.assert_refused().await;
    gated.assert_served(&own).await;
}

#[tokio::test]
async fn a_client_of_a_preparation_is_cut_with_the_permit_of_the_gate() {
    let mut gated = Gated::start().await;
    gated.list(&["4a0f"]);
    let mut prepared = gated.prepared_client().await;
    gated.assert_served(&prepared).await;
    gated.world.issuer.end("epoch 2 has begun");
    prepared.end().await.unwrap_err();
    gated.world.shows("etcdbr_gate_prepared_connections 0").await;
}

/// Timers do not run during a suspension; the clock is read before each step of the connection.
#[tokio::test]
async fn after_a_suspension_the_list_admits_no_request_of_a_preparation_and_no_answer() {
    let mut gated = Gated::start().await;
    gated.list(&["4a0f"]);
    let (own, mut prepared) = (gated.own_client().await, gated.prepared_client().await);
    let asked = prepared.call(TXN).await;
    let arrived = gated.world.etcd.next().await;
    gated.world.suspend_list();
    let late = prepared.call(TXN).await;
    arrived.answer(b"late");
    in_time(asked.response).await.unwrap_err();
    in_time(late.response).await.unwrap_err();
    prepared.end().await.unwrap_err();
    gated.world.shows("etcdbr_gate_prepared_connections 0").await;
    gated.assert_refused().await;
    gated.assert_served(&own).await;
}
