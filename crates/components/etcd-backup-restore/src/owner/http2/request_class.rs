//! The class of a request, by the path of its gRPC method.

use http::{Method, Request};

/// What a request may do to etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestClass {
    /// Reads, with a single response.
    Read,
    /// May change etcd. Unknown methods count as writes: a cut then waits for them.
    Write,
    /// Responses come until one side ends the stream, and may be ended at any time: clients resume.
    Stream,
}

impl RequestClass {
    /// The value of label `class` in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Stream => "stream",
        }
    }

    pub(super) fn of_request<B>(request: &Request<B>) -> Self {
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            // `/health` and `/version`.
            return Self::Read;
        }
        Self::of_path(request.uri().path())
    }

    fn of_path(path: &str) -> Self {
        match path {
            "/etcdserverpb.Watch/Watch"
            | "/etcdserverpb.Lease/LeaseKeepAlive"
            | "/etcdserverpb.Maintenance/Snapshot"
            | "/grpc.health.v1.Health/Watch"
            | "/v3electionpb.Election/Observe" => Self::Stream,
            "/etcdserverpb.KV/Range"
            | "/etcdserverpb.Lease/LeaseTimeToLive"
            | "/etcdserverpb.Lease/LeaseLeases"
            | "/etcdserverpb.Cluster/MemberList"
            | "/etcdserverpb.Maintenance/Status"
            | "/etcdserverpb.Maintenance/Hash"
            | "/etcdserverpb.Maintenance/HashKV"
            | "/etcdserverpb.Auth/AuthStatus"
            | "/etcdserverpb.Auth/UserGet"
            | "/etcdserverpb.Auth/UserList"
            | "/etcdserverpb.Auth/RoleGet"
            | "/etcdserverpb.Auth/RoleList"
            | "/grpc.health.v1.Health/Check"
            | "/v3electionpb.Election/Leader" => Self::Read,
            _ => Self::Write,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_that_is_not_known_to_read_counts_as_a_write() {
        for (path, class) in [
            ("/etcdserverpb.KV/Range", RequestClass::Read),
            ("/etcdserverpb.KV/Put", RequestClass::Write),
            ("/etcdserverpb.KV/Txn", RequestClass::Write),
            ("/etcdserverpb.KV/DeleteRange", RequestClass::Write),
            ("/etcdserverpb.KV/Compact", RequestClass::Write),
            ("/etcdserverpb.Lease/LeaseGrant", RequestClass::Write),
            ("/etcdserverpb.Lease/LeaseRevoke", RequestClass::Write),
            ("/etcdserverpb.Lease/LeaseKeepAlive", RequestClass::Stream),
            ("/etcdserverpb.Watch/Watch", RequestClass::Stream),
            ("/etcdserverpb.Maintenance/Snapshot", RequestClass::Stream),
            ("/etcdserverpb.Maintenance/Alarm", RequestClass::Write),
            ("/v3lockpb.Lock/Lock", RequestClass::Write),
            ("/etcdserverpb.KV/range", RequestClass::Write),
            ("/etcdserverpb.KV/Range/", RequestClass::Write),
            ("", RequestClass::Write),
        ] {
            assert_eq!(RequestClass::of_path(path), class, "{path}");
        }
    }
}
