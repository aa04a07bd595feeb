//! Questions and answers: the possible answers of both witnesses for a process, judged by the crate's own
//! functions on messages as sent over the network.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use hickory_proto::op::{Message, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{SOA, TXT};
use hickory_proto::rr::{Name, RData, Record as DnsRecord};

use super::scenario::{Off, Scenario, Seed};
use super::state::{AnswerKind, Right, State, Who};
use crate::claim::OwnershipClaim;
use crate::dns_verdict;
use crate::fence_servers::{AskedServers, fence_servers};
use crate::judgement::{self, Answer, OwnEpoch};
use crate::marks::{OwnershipObject, Record};
use crate::phase::Phase;
use crate::record_verdict::{self, RecordVerdict};
use crate::reply::{self, Reply};
use crate::witness::{RelayedAnswer, Testimony};

/// The server or cache that answers for the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Via {
    Nobody,
    AllServers,
    FirstServer,
    SecondServer,
    HiddenReplica,
    Cache,
}

/// The answer of a single server, if any; a cache has no AA bit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Word {
    record: Record<Seed>,
    authoritative: bool,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Question {
    seed: Seed,
    epoch: i64,
    words: Vec<Word>,
    second: Testimony,
    own: OwnEpoch,
    compares_epochs: bool,
}

thread_local! {
    /// Cache of results: the same question has the same answer.
    static KNOWN: RefCell<HashMap<Question, Option<Heard>>> = RefCell::default();
}

/// An answer, and whether the record has shown the process its own epoch in that answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) said: AnswerKind,
    pub(super) shows_own_epoch: bool,
}

/// All possible answers for this process now, without duplicates, each with the path of the answer.
pub(super) fn answers(state: &State, scenario: &Scenario, epoch: i64, who: Who) -> Vec<(Via, Heard)> {
    let mut answers: Vec<(Via, Heard)> = Vec::new();
    for (via, words) in ways(state, scenario, state.site(epoch).seed) {
        for own in own_epochs(state, scenario, epoch, who) {
            let question = Question {
                seed: state.site(epoch).seed,
                epoch,
                words: words.clone(),
                second: second(state, scenario, epoch, who),
                own,
                compares_epochs: scenario.is_on(Off::EpochCompared),
            };
            let heard = KNOWN
                .with_borrow_mut(|known| *known.entry(question.clone()).or_insert_with(|| judged(&question)));
            let heard = heard.map(|heard| Heard {
                // Without names out of step the flag makes no difference.
                shows_own_epoch: heard.shows_own_epoch && scenario.out_of_step,
                ..heard
            });
            if let Some(heard) = heard
                && !answers.iter().any(|(_, other)| *other == heard)
            {
                answers.push((via, heard));
            }
        }
    }
    answers
}

/// The possible knowledge of the process about its own epoch. The report of phase `Sealing` reaches the
/// sidecar at any time, or never.
fn own_epochs(state: &State, scenario: &Scenario, epoch: i64, who: Who) -> Vec<OwnEpoch> {
    let site = state.site(epoch);
    let process = match who {
        Who::Sidecar => &site.sidecar,
        Who::Actuator => &site.actuator,
        Who::Gardenlet => &site.gardenlet,
    };
    let propagation = u8::try_from(scenario.settings.propagation.as_secs()).unwrap();
    let may_show_previous_epoch = propagation > 0
        && process.seen.is_none_or(|seen| seen <= propagation)
        && scenario.is_on(Off::FreshEpoch);
    let is_reported = who == Who::Sidecar && site.read.phase == Phase::Sealing;
    let reports: &[bool] = match is_reported {
        _ if !scenario.is_on(Off::DeletionNeedsWitness) => &[true],
        true => &[false, true],
        false => &[false],
    };
    let own = |sealing_was_reported: &bool| OwnEpoch {
        sealing_was_reported: *sealing_was_reported,
        may_show_previous_epoch,
    };
    reports.iter().map(own).collect()
}

