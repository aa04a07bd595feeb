#![allow(clippy::unwrap_used)]

use super::*;
use tokio::time::advance;

const RANGE: &str = "/etcdserverpb.KV/Range";
const TXN: &str = "/etcdserverpb.KV/Txn";

fn share(requests: usize) -> PreparedShare {
    PreparedShare::new(PreparedLimits {
        connections: 2,
        requests,
    })
}

fn post(path: &str) -> Request<()> {
    Request::post(format!("http://etcd{path}")).body(()).unwrap()
}

/// A method that a later version of etcd adds is refused, too, with the answer of an etcd without the method.
#[test]
fn a_preparation_uses_the_methods_of_an_api_server_and_of_a_follower_alone() {
    let share = share(1);
    for path in [
        RANGE,
        TXN,
        "/etcdserverpb.KV/Compact",
        "/etcdserverpb.Watch/Watch",
        "/etcdserverpb.Lease/LeaseGrant",
        "/etcdserverpb.Lease/LeaseLeases",
        "/etcdserverpb.Lease/LeaseTimeToLive",
        "/etcdserverpb.Maintenance/Status",
        "/etcdserverpb.Maintenance/HashKV",
    ] {
        let admitted = share.admit_request(&post(path));
        assert!(admitted.is_ok(), "{path}");
    }
    for path in [
        "/etcdserverpb.KV/Put",
        "/etcdserverpb.KV/DeleteRange",
        "/etcdserverpb.Lease/LeaseRevoke",
        "/etcdserverpb.Lease/LeaseKeepAlive",
        "/etcdserverpb.Cluster/MemberAdd",
        "/etcdserverpb.Cluster/MemberRemove",
        "/etcdserverpb.Cluster/MemberUpdate",
        "/etcdserverpb.Cluster/MemberPromote",
        "/etcdserverpb.Cluster/MemberList",
        "/etcdserverpb.Maintenance/Alarm",
        "/etcdserverpb.Maintenance/Defragment",
        "/etcdserverpb.Maintenance/Downgrade",
        "/etcdserverpb.Maintenance/Hash",
        "/etcdserverpb.Maintenance/MoveLeader",
        "/etcdserverpb.Maintenance/Snapshot",
        "/etcdserverpb.Auth/AuthEnable",
        "/etcdserverpb.Auth/Authenticate",
        "/etcdserverpb.Auth/UserAdd",
        "/v3lockpb.Lock/Lock",
        "/v3electionpb.Election/Campaign",
    ] {
        let refused = share.admit_request(&post(path)).err();
        assert_eq!(refused, Some(PreparedRefusal::Method), "{path}");
    }
    for path in [
        "/etcdserverpb.KV/RangeStream",
        "/etcdserverpb.Novelty/Novelty",
        "/grpc.health.v1.Health/Check",
        "/grpc.health.v1.Health/Watch",
        "/v3/kv/put",
        "/etcdserverpb.KV/range",
        "/etcdserverpb.KV/Range/",
        "//etcdserverpb.KV/Range",
        "/etcdserverpb.KV%2FRange",
        "/",
    ] {
        let refused = share.admit_request(&post(path)).err();
        assert_eq!(refused, Some(PreparedRefusal::UnknownMethod), "{path}");
    }
    for path in ["/health", "/version", "/metrics", RANGE] {
        let get = Request::get(format!("http://etcd{path}")).body(()).unwrap();
        let refused = share.admit_request(&get).err();
        assert_eq!(refused, Some(PreparedRefusal::Method), "{path}");
    }
}

#[test]
fn a_place_is_free_when_the_last_holder_ends() {
    let share = share(1);
    let place = share.admit_request(&post(TXN)).unwrap();
    let second_holder = place.clone();
    drop(place);
    let refused = share.admit_request(&post(RANGE)).err();
    assert_eq!(refused, Some(PreparedRefusal::Share));
    // A refused method needs no place.
    let refused = share.admit_request(&post("/etcdserverpb.KV/Put")).err();
    assert_eq!(refused, Some(PreparedRefusal::Method));
    drop(second_holder);
    assert!(share.admit_request(&post(RANGE)).is_ok());
}

#[test]
fn connections_are_counted_while_open() {
    let share = share(1);
    assert!(share.has_connections());
    let [first, second] = [share.admit_connection(), share.admit_connection()];
    assert!(first.is_some() && second.is_some() && share.admit_connection().is_none());
    assert_eq!(share.open_connections(), 2);
    drop(first);
    assert_eq!(share.open_connections(), 1);
    let none = PreparedShare::new(PreparedLimits {
        connections: 0,
        requests: 1,
    });
    assert!(!none.has_connections() && none.admit_connection().is_none());
}

/// A client that gives up does not end the hash in etcd.
#[tokio::test(start_paused = true)]
async fn a_hash_begins_once_a_minute() {
    let share = share(1);
    let hash_by = |path: &str| {
        let place = share.admit_request(&post(path))?;
        let admitted = share.admit_hash(&post(path));
        drop(place);
        admitted
    };
    let hash = || hash_by(HISTORY_HASH).err();
    assert_eq!(hash(), None);
    assert_eq!(hash_by(RANGE), Ok(()));
    advance(PreparedRefusal::HASH_INTERVAL.saturating_sub(Duration::from_millis(1))).await;
    assert_eq!(hash(), Some(PreparedRefusal::Hash));
    let with_query = format!("{HISTORY_HASH}?a");
    assert_eq!(hash_by(&with_query), Err(PreparedRefusal::Hash));
    assert!(share.admit_request(&post(RANGE)).is_ok());
    advance(Duration::from_millis(1)).await;
    // A hash without a place does not begin, and counts not as the last hash.
    let place = share.admit_request(&post(RANGE)).unwrap();
    assert_eq!(hash(), Some(PreparedRefusal::Share));
    drop(place);
    assert_eq!(hash(), None);
}
