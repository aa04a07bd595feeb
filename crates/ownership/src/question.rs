//! One question to a DNS server, and which message is an answer to it.

use hickory_proto::op::{Message, MessageType, OpCode, Query};
use hickory_proto::rr::{DNSClass, Name, RecordType};

/// Bytes of a DNS header.
const HEADER: usize = 12;

/// The TC bit, in the third byte.
const TRUNCATED: u8 = 0b10;

/// A question for the texts of one name, with an id that nobody can guess.
///
/// It asks for no recursion (a resolver then says what it is, or nothing), and carries no EDNS: an answer
/// that is right fits in 512 bytes, one that does not is asked for over TCP, and nothing has to be said to
/// servers that refuse EDNS.
#[derive(Clone, Debug)]
pub struct Question {
    name: Name,
    id: u16,
    bytes: Vec<u8>,
}

/// What a server sent back.
#[derive(Clone, Debug)]
pub enum Heard {
    /// All of it.
    Answer(Box<Message>),
    /// A part: to be asked for over TCP.
    Truncated,
}

impl Question {
    pub(crate) fn new(name: &Name) -> Result<Self, String> {
        let mut message = Message::query();
        message.metadata.recursion_desired = false;
        message.add_query(Query::query(name.clone(), RecordType::TXT));
        Ok(Self {
            name: name.clone(),
            id: message.metadata.id,
            bytes: message.to_vec().map_err(|error| error.to_string())?,
        })
    }

    /// The name that is asked for.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The id that an answer repeats.
    #[must_use]
    pub fn id(&self) -> u16 {
        self.id
    }

    /// As it is sent.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether these bytes answer this question. None: they are somebody else's, or cannot be read; whoever
    /// waits goes on waiting, so that a stranger's datagram does not take the answer's place.
    #[must_use]
    pub fn answer(&self, bytes: &[u8]) -> Option<Heard> {
        if bytes.len() < HEADER || bytes.get(..2) != Some(&self.id.to_be_bytes()) {
            return None;
        }
        // Servers cut an answer off wherever its space ends: what is left need not be readable.
        if bytes.get(2).is_some_and(|flags| flags & TRUNCATED != 0) {
            return Some(Heard::Truncated);
        }
        let message = Message::from_vec(bytes).ok()?;
        self.is_answered_by(&message)
            .then(|| Heard::Answer(Box::new(message)))
    }

    fn is_answered_by(&self, message: &Message) -> bool {
        let [query] = message.queries.as_slice() else {
            return false;
        };
        message.metadata.id == self.id
            && message.metadata.message_type == MessageType::Response
            && message.metadata.op_code == OpCode::Query
            && *query.name() == self.name
            && query.query_type() == RecordType::TXT
            && query.query_class() == DNSClass::IN
    }
}