fn ways(state: &State, scenario: &Scenario, seed: Seed) -> Vec<(Via, Vec<Word>)> {
    let word = |record: &Record<Seed>| Word {
        record: record.clone(),
        authoritative: true,
    };
    let list = scenario.list(seed);
    let mut ways = vec![(Via::Nobody, Vec::new())];
    let all = list.clone().map(|server| word(&state.zone[server]));
    ways.push((Via::AllServers, all.collect()));
    if list.clone().count() > 1 {
        for (server, via) in list.clone().zip([Via::FirstServer, Via::SecondServer]) {
            ways.push((via, vec![word(&state.zone[server])]));
        }
    }
    for (hidden, _) in &state.hidden {
        ways.push((Via::HiddenReplica, vec![word(hidden)]));
    }
    if scenario.caches {
        ways.push((
            Via::Cache,
            vec![Word {
                record: Record {
                    identity: Some(Seed::A),
                    epoch: Some(1),
                },
                authoritative: !scenario.is_on(Off::Authoritative),
            }],
        ));
    }
    ways
}

/// The second witness, if reachable; an unreachable witness gives Unknown at best.
fn second(state: &State, scenario: &Scenario, epoch: i64, who: Who) -> Testimony {
    let silent = || Testimony::Silent(String::new());
    let site = state.site(epoch);
    let said = match who {
        Who::Sidecar => OwnershipObject::testimony(state.bucket(site.seed)),
        Who::Gardenlet if state.deleted => Testimony::Missing,
        Who::Gardenlet => state.garden.testimony(&site.seed),
        Who::Actuator if !site.sidecar.runs() => silent(),
        Who::Actuator => {
            let is_lost = site.marker || site.sidecar.right == Right::Lost;
            let relayed = RelayedAnswer::from_permit(is_lost, site.sidecar.right.left());
            relayed.testimony(epoch).unwrap_or_else(silent)
        }
    };
    match said {
        Testimony::Owned { epoch, .. } if !scenario.is_on(Off::RelayTellsWhatIsLeft) => {
            Testimony::Owned { epoch, left: None }
        }
        Testimony::Missing if !scenario.is_on(Off::MissingIsUnknown) => {
            Testimony::Owned { epoch, left: None }
        }
        said => said,
    }
}

/// The crate's own judgement; `None` is Unknown.
fn judged(question: &Question) -> Option<Heard> {
    let claim = claim(question.seed, question.epoch);
    let said: Vec<(SocketAddr, RecordVerdict)> = question
        .words
        .iter()
        .enumerate()
        .map(|(number, word)| (server(number), verdict(&claim, word, question.compares_epochs)))
        .collect();
    let shows_own_epoch = dns_verdict::shows_own_epoch(&said);
    let answer = judgement::by_record(dns_verdict::combine(&said), question.own)
        .unwrap_or_else(|silent| judgement::by_second_witness(&claim, &silent, question.second.clone()));
    let said = match answer {
        Answer::Owned { at_most } => AnswerKind::Owned {
            at_most: at_most.map(|left| u8::try_from(left.as_secs()).unwrap()),
        },
        Answer::Lost(_) => AnswerKind::Lost,
        Answer::Unknown(_) => return None,
    };
    Some(Heard {
        said,
        shows_own_epoch,
    })
}

/// Whether the destination of this epoch sees itself at every witness, by the crate's own functions.
pub(super) fn is_shown(state: &State, scenario: &Scenario, epoch: i64) -> bool {
    let claim = claim(state.site(epoch).seed, epoch);
    let all = servers_of_fence(state, scenario, epoch);
    let number = if scenario.is_on(Off::FenceAfterAllServers) {
        all.len()
    } else {
        1
    };
    let said: Vec<(SocketAddr, RecordVerdict)> = all
        .into_iter()
        .take(number)
        .map(|number| {
            let word = Word {
                record: state.zone[number].clone(),
                authoritative: true,
            };
            (server(number), verdict(&claim, &word, true))
        })
        .collect();
    let Some(source) = &state.site(epoch).read.source else {
        return false;
    };
    let testimony = OwnershipObject::testimony(state.bucket(source.seed));
    dns_verdict::is_shown_everywhere(&said).is_ok()
        && (judgement::is_shown_by_second_witness(&claim, &testimony).is_ok()
            || !scenario.is_on(Off::FenceAfterBucket))
}

