//! Answers of all kinds, and the resulting replies.

use hickory_proto::op::{Message, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, CNAME, NS, SOA, TXT};
use hickory_proto::rr::{DNSClass, RData, Record};
use rstest::rstest;

use super::name;
use crate::reply::{Reply, read};

const OWNER: &str = "owner.demo.dev.internal.example";
const ZONE: &str = "internal.example";

fn record(owner: &str, data: RData) -> Record {
    Record::from_rdata(name(owner), 10, data)
}

fn texts(owner: &str, strings: &[&str]) -> Record {
    let strings = strings.iter().map(|text| text.as_bytes()).collect();
    record(owner, RData::TXT(TXT::from_bytes(strings)))
}

fn soa(zone: &str) -> Record {
    record(
        zone,
        RData::SOA(SOA::new(name(zone), name("admin.example"), 1, 60, 60, 600, 5)),
    )
}

fn answer(records: impl IntoIterator<Item = Record>) -> Message {
    let mut message = Message::response(1, OpCode::Query);
    message.metadata.authoritative = true;
    message.add_answers(records);
    message
}

fn denial(code: ResponseCode, zone: &str) -> Message {
    let mut message = answer([]);
    message.metadata.response_code = code;
    message.add_authority(soa(zone));
    message
}

fn read_it(message: &Message) -> Reply {
    read(message, &name(OWNER), &name(ZONE))
}

#[rstest]
#[case::one(answer([texts(OWNER, &["seed-a"])]), "seed-a")]
#[case::in_parts(answer([texts(OWNER, &["se", "", "ed-a"])]), "seed-a")]
#[case::empty(answer([texts(OWNER, &[""])]), "")]
#[case::other_letters(answer([texts("OWNER.Demo.dev.internal.EXAMPLE", &["seed-a"])]), "seed-a")]
fn one_text_is_what_is_asked_for(#[case] message: Message, #[case] expected: &str) {
    assert_eq!(read_it(&message), Reply::Text(expected.to_owned()));
}

#[test]
fn a_ttl_of_nothing_or_of_years_makes_no_difference() {
    for ttl in [0, u32::MAX] {
        let mut record = texts(OWNER, &["seed-a"]);
        record.ttl = ttl;
        assert_eq!(read_it(&answer([record])), Reply::Text("seed-a".to_owned()));
    }
}

#[rstest]
#[case::two(answer([texts(OWNER, &["seed-a"]), texts(OWNER, &["seed-b"])]))]
#[case::two_alike(answer([texts(OWNER, &["seed-a"]), texts(OWNER, &["seed-a"])]))]
#[case::hundreds(answer((0..900).map(|number| texts(OWNER, &[&format!("seed-{number}")]))))]
#[case::another_name(answer([texts("owner.other.dev.internal.example", &["seed-b"])]))]
#[case::another_name_too(answer([texts(OWNER, &["seed-a"]), texts("internal.example", &["seed-b"])]))]
#[case::alias(answer([record(OWNER, RData::CNAME(CNAME(name("x.evil.example")))), texts("x.evil.example", &["seed-b"])]))]
#[case::alias_to_nothing(answer([record(OWNER, RData::CNAME(CNAME(name("x.evil.example"))))]))]
#[case::another_type(answer([record(OWNER, RData::A(A::new(192, 0, 2, 1)))]))]
#[case::another_class(answer([chaos()]))]
#[case::no_text(answer([record(OWNER, RData::TXT(TXT::from_bytes(vec![&[0xff, 0xfe]])))]))]
#[case::denied_and_told(denied_and_told())]
fn an_answer_that_cannot_be_a_record_of_ours_is_unusable(#[case] message: Message) {
    let reply = read_it(&message);
    assert!(matches!(reply, Reply::Unusable(_)), "{reply:?}");
}

fn chaos() -> Record {
    let mut record = texts(OWNER, &["seed-b"]);
    record.dns_class = DNSClass::CH;
    record
}

fn denied_and_told() -> Message {
    let mut message = denial(ResponseCode::NXDomain, ZONE);
    message.add_answer(texts(OWNER, &["seed-b"]));
    message
}

#[rstest]
#[case::no_such_name(denial(ResponseCode::NXDomain, ZONE))]
#[case::no_text_at_the_name(denial(ResponseCode::NoError, ZONE))]
fn only_the_zone_itself_can_say_that_there_is_nothing(#[case] message: Message) {
    assert_eq!(read_it(&message), Reply::NoText);
}

#[rstest]
#[case::servfail(denial(ResponseCode::ServFail, ZONE))]
#[case::refused(denial(ResponseCode::Refused, ZONE))]
#[case::not_implemented(denial(ResponseCode::NotImp, ZONE))]
#[case::format(denial(ResponseCode::FormErr, ZONE))]
#[case::not_auth(denial(ResponseCode::NotAuth, ZONE))]
#[case::parent_zone(denial(ResponseCode::NXDomain, "example"))]
#[case::child_zone(denial(ResponseCode::NXDomain, "dev.internal.example"))]
#[case::another_zone(denial(ResponseCode::NXDomain, "internal.example.org"))]
#[case::nobodys_zone(answer([]))]
#[case::referral(referral())]
#[case::a_cache(from_a_cache(answer([texts(OWNER, &["seed-a"])])))]
#[case::a_cache_that_denies(from_a_cache(denial(ResponseCode::NXDomain, ZONE)))]
fn whoever_is_no_authority_is_silent(#[case] message: Message) {
    let reply = read_it(&message);
    assert!(matches!(reply, Reply::Silent(_)), "{reply:?}");
}

fn from_a_cache(mut message: Message) -> Message {
    message.metadata.authoritative = false;
    message
}

fn referral() -> Message {
    let mut message = answer([]);
    message.add_authority(record("dev.internal.example", RData::NS(NS(name("ns.example")))));
    message
}
