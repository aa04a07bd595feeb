//! A single question to a DNS server, and the test whether a message answers the question.

use hickory_proto::op::{Message, MessageType, OpCode, Query};
use hickory_proto::rr::{DNSClass, Name, RecordType};

/// Bytes of a DNS header.
const HEADER: usize = 12;

/// The TC bit, in the third byte.
const TRUNCATED: u8 = 0b10;

/// A question for the texts of a single name, with an id that cannot be guessed.
///
/// The question asks for no recursion, so that a resolver answers without AA or not at all. The question
/// carries no EDNS: a valid answer fits in 512 bytes, and a longer answer is asked for over TCP. So servers
/// that refuse EDNS need no special case.
#[derive(Clone, Debug)]
pub struct Question {
    name: Name,
    id: u16,
    bytes: Vec<u8>,
}

/// The response of a server.
#[derive(Clone, Debug)]
pub enum ServerResponse {
    /// The complete response.
    Answer(Box<Message>),
    /// A truncated response: ask over TCP.
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

    /// The name in the question.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The id that an answer repeats.
    #[must_use]
    pub fn id(&self) -> u16 {
        self.id
    }

    /// The question as sent.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether these bytes answer this question. `None`: the bytes answer another question, or cannot be
    /// parsed. The caller continues to wait, so that a forged datagram does not replace the answer.
    #[must_use]
    pub fn answer(&self, bytes: &[u8]) -> Option<ServerResponse> {
        if bytes.len() < HEADER || bytes.get(..2) != Some(&self.id.to_be_bytes()) {
            return None;
        }
        // Servers truncate an answer wherever the space ends: the rest need not be parseable.
        if bytes.get(2).is_some_and(|flags| flags & TRUNCATED != 0) {
            return Some(ServerResponse::Truncated);
        }
        let message = Message::from_vec(bytes).ok()?;
        self.is_answered_by(&message)
            .then(|| ServerResponse::Answer(Box::new(message)))
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
