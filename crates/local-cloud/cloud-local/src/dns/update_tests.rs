//! Update messages, section by section.
#![allow(clippy::unwrap_used)]

use api::{extensions::RecordType as Kind, meta::ErrorCode};
use hickory_proto::{
    op::{Message, OpCode, UpdateMessage},
    rr::{DNSClass, Record},
};

use super::{Records, absolute, remove, replace};

fn records(kind: Kind, values: &[&str]) -> Records {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    Records::new("api.s.p.internal.example", kind, &values, Some(30)).unwrap()
}

fn shown(records: &[Record]) -> Vec<String> {
    records
        .iter()
        .map(|r| {
            let value = if r.dns_class == DNSClass::ANY {
                String::new()
            } else {
                format!(" {}", r.data)
            };
            format!("{} {} {} {}{value}", r.name, r.ttl, r.dns_class, r.record_type())
        })
        .collect()
}

/// The message as the server receives it.
fn sent(message: &Message) -> Message {
    Message::from_vec(&message.to_vec().unwrap()).unwrap()
}

#[test]
fn a_record_is_replaced_within_one_message() {
    let zone = absolute("internal.example").unwrap();
    let message = replace(&zone, &records(Kind::A, &["192.0.2.1", "192.0.2.2"])).unwrap();
    let message = sent(&message);
    assert_eq!(message.metadata.op_code, OpCode::Update);
    assert_eq!(message.zones()[0].name(), &zone);
    assert!(message.prerequisites().is_empty());
    assert_eq!(
        shown(message.updates()),
        [
            "api.s.p.internal.example. 0 ANY A",
            "api.s.p.internal.example. 0 ANY CNAME",
            "api.s.p.internal.example. 30 IN A 192.0.2.1",
            "api.s.p.internal.example. 30 IN A 192.0.2.2",
        ]
    );
}

#[test]
fn a_record_is_removed_only_with_our_values() {
    let zone = absolute("internal.example.").unwrap();
    let message = sent(&remove(&zone, &records(Kind::TXT, &["seed-a"])).unwrap());
    assert_eq!(
        shown(message.prerequisites()),
        ["api.s.p.internal.example. 0 IN TXT seed-a"]
    );
    assert_eq!(shown(message.updates()), ["api.s.p.internal.example. 0 ANY TXT"]);
}

#[test]
fn an_alias_takes_the_place_of_addresses() {
    let zone = absolute("internal.example").unwrap();
    let message = sent(&replace(&zone, &records(Kind::CNAME, &["lb.example"])).unwrap());
    let updates = shown(message.updates());
    assert_eq!(
        updates[..3],
        [
            "api.s.p.internal.example. 0 ANY CNAME",
            "api.s.p.internal.example. 0 ANY A",
            "api.s.p.internal.example. 0 ANY AAAA",
        ]
    );
    assert_eq!(updates[3], "api.s.p.internal.example. 30 IN CNAME lb.example.");
}

#[test]
fn wrong_values_are_told_with_the_name() {
    for (kind, values, part) in [
        (Kind::A, vec!["2001:db8::1"], "is no IPv4 address"),
        (Kind::AAAA, vec!["192.0.2.1"], "is no IPv6 address"),
        (Kind::CNAME, vec!["a.example", "b.example"], "has 2 values"),
        (Kind::TXT, vec![], "has 0 values"),
    ] {
        let values: Vec<String> = values.into_iter().map(str::to_owned).collect();
        let error = Records::new("x.example", kind, &values, None).unwrap_err();
        assert_eq!(error.codes(), [ErrorCode::ErrConfigurationProblem]);
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn a_long_text_is_split_as_dns_wants_it() {
    let text = "x".repeat(600);
    let message = replace(
        &absolute("internal.example").unwrap(),
        &records(Kind::TXT, &[&text]),
    )
    .unwrap();
    let last = sent(&message).updates().last().unwrap().clone();
    assert_eq!(last.data.to_string().replace(['"', ' '], "").len(), 600);
}
