//! A client for the few calls to etcd that backups need, over TLS with the mounted certificates.
//!
//! Message sizes are not bounded here: etcd bounds the values that etcd stores, and an accepted value must be
//! readable.

mod following;
#[allow(missing_docs)] // names and numbers are etcd's, and documented there
pub mod messages;
mod watch;

pub use following::HistoryHash;
pub use watch::Watch;

use crate::error::{Class, Error, Result, not_permitted};
use futures::{StreamExt, channel::oneshot};
use http::uri::PathAndQuery;
use messages as m;
use permit::{Fenced, Permit};
use std::path::PathBuf;
use std::time::Duration;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::Layer;

/// First and last of all keys, as etcd wants a range over everything written.
const ALL: &[u8] = b"\0";

/// Address, credentials and permit of an etcd client.
#[derive(Clone, Debug)]
pub struct EtcdConfig {
    /// Client URLs; the first that answers is used.
    pub endpoints: Vec<String>,
    /// CA of etcd's server certificate.
    pub cacert: Option<PathBuf>,
    /// Client certificate.
    pub cert: Option<PathBuf>,
    /// Key of the client certificate.
    pub key: Option<PathBuf>,
    /// Name to expect in the server certificate, if the name differs from the URL's host.
    pub server_name: Option<String>,
    /// Timeout of a short call.
    pub timeout: Duration,
    /// Each request needs this permit at the moment in which the request leaves.
    pub permit: Permit,
}

/// How much an etcd stores and may store, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Size of the database file, free pages included. etcd compares this size with the quota.
    pub used: u64,
    /// Bytes of the file without free pages: what a defragmentation leaves. Former values count until they
    /// are compacted.
    pub in_use: u64,
    /// Quota; 0 where an etcd before 3.6 does not report the quota.
    pub quota: u64,
    /// Whether etcd refuses writes, because alarm NOSPACE is raised.
    pub alarm: bool,
}

impl Space {
    /// More than the largest request that etcd accepts by default, 1.5 MiB: with less room the next request
    /// would raise the disarmed alarm again.
    const ROOM: u64 = 2 << 20;

    /// Whether a defragmentation leaves a tenth of the quota free. With less room the alarm would be raised
    /// again soon.
    #[must_use]
    pub fn can_be_freed(self) -> bool {
        let bound = self.quota / 10 * 9;
        self.in_use <= bound && self.in_use.saturating_add(Self::ROOM) <= self.quota
    }

    /// Whether the next request fits below the quota.
    #[must_use]
    pub fn has_room(self) -> bool {
        self.used.saturating_add(Self::ROOM) <= self.quota
    }
}

/// A connection.
#[derive(Clone)]
pub struct Etcd {
    channel: Fenced<Channel>,
    timeout: Duration,
}

fn unavailable(doing: &str, status: &Status) -> Error {
    if let Some(refused) = not_permitted(status) {
        return refused.into();
    }
    Error::new(
        Class::Etcd,
        format!("etcd failed while {doing}: {}", status.message()),
    )
}

impl EtcdConfig {
    /// A plain-text connection to a single address, for the etcd that a restore runs on the loopback
    /// interface.
    #[must_use]
    pub fn plain(endpoint: String, timeout: Duration, permit: Permit) -> Self {
        Self {
            endpoints: vec![endpoint],
            cacert: None,
            cert: None,
            key: None,
            server_name: None,
            timeout,
            permit,
        }
    }

    fn tls(&self) -> Result<ClientTlsConfig> {
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|e| {
                Error::new(
                    Class::Configuration,
                    format!("cannot read {}: {e}", path.display()),
                )
            })
        };
        let mut tls = ClientTlsConfig::new();
        if let Some(path) = &self.cacert {
            tls = tls.ca_certificate(Certificate::from_pem(read(path)?));
        }
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            tls = tls.identity(Identity::from_pem(read(cert)?, read(key)?));
        }
        if let Some(name) = &self.server_name {
            tls = tls.domain_name(name);
        }
        Ok(tls)
    }

    /// Connects to the first endpoint that answers.
    pub async fn connect(&self) -> Result<Etcd> {
        let mut last = Error::new(Class::Configuration, "no etcd endpoint is named; set --endpoints");
        for url in &self.endpoints {
            let wrong = |e: tonic::transport::Error| {
                Error::new(
                    Class::Configuration,
                    format!("the etcd endpoint {url} cannot be used: {e}"),
                )
            };
            let mut endpoint = Endpoint::from_shared(url.clone())
                .map_err(wrong)?
                .connect_timeout(self.timeout)
                .http2_keep_alive_interval(Duration::from_secs(30)) // not below etcd's --grpc-keepalive-min-time, 5 s
                .keep_alive_timeout(Duration::from_secs(10))
                .keep_alive_while_idle(true);
            if url.starts_with("https://") {
                endpoint = endpoint.tls_config(self.tls()?).map_err(wrong)?;
            }
            match self.permit.guard(endpoint.connect()).await? {
                Ok(channel) => {
                    return Ok(Etcd {
                        channel: self.permit.layer().layer(channel),
                        timeout: self.timeout,
                    });
                }
                Err(e) => {
                    let cause =
                        std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string);
                    last = Error::new(Class::Etcd, format!("etcd at {url} does not answer: {cause}"));
                }
            }
        }
        Err(last)
    }
}