/// Whether in truth no witness can confirm the owner of an earlier epoch any more.
pub(super) fn all_show(state: &State, scenario: &Scenario, epoch: i64) -> bool {
    let source = state.site(epoch).read.source.as_ref().map(|source| source.seed);
    servers_of_fence(state, scenario, epoch)
        .into_iter()
        .all(|number| {
            let zone = &state.zone[number];
            zone.epoch >= Some(epoch) || state.slipped && zone.epoch.is_none()
        })
        && source
            .and_then(|source| state.bucket(source))
            .is_some_and(|object| object.epoch >= epoch)
}

/// The servers that have to show the destination of this epoch, by the crate's own function.
fn servers_of_fence(state: &State, scenario: &Scenario, epoch: i64) -> Vec<usize> {
    let own = state.site(epoch).seed;
    let first = match scenario.off {
        Some(Off::ServersOfFormerSeeds) => epoch,
        Some(Off::ServersOfAllFormerSeeds) => (epoch - 1).max(1),
        _ => 1,
    };
    let seeds = (first..epoch).map(|former| state.site(former).seed).chain([own]);
    let asked = seeds.map(|seed| {
        let asked = AskedServers {
            servers: scenario.list(seed).map(server).collect(),
            uses_ns_records: false,
        };
        (seed as usize, asked)
    });
    let all = fence_servers(asked, &[]);
    (0..scenario.servers)
        .filter(|number| all.contains_key(&server(*number)))
        .collect()
}

/// The answer as the process receives it.
pub(super) fn answer(said: AnswerKind) -> Answer {
    match said {
        AnswerKind::Owned { at_most } => Answer::Owned {
            at_most: at_most.map(|left| Duration::from_secs(left.into())),
        },
        AnswerKind::Lost => Answer::Lost(record_verdict::OwnershipLoss::Sealed),
    }
}

const ZONE: &str = "internal.example.";
const OWNER: &str = "owner.demo.dev.internal.example.";

fn claim(seed: Seed, epoch: i64) -> OwnershipClaim {
    OwnershipClaim::new(OWNER, &format!("{seed:?}"), epoch).unwrap()
}

fn server(number: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, u8::try_from(number).unwrap()], 53))
}

fn verdict(claim: &OwnershipClaim, word: &Word, compares_epochs: bool) -> RecordVerdict {
    let epoch = word.record.epoch.map(|epoch| epoch.to_string());
    let owner = word.record.identity.map(|seed| format!("{seed:?}"));
    let epoch = reply(&claim.epoch_name, epoch, word.authoritative);
    match record_verdict::from_epoch_reply(claim, &epoch) {
        Some(said) if compares_epochs => said,
        _ => record_verdict::from_owner_reply(claim, &reply(&claim.owner_name, owner, word.authoritative)),
    }
}

/// A message, read by the crate's own reader.
fn reply(name: &Name, text: Option<String>, authoritative: bool) -> Reply {
    let zone = Name::from_ascii(ZONE).unwrap();
    let mut message = Message::response(1, OpCode::Query);
    message.metadata.authoritative = authoritative;
    if let Some(text) = text {
        message.add_answer(DnsRecord::from_rdata(
            name.clone(),
            10,
            RData::TXT(TXT::new(vec![text])),
        ));
    } else {
        message.metadata.response_code = ResponseCode::NXDomain;
        let soa = SOA::new(zone.clone(), zone.clone(), 1, 60, 60, 600, 5);
        message.add_authority(DnsRecord::from_rdata(zone.clone(), 5, RData::SOA(soa)));
    }
    reply::read(&message, name, &zone)
}
