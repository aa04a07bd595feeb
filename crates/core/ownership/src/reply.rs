//! The answer of a single server for a single name: a pure function of the message. Hostile and broken
//! answers end here.

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType, rdata::TXT};

/// The meaning of a server's answer for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The name has exactly one text.
    Text(String),
    /// The name has no text: the authority of the right zone says so.
    NoText,
    /// The authority answers, but the content cannot be an owner record.
    Unusable(String),
    /// No authority has answered.
    Silent(String),
}

/// Reads the answer to the question for the texts of `name`, a name in `zone`.
pub(crate) fn read(answer: &Message, name: &Name, zone: &Name) -> Reply {
    let code = answer.metadata.response_code;
    if !matches!(code, ResponseCode::NoError | ResponseCode::NXDomain) {
        return Reply::Silent(format!("it answers {code}"));
    }
    // Caches keep earlier values, and a server with a wrong delegation does not know the zone.
    if !answer.metadata.authoritative {
        return Reply::Silent("it is no authority for the zone".to_owned());
    }
    let mut texts = Vec::new();
    for record in &answer.answers {
        match text(record, name) {
            Ok(Some(text)) => texts.push(text),
            Ok(None) => {}
            Err(why) => return Reply::Unusable(why),
        }
    }
    match texts.as_slice() {
        [] => nothing(answer, zone),
        _ if code == ResponseCode::NXDomain => {
            Reply::Unusable("it says that the name does not exist, and what it is".to_owned())
        }
        [text] => one(text),
        several => Reply::Unusable(format!("{name} has {} texts instead of one", several.len())),
    }
}

/// The text of a record, or `None` for a record without a text that may be in the answer. An error if such a
/// record does not belong in the answer.
fn text<'a>(record: &'a Record, name: &Name) -> Result<Option<&'a TXT>, String> {
    match &record.data {
        _ if record.record_type() == RecordType::RRSIG => Ok(None),
        RData::CNAME(_) => Err(format!("{} is an alias", record.name)),
        _ if record.name != *name => Err(format!("it answers for {} when asked for {name}", record.name)),
        RData::TXT(text) if record.dns_class == DNSClass::IN => Ok(Some(text)),
        _ => Err(format!("{name} has a record of type {}", record.record_type())),
    }
}

/// Whether an answer without a text proves that the name has no text: the SOA in the answer must be the SOA
/// of the record's own zone. The servers of a parent zone, or of a zone delegated below, deny names that
/// those servers do not have.
fn nothing(answer: &Message, zone: &Name) -> Reply {
    let mut start = answer
        .authorities
        .iter()
        .filter(|record| record.record_type() == RecordType::SOA);
    match start.next() {
        Some(soa) if soa.name == *zone => Reply::NoText,
        Some(soa) => Reply::Silent(format!("it denies the name as the authority of {}", soa.name)),
        None => Reply::Silent("it gives no record and does not say in whose name".to_owned()),
    }
}

fn one(text: &TXT) -> Reply {
    let bytes: Vec<u8> = text
        .txt_data
        .iter()
        .flat_map(|part| part.iter().copied())
        .collect();
    match String::from_utf8(bytes) {
        Ok(text) => Reply::Text(text),
        Err(_) => Reply::Unusable("its text is not UTF-8".to_owned()),
    }
}