impl Etcd {
    async fn call<Q, A>(&self, path: &'static str, doing: &str, request: Q) -> Result<A>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let mut grpc = self.grpc();
        let answer = async {
            grpc.ready().await.map_err(Status::from_error)?;
            grpc.unary(
                Request::new(request),
                PathAndQuery::from_static(path),
                ProstCodec::<Q, A>::default(),
            )
            .await
        };
        match tokio::time::timeout(self.timeout, answer).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(unavailable(doing, &status)),
            Err(_) => Err(unavailable(
                doing,
                &Status::deadline_exceeded("it did not answer in time"),
            )),
        }
    }

    fn grpc(&self) -> tonic::client::Grpc<Fenced<Channel>> {
        tonic::client::Grpc::new(self.channel.clone())
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX)
    }

    async fn stream<Q, A>(
        &self,
        path: &'static str,
        doing: &str,
        requests: impl futures::Stream<Item = Q> + Send + 'static,
    ) -> Result<Streaming<A>>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let mut grpc = self.grpc();
        grpc.ready()
            .await
            .map_err(|e| unavailable(doing, &Status::from_error(e)))?;
        grpc.streaming(
            Request::new(requests),
            PathAndQuery::from_static(path),
            ProstCodec::<Q, A>::default(),
        )
        .await
        .map(tonic::Response::into_inner)
        .map_err(|status| unavailable(doing, &status))
    }

    /// The newest revision, agreed on by the cluster.
    pub async fn revision(&self) -> Result<i64> {
        Ok(self.header().await?.revision)
    }

    async fn header(&self) -> Result<m::ResponseHeader> {
        let request = m::RangeRequest {
            key: ALL.into(),
            limit: 1,
            ..m::RangeRequest::default()
        };
        let answer: m::RangeResponse = self
            .call("/etcdserverpb.KV/Range", "asking for its revision", request)
            .await?;
        Ok(answer.header.unwrap_or_default())
    }

    /// A page of all keys from `key` on.
    pub async fn page(&self, key: &[u8], limit: i64) -> Result<(Vec<m::KeyValue>, bool)> {
        let key = if key.is_empty() { ALL } else { key };
        let key = bytes::Bytes::copy_from_slice(key);
        let request = m::RangeRequest {
            key,
            range_end: ALL.into(),
            limit,
            revision: 0,
        };
        let answer: m::RangeResponse = self
            .call("/etcdserverpb.KV/Range", "reading keys", request)
            .await?;
        Ok((answer.kvs, answer.more))
    }

    /// Applies several changes in a single revision; returns that revision.
    pub async fn txn(&self, success: Vec<m::RequestOp>) -> Result<i64> {
        let request = m::TxnRequest {
            success,
            ..m::TxnRequest::default()
        };
        self.txn_request(request).await
    }

    /// Sends a transaction; returns etcd's revision after the transaction. A transaction that changes nothing
    /// does not increase the revision.
    pub async fn txn_request(&self, request: m::TxnRequest) -> Result<i64> {
        let answer: m::TxnResponse = self
            .call("/etcdserverpb.KV/Txn", "applying changes", request)
            .await?;
        Ok(answer.header.unwrap_or_default().revision)
    }

    /// Compacts the history up to a revision; returns after the compaction is done on the disk. Returns
    /// whether there was history left to compact.
    pub async fn compact(&self, revision: i64) -> Result<bool> {
        let request = m::CompactionRequest {
            revision,
            physical: true,
        };
        let doing = "compacting";
        let compacted = self
            .call::<_, m::Done>("/etcdserverpb.KV/Compact", doing, request)
            .await;
        match compacted {
            // Without writes the periodic compaction of etcd reaches the newest revision.
            Err(e) if e.message.contains("required revision has been compacted") => Ok(false),
            compacted => compacted.map(|_| true),
        }
    }

    /// Size of the database, quota and alarm of this etcd.
    pub async fn space(&self) -> Result<Space> {
        let answer: m::StatusResponse = self
            .call(
                "/etcdserverpb.Maintenance/Status",
                "asking for its size",
                m::StatusRequest {},
            )
            .await?;
        let bytes = |number: i64| u64::try_from(number).unwrap_or_default();
        Ok(Space {
            used: bytes(answer.db_size),
            in_use: bytes(answer.db_size_in_use),
            quota: bytes(answer.db_size_quota),
            // The list of alarms would be a proposal to the cluster, and so a write to the disk.
            alarm: answer.errors.iter().any(|error| error.contains("alarm:NOSPACE")),
        })
    }

    /// Disarms every alarm NOSPACE, including the alarms of former members, for which etcd refuses writes
    /// too.
    pub async fn disarm_no_space(&self) -> Result<()> {
        let no_space = m::AlarmType::NoSpace.into();
        let request = m::AlarmRequest {
            action: m::AlarmAction::Get.into(),
            member_id: 0,
            alarm: no_space,
        };
        let answer: m::AlarmResponse = self
            .call("/etcdserverpb.Maintenance/Alarm", "listing alarms", request)
            .await?;
        for raised in answer.alarms {
            let request = m::AlarmRequest {
                action: m::AlarmAction::Deactivate.into(),
                member_id: raised.member_id,
                alarm: no_space,
            };
            self.call::<_, m::Done>("/etcdserverpb.Maintenance/Alarm", "disarming an alarm", request)
                .await?;
        }
        Ok(())
    }

    /// Gives the free pages of the database file back.
    pub async fn defragment(&self) -> Result<()> {
        let doing = "defragmenting";
        self.call::<_, m::Done>(
            "/etcdserverpb.Maintenance/Defragment",
            doing,
            m::DefragmentRequest {},
        )
        .await
        .map(drop)
    }

    /// The database as etcd streams it, with its sha256 at the end.
    pub async fn snapshot(&self) -> Result<Streaming<m::SnapshotResponse>> {
        let request = futures::stream::iter([m::SnapshotRequest {}]);
        self.stream(
            "/etcdserverpb.Maintenance/Snapshot",
            "starting a snapshot",
            request,
        )
        .await
    }

    /// Ids of all leases.
    pub async fn leases(&self) -> Result<Vec<i64>> {
        let answer: m::LeaseLeasesResponse = self
            .call(
                "/etcdserverpb.Lease/LeaseLeases",
                "listing leases",
                m::LeaseLeasesRequest {},
            )
            .await?;
        Ok(answer.leases.into_iter().map(|lease| lease.id).collect())
    }

    /// Renews leases once. Returns the leases that are gone.
    pub async fn keep_alive(&self, ids: Vec<i64>) -> Result<Vec<i64>> {
        let (count, doing) = (ids.len(), "renewing leases");
        // The end of the stream of requests ends the renewal. Dropped answers alone leave the stream open.
        let (_requests_open, end_of_requests) = oneshot::channel::<()>();
        let requests = futures::stream::iter(ids.into_iter().map(|id| m::LeaseId { id }))
            .chain(futures::stream::pending().take_until(end_of_requests));
        let mut answers: Streaming<m::LeaseKeepAliveResponse> = self
            .stream("/etcdserverpb.Lease/LeaseKeepAlive", doing, requests)
            .await?;
        let mut gone = Vec::new();
        for _ in 0..count {
            let answer = answers.message().await;
            let answer = answer.map_err(|status| unavailable(doing, &status))?;
            let ended = || unavailable(doing, &Status::unavailable("etcd ended the stream of renewals"));
            let renewed = answer.ok_or_else(ended)?;
            if renewed.ttl <= 0 {
                gone.push(renewed.id);
            }
        }
        Ok(gone)
    }

    /// The TTL in seconds with which a lease was granted; `None` when the lease is gone.
    pub async fn granted_ttl(&self, id: i64) -> Result<Option<i64>> {
        let answer: m::LeaseTimeToLiveResponse = self
            .call(
                "/etcdserverpb.Lease/LeaseTimeToLive",
                "asking for a lease",
                m::LeaseId { id },
            )
            .await?;
        Ok(Some(answer.granted_ttl).filter(|granted| *granted > 0 && answer.ttl >= 0))
    }

    /// Creates a lease with a given id.
    pub async fn grant(&self, id: i64, ttl: i64) -> Result<()> {
        let answer: m::LeaseGrantResponse = self
            .call(
                "/etcdserverpb.Lease/LeaseGrant",
                "granting a lease",
                m::LeaseGrantRequest { ttl, id },
            )
            .await?;
        if answer.error.is_empty() {
            return Ok(());
        }
        Err(Error::new(
            Class::Etcd,
            format!("etcd refuses the lease {id:x}: {}", answer.error),
        ))
    }
}
