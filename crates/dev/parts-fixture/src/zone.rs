//! A DNS server for the zone with the owner records, limited to the two names of a check, each with a single
//! text.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc)] // only tests use this crate

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use anyhow::Result;
use tokio::{net::UdpSocket, task::JoinSet};

/// Longer than every question in the tests.
const LONGEST: usize = 512;
/// DNS header: response, authoritative answer; a single question, a single answer.
const HEAD: [u8; 6] = [0x84, 0x00, 0, 1, 0, 1];
/// DNS header of an answer without a record: a single authority.
const HEAD_OF_DENIAL: [u8; 10] = [0x84, 0x00, 0, 1, 0, 0, 0, 1, 0, 0];
/// SOA, IN, TTL 10 seconds, 22 bytes: two times the root, five numbers.
const SOA: [u8; 10] = [0, 6, 0, 1, 0, 0, 0, 10, 0, 22];
/// DNS answer: pointer to the name in the question; TXT, IN, TTL 10 seconds.
const RECORD: [u8; 10] = [0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 10];

#[derive(Clone, Default)]
struct Content {
    identity: String,
    epoch: i64,
    /// The zone that denies the identity.
    denied_by: Option<String>,
    /// Content after the next answer.
    later: Option<Box<Content>>,
}

/// The server.
pub struct Zone {
    /// Address of the server.
    pub address: SocketAddr,
    says: Arc<Mutex<Content>>,
    /// The task ends with the server.
    _work: JoinSet<()>,
}

impl Zone {
    /// Starts the server.
    pub async fn start() -> Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        let address = socket.local_addr()?;
        let says = Arc::new(Mutex::new(Content::default()));
        let known = Arc::clone(&says);
        let mut work = JoinSet::new();
        work.spawn(async move {
            let mut question = [0; LONGEST];
            while let Ok((length, from)) = socket.recv_from(&mut question).await {
                let content = known.lock().unwrap().clone();
                let answer = answer(&question[..length], &content);
                if let Some(later) = content.later {
                    *known.lock().unwrap() = *later;
                }
                drop(socket.send_to(&answer, from).await);
            }
        });
        Ok(Self {
            address,
            says,
            _work: work,
        })
    }

    /// Sets the identity and the epoch for all further answers.
    pub fn says(&self, identity: &str, epoch: i64) {
        *self.says.lock().unwrap() = Content {
            identity: identity.to_owned(),
            epoch,
            ..Content::default()
        };
    }

    /// Answers a single question with an earlier epoch and no identity, and then as [`says`](Self::says)
    /// does.
    pub fn says_after_one_answer(&self, identity: &str, epoch: i64) {
        let later = Content {
            identity: identity.to_owned(),
            epoch,
            ..Content::default()
        };
        *self.says.lock().unwrap() = Content {
            epoch: epoch - 1,
            later: Some(Box::new(later)),
            ..Content::default()
        };
    }

    /// Answers a single question for the epoch and for the identity, and then has the epoch before without an
    /// identity. `zone`: the zone of the server.
    pub fn says_once(&self, identity: &str, epoch: i64, zone: &str) {
        let last = Content {
            epoch: epoch - 1,
            denied_by: Some(zone.to_owned()),
            ..Content::default()
        };
        let second = Content {
            identity: identity.to_owned(),
            epoch,
            later: Some(Box::new(last)),
            ..Content::default()
        };
        *self.says.lock().unwrap() = Content {
            epoch,
            later: Some(Box::new(second)),
            ..Content::default()
        };
    }

    /// Deletes the identity, and sets the epoch for all further answers. `zone`: the zone of the server.
    pub fn deletes_identity(&self, zone: &str, epoch: i64) {
        *self.says.lock().unwrap() = Content {
            epoch,
            denied_by: Some(zone.to_owned()),
            ..Content::default()
        };
    }
}

fn answer(question: &[u8], content: &Content) -> Vec<u8> {
    let asks_epoch = question[13..].starts_with(b"epoch");
    let text = match &content.denied_by {
        _ if asks_epoch => content.epoch.to_string(),
        Some(zone) => return denial(question, zone),
        None => content.identity.clone(),
    };
    let length = u8::try_from(text.len()).unwrap();
    let mut answer = question[..2].to_vec();
    answer.extend(HEAD);
    answer.extend([0; 4]);
    answer.extend(&question[12..]);
    answer.extend(RECORD);
    answer.extend([0, length + 1, length]);
    answer.extend(text.as_bytes());
    answer
}

fn denial(question: &[u8], zone: &str) -> Vec<u8> {
    let mut answer = question[..2].to_vec();
    answer.extend(HEAD_OF_DENIAL);
    answer.extend(&question[12..]);
    for label in zone.trim_end_matches('.').split('.') {
        answer.push(u8::try_from(label.len()).unwrap());
        answer.extend(label.as_bytes());
    }
    answer.push(0);
    answer.extend(SOA);
    answer.extend([0; 22]);
    answer
}
