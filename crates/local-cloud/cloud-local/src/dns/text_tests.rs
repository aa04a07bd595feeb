//! Answers and conditional updates, section by section.
#![allow(clippy::unwrap_used)]

use api::extensions::RecordType as Kind;
use hickory_proto::{
    op::{Message, ResponseCode, UpdateMessage},
    rr::{
        DNSClass, Name, RData, Record,
        rdata::{CNAME, TXT},
    },
};

use super::{
    super::update::{Records, absolute, replace},
    Change, TextRecord, change, only_while, read_text_record,
};

fn name() -> Name {
    absolute("owner.s.p.internal.example").unwrap()
}

fn text(parts: &[&[u8]]) -> Record {
    Record::from_rdata(name(), 5, RData::TXT(TXT::from_bytes(parts.to_vec())))
}

fn answer(records: Vec<Record>) -> Message {
    let mut message = Message::query();
    message.metadata.authoritative = true;
    message.answers = records;
    message
}

fn shown(records: &[Record]) -> Vec<String> {
    let value = |record: &Record| {
        if record.dns_class == DNSClass::IN {
            format!(" {}", record.data)
        } else {
            String::new()
        }
    };
    let line = |r: &Record| {
        format!(
            "{} {} {} {}{}",
            r.name,
            r.ttl,
            r.dns_class,
            r.record_type(),
            value(r)
        )
    };
    records.iter().map(line).collect()
}

#[test]
fn a_name_has_one_text_or_what_is_wrong_is_said() {
    let read = |records| read_text_record(&answer(records), &name()).unwrap();
    assert_eq!(read(vec![]), TextRecord::Nothing);
    assert_eq!(read(vec![text(&[b"seed-a"])]), TextRecord::Text("seed-a".into()));
    let wrong = |records, part: &str| {
        let found = read(records);
        assert!(
            matches!(&found, TextRecord::Other(what) if what.contains(part)),
            "{found:?}"
        );
    };
    wrong(vec![text(&[b"a"]), text(&[b"b"])], "2 texts");
    wrong(vec![text(&[b"seed", b"-a"])], "2 strings");
    wrong(vec![text(&[b"\xff"])], "not UTF-8");
    let alias = RData::CNAME(CNAME(absolute("x.example").unwrap()));
    let alias = Record::from_rdata(name(), 5, alias);
    wrong(vec![alias, text(&[b"seed-a"])], "alias");
    // Of a different name, or of a different class.
    let mut foreign = text(&[b"seed-b"]);
    foreign.name = absolute("other.internal.example").unwrap();
    let mut chaos = text(&[b"seed-b"]);
    chaos.dns_class = DNSClass::CH;
    assert_eq!(read(vec![foreign, chaos]), TextRecord::Nothing);
}

#[test]
fn only_an_authority_knows() {
    let mut cached = answer(vec![text(&[b"seed-a"])]);
    cached.metadata.authoritative = false;
    assert_eq!(read_text_record(&cached, &name()), None);
    let mut broken = answer(vec![]);
    broken.metadata.response_code = ResponseCode::ServFail;
    assert_eq!(read_text_record(&broken, &name()), None);
}

#[test]
fn all_names_change_in_one_message_and_only_from_what_was_read() {
    let zone = absolute("internal.example").unwrap();
    let epoch = name().prepend_label("epoch").unwrap();
    let changes = [
        Change {
            name: name(),
            was: None,
            becomes: Some("seed-b".into()),
        },
        Change {
            name: epoch,
            was: Some("3".into()),
            becomes: Some("4".into()),
        },
    ];
    let sent = change(&zone, &changes, 10).unwrap().to_vec().unwrap();
    let message = Message::from_vec(&sent).unwrap();
    assert_eq!(
        shown(message.prerequisites()),
        [
            "owner.s.p.internal.example. 0 NONE TXT",
            "owner.s.p.internal.example. 0 NONE CNAME",
            "epoch.owner.s.p.internal.example. 0 IN TXT 3",
            "epoch.owner.s.p.internal.example. 0 NONE CNAME",
        ]
    );
    assert_eq!(
        shown(message.updates()),
        [
            "owner.s.p.internal.example. 10 IN TXT seed-b",
            "epoch.owner.s.p.internal.example. 0 ANY TXT",
            "epoch.owner.s.p.internal.example. 10 IN TXT 4",
        ]
    );
}

#[test]
fn another_update_may_depend_on_a_text() {
    let zone = absolute("internal.example").unwrap();
    let epoch = name().prepend_label("epoch").unwrap();
    let address = Records::new("api.s.p.internal.example", Kind::A, &["192.0.2.1".into()], None);
    let update = replace(&zone, &address.unwrap()).unwrap();
    let sent = only_while(update.clone(), &epoch, "3").unwrap().to_vec().unwrap();
    let message = Message::from_vec(&sent).unwrap();
    assert_eq!(
        shown(message.prerequisites()),
        ["epoch.owner.s.p.internal.example. 0 IN TXT 3"]
    );
    assert_eq!(shown(message.updates()), shown(update.updates()));
    assert!(only_while(update, &epoch, &"x".repeat(256)).is_err());
}

#[test]
fn what_stays_is_only_a_condition() {
    let zone = absolute("internal.example").unwrap();
    let of = |was: Option<&str>, becomes: Option<&str>| Change {
        name: name(),
        was: was.map(str::to_owned),
        becomes: becomes.map(str::to_owned),
    };
    let kept = change(&zone, &[of(Some("4"), Some("4"))], 10).unwrap();
    assert_eq!(kept.prerequisites().len(), 2);
    assert!(kept.updates().is_empty());
    let gone = change(&zone, &[of(Some("seed-a"), None)], 10).unwrap();
    assert_eq!(shown(gone.updates()), ["owner.s.p.internal.example. 0 ANY TXT"]);
    assert!(change(&zone, &[of(None, Some(&"x".repeat(256)))], 10).is_err());
    assert!(change(&absolute("other.example").unwrap(), &[of(None, None)], 10).is_err());
    assert!(change(&zone, &[], 10).is_err());
}
