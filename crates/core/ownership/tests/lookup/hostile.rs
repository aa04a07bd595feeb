//! Hostile, broken or slow servers. No such server ends a seed's ownership or blocks another server that
//! answers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::rdata::{CNAME, TXT};
use hickory_proto::rr::{RData, Record};
use ownership::Answer;

use crate::server::{Over, Server, answer, right};
use crate::world::{EPOCH, OWNER, check_at, name};

const OWNED: Answer = Answer::Owned { at_most: None };

async fn alone(behaviour: impl Fn(&Message, Over) -> Vec<Vec<u8>> + Send + Sync + 'static) -> Answer {
    let server = Server::start(behaviour).await;
    check_at([server.address]).await
}

fn is_unknown(answer: &Answer, word: &str) -> bool {
    matches!(answer, Answer::Unknown(why) if why.contains(word))
}

#[tokio::test]
async fn a_right_answer_is_believed() {
    assert_eq!(alone(|question, _| vec![right(question)]).await, OWNED);
}

#[tokio::test]
async fn strangers_datagrams_do_not_take_the_answers_place() {
    let flooded = alone(|question, over| {
        if over == Over::Tcp {
            return vec![];
        }
        let another_id = |message: &mut Message| {
            message.metadata.id ^= 0x5555;
            message.metadata.response_code = ResponseCode::NXDomain;
        };
        vec![
            vec![],
            vec![0xff; 4000],
            question.to_vec().unwrap(),
            answer(question, another_id),
            answer(question, |message| message.queries.clear()),
            right(question),
        ]
    });
    assert_eq!(flooded.await, OWNED);
}

#[tokio::test]
async fn a_lost_datagram_is_asked_for_again() {
    let asked = AtomicUsize::new(0);
    let lossy = alone(move |question, over| {
        if over == Over::Tcp || asked.fetch_add(1, Ordering::SeqCst) == 0 {
            return vec![];
        }
        vec![right(question)]
    });
    assert_eq!(lossy.await, OWNED);
}

#[tokio::test]
async fn where_udp_is_blocked_tcp_is_enough() {
    let blocked = alone(|question, over| match over {
        Over::Udp => vec![],
        Over::Tcp => vec![right(question)],
    });
    assert_eq!(blocked.await, OWNED);
}

#[tokio::test]
async fn an_answer_that_is_cut_off_over_udp_is_read_over_tcp() {
    let cut = alone(|question, over| match over {
        Over::Udp => vec![answer(question, |message| {
            message.metadata.truncation = true;
            message.answers.clear();
        })],
        Over::Tcp => vec![right(question)],
    });
    assert_eq!(cut.await, OWNED);
}

/// Behind an anycast address two flows may lead to two servers, of which the second may be behind.
#[tokio::test]
async fn both_names_are_asked_for_by_one_flow() {
    for blocks_udp in [false, true] {
        let flows = Arc::new(Mutex::new(BTreeMap::<_, Vec<String>>::new()));
        let seen = Arc::clone(&flows);
        let server = Server::telling(move |question, over, from| {
            if blocks_udp && over == Over::Udp {
                return vec![];
            }
            let name = question.queries.first().unwrap().name().to_ascii();
            seen.lock()
                .unwrap()
                .entry((over == Over::Tcp, from))
                .or_default()
                .push(name);
            vec![right(question)]
        });
        assert_eq!(check_at([server.await.address]).await, OWNED);
        let flows = flows.lock().unwrap();
        assert!(!flows.is_empty());
        for ((is_tcp, _), names) in flows.iter() {
            assert_eq!(*is_tcp, blocks_udp);
            assert_eq!(names, &[format!("{EPOCH}."), format!("{OWNER}.")]);
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_off_everywhere_is_none() {
    let cut = alone(|question, _| vec![answer(question, |message| message.metadata.truncation = true)]).await;
    assert!(is_unknown(&cut, "cuts its answer off over TCP"), "{cut:?}");
}

/// R7-59.
#[tokio::test]
async fn a_cache_is_no_authority() {
    let cached =
        alone(|question, _| vec![answer(question, |message| message.metadata.authoritative = false)]).await;
    assert!(is_unknown(&cached, "no authority"), "{cached:?}");
}

#[tokio::test]
async fn servfail_is_silence() {
    let failed = alone(|question, _| {
        vec![answer(question, |message| {
            message.answers.clear();
            message.metadata.response_code = ResponseCode::ServFail;
        })]
    });
    let failed = failed.await;
    assert!(is_unknown(&failed, "Server Failure"), "{failed:?}");
}

#[tokio::test]
async fn an_alias_is_not_followed() {
    let alias = alone(|question, _| {
        vec![answer(question, |message| {
            let target = name("x.evil.example").unwrap();
            let asked = message.queries.first().unwrap().name().clone();
            let text = RData::TXT(TXT::new(vec!["9".to_owned()]));
            message.answers = vec![
                Record::from_rdata(asked, 10, RData::CNAME(CNAME(target.clone()))),
                Record::from_rdata(target, 10, text),
            ];
        })]
    });
    let alias = alias.await;
    assert!(is_unknown(&alias, "is an alias"), "{alias:?}");
}

#[tokio::test]
async fn a_message_full_of_records_is_read_and_decides_nothing() {
    let full = alone(|question, over| {
        if over == Over::Udp {
            return vec![answer(question, |message| message.metadata.truncation = true)];
        }
        vec![answer(question, |message| {
            let record = message.answers.first().unwrap().clone();
            message.answers = vec![record; 1000];
        })]
    });
    let full = full.await;
    assert!(is_unknown(&full, "1000 texts instead of one"), "{full:?}");
}

#[tokio::test]
async fn a_server_that_is_silent_or_gone_does_not_stand_in_the_way() {
    let silent = Server::start(|_, _| vec![]).await;
    let well = Server::start(|question, _| vec![right(question)]).await;
    let gone = SocketAddr::from(([127, 0, 0, 1], testkit::free_port().unwrap()));
    assert_eq!(check_at([silent.address, gone, well.address]).await, OWNED);
    let none = check_at([silent.address, gone]).await;
    assert!(is_unknown(&none, "no authority answers"), "{none:?}");
}
