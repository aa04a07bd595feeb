//! A source with a learner, backups and a follower, for the actions of a history.

use super::actions::{Action, LEASES, WriteRequest};
use super::messages as m;
use crate::lab::{EtcdServer, Follower, Lab, Learner, Server};
use futures::StreamExt;
use std::pin::pin;

/// Requests of clients at the same time.
const CLIENTS: usize = 16;

pub(super) struct FollowedSource<'a> {
    lab: &'a Lab,
    source: EtcdServer,
    learner: Learner,
    /// Stores deltas: a compaction may overtake a follower.
    backups: Option<Server>,
    local: EtcdServer,
    follower: Option<Follower>,
    /// The number of requests.
    requested: usize,
    /// The revision at which the source was compacted, or 0.
    compacted: i64,
}

impl<'a> FollowedSource<'a> {
    pub(super) async fn start(lab: &'a Lab) -> Self {
        let (source, learner) = Learner::start(lab).await;
        for lease in LEASES {
            source.client.grant(lease, 3600).await.unwrap();
        }
        let local = EtcdServer::start(&lab.path("local")).await;
        // The deltas begin with the first revision.
        let backups = Server::start(lab, "p", &source.endpoint, &[]).await;
        let follower = Follower::start(lab, "p", &source.endpoint, &local, &[]);
        Self {
            lab,
            source,
            learner,
            backups: Some(backups),
            local,
            follower: Some(follower),
            requested: 0,
            compacted: 0,
        }
    }

    /// Performs an action. Returns the fault of a follower that has ended.
    pub(super) async fn perform(&mut self, action: &Action) -> Option<String> {
        match action {
            Action::Write(requests) => self.write(requests).await,
            Action::KillSource(requests) => self.kill_source(requests).await,
            Action::Revoke { lease, ttl } => {
                self.source.client.revoke(*lease).await.unwrap();
                self.source.client.grant(*lease, *ttl).await.unwrap();
            }
            Action::KeepAlive => {
                let gone = self.source.client.keep_alive(LEASES.to_vec()).await.unwrap();
                assert!(gone.is_empty(), "{gone:?}");
            }
            Action::Compact { kept } => self.compact(*kept).await,
            Action::ToggleFollower => {
                if self.follower.is_some() {
                    return self.kill_follower();
                }
                let source = &self.source.endpoint;
                self.follower = Some(Follower::start(self.lab, "p", source, &self.local, &[]));
            }
        }
        None
    }

    fn build_txns(&mut self, requests: &[WriteRequest]) -> Vec<m::TxnRequest> {
        let first = self.requested;
        self.requested += requests.len();
        (first..)
            .zip(requests)
            .map(|(number, request)| request.txn(number))
            .collect()
    }

    async fn write(&mut self, requests: &[WriteRequest]) {
        let txns = self.build_txns(requests);
        let etcd = &self.source.client;
        let sent = futures::stream::iter(txns).map(async |txn| etcd.txn_request(txn).await.unwrap());
        sent.buffer_unordered(CLIENTS).collect::<Vec<_>>().await;
    }

    /// Kills the source, with the process beside it, after half of the answers. A request without an answer
    /// may have been applied.
    async fn kill_source(&mut self, requests: &[WriteRequest]) {
        let txns = self.build_txns(requests);
        let answered = txns.len() / 2;
        let etcd = self.source.client.clone();
        let sent = futures::stream::iter(txns).map(async |txn| etcd.txn_request(txn).await);
        let mut sent = pin!(sent.buffer_unordered(CLIENTS));
        for _ in 0..answered {
            sent.next().await.unwrap().unwrap();
        }
        self.source.kill();
        drop(self.backups.take());
        while sent.next().await.is_some() {}
        self.source.start_again().await;
        self.backups = Some(Server::start(self.lab, "p", &self.source.endpoint, &[]).await);
    }

    async fn compact(&mut self, kept: i64) {
        let revision = self.source.client.revision().await.unwrap();
        if let Some(backups) = &self.backups {
            let (status, answer) = backups.get("/snapshot/delta").await;
            assert_eq!(status, 200, "{answer}");
        }
        let compacted = (revision - kept).max(1);
        self.source.client.compact(compacted).await.unwrap();
        self.compacted = self.compacted.max(compacted);
    }

    /// Kills the follower amid its transactions. Returns the fault of a follower that has ended by itself.
    fn kill_follower(&mut self) -> Option<String> {
        let has_ended = self
            .follower
            .take()
            .is_some_and(|mut follower| follower.has_ended());
        has_ended.then(|| "the follower has ended by itself".to_owned())
    }

    /// Lets a follower reach the end of the history, and compares the local etcd with the learner and the
    /// source. Returns the difference.
    pub(super) async fn difference(mut self) -> Option<String> {
        if let Some(fault) = self.kill_follower() {
            return Some(fault);
        }
        // A learner with this revision has the compaction before, too.
        let revision = self.source.put_key("/end", "x").await;
        let until = format!("--until-revision={revision}");
        let ran = Follower::run(self.lab, "p", &self.source, &self.local, &[&until]).await;
        if !ran.success || ran.json["revision"] != revision || !ran.json["digest"].is_string() {
            return Some(format!("{}\n{}", ran.json, ran.errors));
        }
        if self.compacted > 0 {
            // The follower may have ended before it compacted.
            self.local.client.compact(self.compacted).await.unwrap();
        }
        let here = self.local.client.history_hash(revision).await.unwrap();
        let there = Some(self.learner.history_hash(revision).await);
        if here != there {
            return Some(format!(
                "the follower has {here:?}, and the learner has {there:?}"
            ));
        }
        if self.local.dump().await != self.source.dump().await {
            return Some("the keys differ".to_owned());
        }
        let here = self.local.client.leases().await.unwrap();
        let is_missing = |lease: &i64| !here.contains(lease);
        LEASES
            .iter()
            .any(is_missing)
            .then(|| format!("the follower has leases {here:?}"))
    }
}
