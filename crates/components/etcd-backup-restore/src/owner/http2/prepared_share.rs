//! The share of a gate for certificates of preparations: methods, connections and requests.
//!
//! The destination of a preparation is a different seed. The allowed methods are those of a kube-apiserver
//! and of a follower. No allowed method changes members, users or alarms of etcd, or copies the database.
//! Such connections have places of their own, so that the clients of the source keep all other places.

use http::{Method, Request, StatusCode};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Methods of kube-apiserver, which writes by transactions alone and neither renews nor revokes leases.
const API_SERVER_METHODS: [&str; 6] = [
    "/etcdserverpb.KV/Range",
    "/etcdserverpb.KV/Txn",
    // API servers of a common etcd compact by turns: a refusal would end the compaction of the source.
    "/etcdserverpb.KV/Compact",
    "/etcdserverpb.Watch/Watch",
    "/etcdserverpb.Lease/LeaseGrant",
    "/etcdserverpb.Maintenance/Status",
];

/// Methods of a follower at the source, besides those of kube-apiserver.
const FOLLOWER_METHODS: [&str; 3] = [
    "/etcdserverpb.Lease/LeaseLeases",
    "/etcdserverpb.Lease/LeaseTimeToLive",
    HISTORY_HASH,
];

/// etcd answers no write during a hash.
const HISTORY_HASH: &str = "/etcdserverpb.Maintenance/HashKV";

/// Further methods of etcd 3.5 and 3.6, by service. A method that is in no list has the answer of an etcd
/// without the method: clients then fall back to a former method.
const FORBIDDEN_METHODS: [(&str, &[&str]); 7] = [
    ("etcdserverpb.KV", &["Put", "DeleteRange"]),
    ("etcdserverpb.Lease", &["LeaseRevoke", "LeaseKeepAlive"]),
    (
        "etcdserverpb.Cluster",
        &[
            "MemberAdd",
            "MemberRemove",
            "MemberUpdate",
            "MemberList",
            "MemberPromote",
        ],
    ),
    (
        "etcdserverpb.Maintenance",
        &[
            "Alarm",
            "Defragment",
            "Hash",
            "Snapshot",
            "MoveLeader",
            "Downgrade",
        ],
    ),
    (
        "etcdserverpb.Auth",
        &[
            "AuthEnable",
            "AuthDisable",
            "AuthStatus",
            "Authenticate",
            "UserAdd",
            "UserGet",
            "UserList",
            "UserDelete",
            "UserChangePassword",
            "UserGrantRole",
            "UserRevokeRole",
            "RoleAdd",
            "RoleGet",
            "RoleList",
            "RoleDelete",
            "RoleGrantPermission",
            "RoleRevokePermission",
        ],
    ),
    ("v3lockpb.Lock", &["Lock", "Unlock"]),
    (
        "v3electionpb.Election",
        &["Campaign", "Proclaim", "Leader", "Observe", "Resign"],
    ),
];

fn is_forbidden(path: &str) -> bool {
    let path = path.strip_prefix('/').unwrap_or_default();
    let named = path.split_once('/').unwrap_or_default();
    FORBIDDEN_METHODS
        .iter()
        .any(|(service, methods)| *service == named.0 && methods.contains(&named.1))
}

/// The bounds of all connections with certificates of preparations together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreparedLimits {
    /// Connections at a time; more are refused. kube-apiserver has a connection for each kind of objects.
    pub connections: usize,
    /// Requests and streams at a time whose client waits, writes that etcd has not answered, and responses
    /// that no client has read; more are answered with `RESOURCE_EXHAUSTED`. etcd refuses the writes of all
    /// clients while 5,000 entries of the log wait.
    pub requests: usize,
}

impl PreparedLimits {
    /// Default of `--gate-max-prepared-connections`.
    pub const CONNECTIONS: usize = 500;
    /// Default of `--gate-max-prepared-requests`.
    pub const REQUESTS: usize = 2_000;
}

impl Default for PreparedLimits {
    fn default() -> Self {
        Self {
            connections: Self::CONNECTIONS,
            requests: Self::REQUESTS,
        }
    }
}

/// Why the gate refuses a request of a preparation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreparedRefusal {
    /// The method of etcd is not allowed.
    Method,
    /// The gate does not know the method.
    UnknownMethod,
    /// All requests of the share are under way.
    Share,
    /// The last hash of the history began less than a minute ago.
    Hash,
}

