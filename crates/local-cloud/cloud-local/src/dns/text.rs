//! The single text record of a name. This module parses the answer of a server, and builds changes that apply
//! only while the name has that text. Pure.
//!
//! Several names change in a single message: all of them, or none (RFC 2136, 3.7).

use api::meta::ErrorCode;
use hickory_proto::{
    op::{Message, ResponseCode, UpdateMessage},
    rr::{DNSClass, Name, RData, Record, RecordType, rdata::TXT},
};
use mutation::Mutation;
use runtime::{Error, Result};

use super::update::{LONGEST_TEXT, message, no_set, whole_set};

/// The text record of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextRecord {
    /// No text record.
    Nothing,
    /// Exactly this text, as a single string.
    Text(String),
    /// A record that this project does not write; phrased to follow the name in a sentence.
    Other(String),
}

/// The change of the text of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The name.
    pub name: Name,
    /// The required present text. `None`: no text may exist.
    pub was: Option<String>,
    /// The new text. `None`: the text is removed.
    pub becomes: Option<String>,
}

/// Parses the authoritative answer to a query for the texts of a name. `None`: the answer is not
/// authoritative.
pub(super) fn read_text_record(answer: &Message, name: &Name) -> Option<TextRecord> {
    let code = answer.metadata.response_code;
    if !matches!(code, ResponseCode::NoError | ResponseCode::NXDomain) || !answer.metadata.authoritative {
        return None;
    }
    let mut texts = Vec::new();
    for record in &answer.answers {
        match &record.data {
            // Also if the target of the alias has a text.
            RData::CNAME(_) => return Some(TextRecord::Other("is an alias".into())),
            RData::TXT(text) if record.name == *name && record.dns_class == DNSClass::IN => texts.push(text),
            _ => {}
        }
    }
    Some(match texts.as_slice() {
        [] => TextRecord::Nothing,
        [text] => one(text),
        several => TextRecord::Other(format!("has {} texts instead of one", several.len())),
    })
}

fn one(text: &TXT) -> TextRecord {
    match text.txt_data.as_ref() {
        [only] => String::from_utf8(only.to_vec()).map_or_else(
            |_| TextRecord::Other("has a text that is not UTF-8".into()),
            TextRecord::Text,
        ),
        several => TextRecord::Other(format!("has a text of {} strings instead of one", several.len())),
    }
}

/// Applies all changes, if every name has exactly the required text. Otherwise the server answers `NXRRSet`,
/// `YXRRSet` or `NXDomain`, and changes nothing.
pub fn change(zone: &Name, changes: &[Change], ttl: u32) -> Result<Message> {
    let Some(first) = changes.first() else {
        return Err(Error::bug("an update of no name"));
    };
    let mut message = message(zone, &first.name)?;
    for Change { name, was, becomes } in changes {
        if !zone.zone_of(name) {
            return Err(Error::bug(format!(
                "an update of {name} was to go to zone {zone}"
            )));
        }
        match was {
            _ if Mutation::RecordUpdatedWithoutTest.is_active() => {}
            Some(was) => message.add_pre_requisite(record(name, was, 0)?),
            None => message.add_pre_requisite(no_set(name, RecordType::TXT)),
        }
        // A server ignores a text that is added beside an alias, and calls that success (RFC 2136, 3.4.2.2).
        message.add_pre_requisite(no_set(name, RecordType::CNAME));
        if was == becomes {
            continue;
        }
        if was.is_some() {
            message.add_update(whole_set(name, RecordType::TXT));
        }
        if let Some(becomes) = becomes {
            message.add_update(record(name, becomes, ttl)?);
        }
    }
    Ok(message)
}

/// The same update, applied only while a name has exactly this text. Otherwise the server answers `NXRRSet`
/// and changes nothing.
pub fn only_while(mut update: Message, name: &Name, text: &str) -> Result<Message> {
    update.add_pre_requisite(record(name, text, 0)?);
    Ok(update)
}

fn record(name: &Name, text: &str, ttl: u32) -> Result<Record> {
    if text.len() > LONGEST_TEXT {
        return Err(Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!(
                "the text of {name} has {} bytes; at most {LONGEST_TEXT} are possible",
                text.len()
            ),
        ));
    }
    let text = RData::TXT(TXT::from_bytes(vec![text.as_bytes()]));
    Ok(Record::from_rdata(name.clone(), ttl, text))
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
