//! The bytes that answer a question.

use hickory_proto::op::{Message, Query};
use hickory_proto::rr::RecordType;

use super::name;
use crate::question::{Question, ServerResponse};

const OWNER: &str = "owner.demo.dev.internal.example";

/// The question's own message, made an answer by setting its QR bit, and changed by `change`.
fn bytes(question: &Question, change: impl FnOnce(&mut Message)) -> Vec<u8> {
    let mut bytes = question.bytes().to_vec();
    if let Some(flags) = bytes.get_mut(2) {
        *flags |= 0x80;
    }
    let mut message = Message::from_vec(&bytes).unwrap();
    change(&mut message);
    message.to_vec().unwrap()
}

fn answers(question: &Question, change: impl FnOnce(&mut Message)) -> bool {
    question.answer(&bytes(question, change)).is_some()
}

#[test]
fn only_what_repeats_the_question_answers_it() {
    let question = Question::new(&name(OWNER)).unwrap();
    assert!(answers(&question, |_| {}));
    assert!(!answers(&question, |message| message.metadata.id ^= 1));
    assert!(!answers(&question, |message| message.queries.clear()));
    let ask = |text: &str, kind| Query::query(name(text), kind);
    assert!(!answers(&question, |message| {
        message.queries = vec![ask("owner.other.dev.internal.example", RecordType::TXT)];
    }));
    assert!(!answers(&question, |message| message.queries =
        vec![ask(OWNER, RecordType::A)]));
    assert!(!answers(&question, |message| {
        message.queries.push(ask(OWNER, RecordType::TXT));
    }));
    // The question itself, sent back.
    assert!(question.answer(question.bytes()).is_none());
}

#[test]
fn garbage_answers_nothing() {
    let question = Question::new(&name(OWNER)).unwrap();
    assert!(question.answer(&[]).is_none());
    assert!(question.answer(&[0xff; 4096]).is_none());
    let right = bytes(&question, |_| {});
    for length in 0..right.len() {
        let cut = right.get(..length).unwrap();
        assert!(question.answer(cut).is_none(), "{length}");
    }
}

#[test]
fn an_answer_that_was_cut_off_is_asked_for_over_tcp() {
    let question = Question::new(&name(OWNER)).unwrap();
    let cut = bytes(&question, |message| message.metadata.truncation = true);
    assert!(matches!(question.answer(&cut), Some(ServerResponse::Truncated)));
    // Also where the message ends in the middle of a record.
    let header = cut.get(..14).unwrap();
    assert!(matches!(question.answer(header), Some(ServerResponse::Truncated)));
}

#[test]
fn questions_cannot_be_told_beforehand() {
    let ids: std::collections::BTreeSet<u16> = (0..64)
        .map(|_| Question::new(&name(OWNER)).unwrap().id())
        .collect();
    assert!(ids.len() > 32, "{ids:?}");
}
