//! Update messages. Pure: names and values in, messages out.

use std::net::{Ipv4Addr, Ipv6Addr};

use api::{extensions::RecordType as Kind, meta::ErrorCode};
use hickory_proto::{
    op::{Message, OpCode, Query, UpdateMessage},
    rr::{
        DNSClass, Name, RData, Record, RecordType,
        rdata::{A, AAAA, CNAME, TXT},
    },
};
use runtime::{Error, Result};

/// Default TTL of a record in seconds.
const DEFAULT_TTL: u32 = 120;
/// A TXT record consists of strings of at most so many bytes.
pub(super) const LONGEST_TEXT: usize = 255;

/// A name with all values of one type.
#[derive(Debug, Clone)]
pub struct Records {
    /// The name.
    pub name: Name,
    kind: RecordType,
    ttl: u32,
    values: Vec<RData>,
}

impl Records {
    /// Checks and encodes the values of a DNSRecord.
    pub fn new(name: &str, kind: Kind, values: &[String], ttl: Option<i64>) -> Result<Self> {
        if values.is_empty() || (kind == Kind::CNAME && values.len() > 1) {
            return Err(wrong(format!(
                "{name} of type {kind:?} has {} values: give one",
                values.len()
            )));
        }
        let values = values
            .iter()
            .map(|value| encode(name, kind, value))
            .collect::<Result<_>>()?;
        let kind = match kind {
            Kind::A => RecordType::A,
            Kind::AAAA => RecordType::AAAA,
            Kind::CNAME => RecordType::CNAME,
            Kind::TXT => RecordType::TXT,
        };
        let ttl = ttl.and_then(|ttl| u32::try_from(ttl).ok()).unwrap_or(DEFAULT_TTL);
        Ok(Self {
            name: absolute(name)?,
            kind,
            ttl,
            values,
        })
    }

    fn records(&self, ttl: u32) -> impl Iterator<Item = Record> {
        self.values
            .iter()
            .map(move |value| Record::from_rdata(self.name.clone(), ttl, value.clone()))
    }

    /// Types that must not stay beside these records at the same name: a name is either an alias or has
    /// addresses.
    fn replaced(&self) -> &'static [RecordType] {
        match self.kind {
            RecordType::CNAME => &[RecordType::CNAME, RecordType::A, RecordType::AAAA],
            RecordType::A => &[RecordType::A, RecordType::CNAME],
            RecordType::AAAA => &[RecordType::AAAA, RecordType::CNAME],
            _ => &[RecordType::TXT],
        }
    }
}

/// Sets exactly these values of the name, in a single step.
pub fn replace(zone: &Name, records: &Records) -> Result<Message> {
    let mut message = message(zone, &records.name)?;
    for kind in records.replaced() {
        message.add_update(whole_set(&records.name, *kind));
    }
    message.add_updates(records.records(records.ttl));
    Ok(message)
}

/// All records of one name and one type, as the server has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordSet {
    pub(super) kind: RecordType,
    pub(super) ttl: u32,
    pub(super) values: Vec<RData>,
}

impl Records {
    /// The types that an update changes or removes at this name.
    pub(super) fn concerned(&self) -> &'static [RecordType] {
        self.replaced()
    }

    fn is_served(&self, sets: &[RecordSet]) -> bool {
        sets.iter().all(|set| {
            let are_same = set.values.len() == self.values.len()
                && self.values.iter().all(|value| set.values.contains(value));
            if set.kind == self.kind {
                are_same && set.ttl == self.ttl
            } else {
                set.values.is_empty()
            }
        })
    }
}

/// As [`replace`], applied only while the server has the records that were read. Otherwise the server answers
/// `NXRRSet`, `YXRRSet` or `NXDomain` and changes nothing. `None` if the name has these values already.
pub fn replace_while(zone: &Name, records: &Records, read: &[RecordSet]) -> Result<Option<Message>> {
    if records.is_served(read) {
        return Ok(None);
    }
    let mut message = replace(zone, records)?;
    for RecordSet { kind, values, .. } in read {
        if values.is_empty() {
            message.add_pre_requisite(no_set(&records.name, *kind));
        }
        let values = values.iter().cloned();
        message.add_pre_requisites(values.map(|value| Record::from_rdata(records.name.clone(), 0, value)));
    }
    Ok(Some(message))
}

/// Removes the name's values, if the values are exactly these. Otherwise the server answers `NXRRSet` or
/// `NXDomain` and changes nothing.
pub fn remove(zone: &Name, records: &Records) -> Result<Message> {
    let mut message = message(zone, &records.name)?;
    message.add_pre_requisites(records.records(0));
    message.add_update(whole_set(&records.name, records.kind));
    Ok(message)
}

/// The name with a trailing dot, regardless of the user's spelling.
pub fn absolute(name: &str) -> Result<Name> {
    let mut parsed = Name::from_ascii(name).map_err(|e| wrong(format!("{name:?} is no DNS name: {e}")))?;
    parsed.set_fqdn(true);
    Ok(parsed)
}

/// An empty update of a zone.
pub(super) fn message(zone: &Name, name: &Name) -> Result<Message> {
    if !zone.zone_of(name) {
        return Err(Error::bug(format!(
            "an update of {name} was to go to zone {zone}"
        )));
    }
    let mut message = Message::query();
    message.metadata.op_code = OpCode::Update;
    message.metadata.recursion_desired = false;
    message.add_zone(Query::query(zone.clone(), RecordType::SOA));
    Ok(message)
}

/// RFC 2136, 2.5.2: all values of a type go.
pub(super) fn whole_set(name: &Name, kind: RecordType) -> Record {
    let mut record = Record::update0(name.clone(), 0, kind);
    record.dns_class = DNSClass::ANY;
    record
}

/// RFC 2136, 2.4.3: there must be no such record.
pub(super) fn no_set(name: &Name, kind: RecordType) -> Record {
    let mut record = whole_set(name, kind);
    record.dns_class = DNSClass::NONE;
    record
}

fn encode(name: &str, kind: Kind, value: &str) -> Result<RData> {
    let no = |what: &str| wrong(format!("value {value:?} of {name} is no {what}: correct it"));
    Ok(match kind {
        Kind::A => RData::A(A(value.parse::<Ipv4Addr>().map_err(|_| no("IPv4 address"))?)),
        Kind::AAAA => RData::AAAA(AAAA(value.parse::<Ipv6Addr>().map_err(|_| no("IPv6 address"))?)),
        Kind::CNAME => RData::CNAME(CNAME(absolute(value)?)),
        Kind::TXT => {
            let texts: Vec<&[u8]> = value.as_bytes().chunks(LONGEST_TEXT).collect();
            RData::TXT(TXT::from_bytes(if texts.is_empty() { vec![b""] } else { texts }))
        }
    })
}

fn wrong(message: String) -> Error {
    Error::config(ErrorCode::ErrConfigurationProblem, message)
}

#[cfg(test)]
#[path = "update_tests.rs"]
mod tests;