impl PreparedRefusal {
    /// Time between two hashes for preparations, from start to start: etcd completes a hash without its
    /// client.
    pub const HASH_INTERVAL: Duration = Duration::from_secs(60);
    /// The message of [`Self::Hash`], by which a follower knows the refusal.
    pub const HASH_MESSAGE: &'static str =
        "the gate in front of etcd passes one hash a minute with the certificate of a preparation";

    /// The value of label `reason` in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Method | Self::UnknownMethod => "method",
            Self::Share => "share",
            Self::Hash => "hash",
        }
    }

    /// Code and message of gRPC. A client repeats neither code by itself.
    pub(super) fn grpc_status(self) -> (&'static str, &'static str) {
        const PERMISSION_DENIED: &str = "7";
        const RESOURCE_EXHAUSTED: &str = "8";
        const UNIMPLEMENTED: &str = "12";
        match self {
            Self::Method => (
                PERMISSION_DENIED,
                "the gate in front of etcd refuses this method for the certificate of a preparation",
            ),
            Self::UnknownMethod => (
                UNIMPLEMENTED,
                "the gate in front of etcd does not know this method, and refuses the method for the certificate of a \
                 preparation",
            ),
            Self::Share => (
                RESOURCE_EXHAUSTED,
                "the gate in front of etcd has no place for a further request with the certificate of a preparation \
                 (--gate-max-prepared-requests)",
            ),
            Self::Hash => (RESOURCE_EXHAUSTED, Self::HASH_MESSAGE),
        }
    }

    /// The answer to a request without gRPC.
    pub(super) fn http_status(self) -> StatusCode {
        match self {
            Self::Method | Self::UnknownMethod => StatusCode::FORBIDDEN,
            Self::Share | Self::Hash => StatusCode::TOO_MANY_REQUESTS,
        }
    }
}

/// The place of a request, free when the last clone is dropped: after etcd's answer, and after the socket of
/// the client has taken the response.
pub(super) type RequestPlace = Arc<OwnedSemaphorePermit>;

/// The share of a gate.
pub(super) struct PreparedShare {
    limits: PreparedLimits,
    connections: Arc<Semaphore>,
    requests: Arc<Semaphore>,
    last_hash: Mutex<Option<Instant>>,
}

impl PreparedShare {
    pub(super) fn new(limits: PreparedLimits) -> Self {
        Self {
            limits,
            connections: Arc::new(Semaphore::new(limits.connections)),
            requests: Arc::new(Semaphore::new(limits.requests)),
            last_hash: Mutex::default(),
        }
    }

    /// Whether the share admits any connection.
    pub(super) fn has_connections(&self) -> bool {
        self.limits.connections > 0
    }

    /// Number of open connections.
    pub(super) fn open_connections(&self) -> usize {
        let free = self.connections.available_permits();
        self.limits.connections.saturating_sub(free)
    }

    /// The place of a connection. `None`: all places are taken.
    pub(super) fn admit_connection(&self) -> Option<OwnedSemaphorePermit> {
        self.connections.clone().try_acquire_owned().ok()
    }

    /// The place of a request, if the method is allowed.
    pub(super) fn admit_request<B>(&self, request: &Request<B>) -> Result<RequestPlace, PreparedRefusal> {
        let path = request.uri().path();
        if request.method() != Method::POST || is_forbidden(path) {
            return Err(PreparedRefusal::Method);
        }
        if !API_SERVER_METHODS.contains(&path) && !FOLLOWER_METHODS.contains(&path) {
            return Err(PreparedRefusal::UnknownMethod);
        }
        let place = self.requests.clone().try_acquire_owned();
        place.map(Arc::new).map_err(|_| PreparedRefusal::Share)
    }

    /// Records the begin of a hash, where the request asks for a hash. The gate sends the request now.
    ///
    /// # Errors
    /// The last hash began less than a minute ago.
    pub(super) fn admit_hash<B>(&self, request: &Request<B>) -> Result<(), PreparedRefusal> {
        if request.uri().path() != HISTORY_HASH {
            return Ok(());
        }
        let mut last = self.last_hash.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|begun| begun.elapsed() < PreparedRefusal::HASH_INTERVAL) {
            return Err(PreparedRefusal::Hash);
        }
        *last = Some(Instant::now());
        Ok(())
    }
}

#[cfg(test)]
#[path = "prepared_share_tests.rs"]
mod tests;
