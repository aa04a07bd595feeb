//! The simulated authorities and second witness of a run, and the network path to both.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use futures::future::BoxFuture;
use hickory_proto::op::{Message, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{SOA, TXT};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::time::{Instant, sleep_until};

use super::history::{History, Rules, SERVERS, Weather, is_in};
use crate::marks::{Mark, OwnershipObject};
use crate::question::{Question, ServerResponse};
use crate::wire::{Flow, Transport, Wire};
use crate::witness::{SecondWitness, Testimony};

pub(super) const ZONE: &str = "internal.example.";

#[derive(Clone)]
pub(super) struct World {
    pub(super) history: Arc<History>,
    pub(super) rules: Rules,
    pub(super) start: Instant,
    /// The first owner's sidecar has written `Sealed` to `ownership.json`.
    pub(super) is_sealed: Arc<AtomicBool>,
    random: Arc<Mutex<Rng>>,
}

pub(super) fn servers() -> impl Iterator<Item = SocketAddr> {
    (0..SERVERS).map(|number| SocketAddr::from(([192, 0, 2, 1], 5300 + u16::try_from(number).unwrap())))
}

/// The fate of a question.
enum Fate {
    Lost,
    Refused,
    Answered {
        there: Duration,
        back: Duration,
        /// A cache answers with the state of this long ago.
        stale: Option<Duration>,
    },
}

impl World {
    pub(super) fn new(history: History, rules: Rules, seed: u64) -> Self {
        Self {
            history: Arc::new(history),
            rules,
            start: Instant::now(),
            is_sealed: Arc::default(),
            random: Arc::new(Mutex::new(Rng::with_seed(seed))),
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn fate(&self, longest: u64) -> Fate {
        let mut random = self.random.lock().unwrap();
        let quick = |random: &mut Rng| Duration::from_millis(random.u64(1..100));
        if self.rules.weather == Weather::OneAtATime {
            let (there, back) = (quick(&mut random), quick(&mut random));
            return Fate::Answered {
                there,
                back,
                stale: None,
            };
        }
        let mut delay = || match random.u8(..10) {
            0..7 => quick(&mut random),
            _ => Duration::from_millis(random.u64(..longest)),
        };
        let (there, back) = (delay(), delay());
        match random.u8(..100) {
            0..5 => Fate::Lost,
            5..10 => Fate::Refused,
            roll => Fate::Answered {
                there,
                back,
                stale: (roll < 25).then(|| Duration::from_millis(random.u64(..120_000))),
            },
        }
    }

    fn answer(&self, server: usize, at: Duration, behind: bool, question: &Question) -> Message {
        let (epoch, identity) = self.history.shown(server, at, behind);
        let name = question.name().clone();
        let text = if name.to_ascii().starts_with("epoch.") {
            Some(epoch.to_string())
        } else {
            identity.map(ToOwned::to_owned)
        };
        let mut message = Message::response(question.id(), OpCode::Query);
        message.add_query(Query::query(name.clone(), RecordType::TXT));
        message.metadata.authoritative = true;
        if let Some(text) = text {
            message.add_answer(Record::from_rdata(name, 10, RData::TXT(TXT::new(vec![text]))));
        } else {
            message.metadata.response_code = ResponseCode::NXDomain;
            let zone = Name::from_ascii(ZONE).unwrap();
            let soa = SOA::new(zone.clone(), zone.clone(), 1, 60, 60, 600, 5);
            message.add_authority(Record::from_rdata(zone, 5, RData::SOA(soa)));
        }
        message
    }
}

impl World {
    /// The content of the bucket.
    pub(super) fn bucket(&self, at: Duration) -> OwnershipObject {
        let latest = self.history.take_overs.iter().rev();
        let mut shown = latest.filter(|take| take.second <= at);
        let (epoch, mark) = match shown.next() {
            None if self.is_sealed.load(Ordering::SeqCst) => (1, Mark::Sealed),
            None => (1, Mark::Owned),
            Some(take) if take.begins <= at => (take.epoch, Mark::Owned),
            Some(take) => (take.epoch, Mark::Claimed),
        };
        OwnershipObject { epoch, mark }
    }
}

impl Wire for World {
    fn connect(&self, server: SocketAddr, _transport: Transport) -> BoxFuture<'_, io::Result<Box<dyn Flow>>> {
        Box::pin(async move {
            let flow: Box<dyn Flow> = Box::new(ToReplica {
                world: self.clone(),
                server: usize::from(server.port() - 5300),
                is_behind: self.random.lock().unwrap().bool(),
            });
            Ok(flow)
        })
    }
}

/// All questions of a flow reach the same replica.
struct ToReplica {
    world: World,
    server: usize,
    is_behind: bool,
}

impl Flow for ToReplica {
    fn ask<'a>(&'a mut self, question: &'a Question) -> BoxFuture<'a, io::Result<ServerResponse>> {
        Box::pin(async move {
            let world = &self.world;
            let Fate::Answered { there, back, stale } = world.fate(1500) else {
                return pending().await;
            };
            let arrives = world.now() + there;
            if is_in(&world.history.authorities_silent, arrives)
                || is_in(&world.history.one_silent[self.server], arrives)
            {
                return pending().await;
            }
            let shown_at = arrives.saturating_sub(stale.unwrap_or_default());
            let mut message = world.answer(self.server, shown_at, self.is_behind, question);
            message.metadata.authoritative = stale.is_none() || world.rules.caches_pose_as_authorities;
            sleep_until(world.start + arrives + back).await;
            Ok(ServerResponse::Answer(Box::new(message)))
        })
    }
}

impl SecondWitness for World {
    fn ask(&self) -> BoxFuture<'_, Testimony> {
        Box::pin(async move {
            let (there, back) = match self.fate(1200) {
                Fate::Lost => return pending().await,
                Fate::Refused => return Testimony::Silent("it refuses".to_owned()),
                Fate::Answered { there, back, .. } => (there, back),
            };
            let arrives = self.now() + there;
            if is_in(&self.history.second_silent, arrives) {
                return pending().await;
            }
            let testimony = OwnershipObject::testimony(Some(&self.bucket(arrives)));
            sleep_until(self.start + arrives + back).await;
            testimony
        })
    }

    /// The gardenlet records phase `Sealing` before deleting the record.
    fn sealing_was_reported(&self, _epoch: i64) -> bool {
        self.history.deleted.is_some_and(|deleted| deleted <= self.now())
    }
}
