//! Requests to a DNS server: a TCP connection per message, signed and checked with TSIG, with a timeout.

use std::time::Duration;

use api::meta::ErrorCode;
use base64::{Engine, engine::general_purpose::STANDARD};
use hickory_proto::{
    op::{Message, Query, ResponseCode},
    rr::{Name, RecordType, TSigner, rdata::tsig::TsigAlgorithm},
};
use permit::discard_unsent;
use runtime::{
    Error, Result,
    client::{Credentials, Permit},
    clock,
    process::external_requests::{UNANSWERED, count_request},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::{
    text::{TextRecord, read_text_record},
    update::{RecordSet, Records, absolute},
};

/// Timeout for a message and the answer. Much shorter than the 2 minutes that a gardenlet waits for a
/// DNSRecord, so that several attempts fit.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Name of the service in the metric of requests.
const SERVICE: &str = "DNS";
/// Names of the operations in this metric.
const QUERY: &str = "query";
const UPDATE: &str = "update";
/// Allowed difference between the local and the server's clock in seconds (recommended by RFC 8945).
const CLOCKS_DIFFER_BY: u16 = 300;

/// A server and the TSIG key.
pub struct Server {
    address: String,
    signer: TSigner,
    origin: String,
    permit: Permit,
}

impl Server {
    /// The server of the credentials. Messages to the server leave only while the permit is valid.
    pub fn new(credentials: &Credentials, permit: &Permit) -> Result<Self> {
        let wrong = |key: &str, what: &str| {
            let message = format!(
                "key {key:?} of the Secret {} {what}: correct it",
                credentials.origin()
            );
            Error::config(ErrorCode::ErrConfigurationProblem, message)
        };
        let algorithm = credentials
            .optional_text("tsigAlgorithm")?
            .unwrap_or_else(|| "hmac-sha256".into());
        let algorithm = Name::from_ascii(algorithm.trim_end_matches('.')).map(TsigAlgorithm::from_name);
        let algorithm = algorithm.map_err(|_| wrong("tsigAlgorithm", "is no algorithm"))?;
        let secret = STANDARD
            .decode(credentials.text("tsigSecret")?)
            .map_err(|_| wrong("tsigSecret", "is not base64"))?;
        let key_name =
            absolute(&credentials.text("tsigKeyName")?).map_err(|_| wrong("tsigKeyName", "is no name"))?;
        let signer = TSigner::new(secret, algorithm, key_name, CLOCKS_DIFFER_BY).map_err(|_| {
            wrong(
                "tsigAlgorithm",
                "is not supported (hmac-sha256, hmac-sha384, hmac-sha512 are)",
            )
        })?;
        let address = credentials.text("server")?;
        if address
            .rsplit_once(':')
            .is_none_or(|(host, port)| host.is_empty() || port.parse::<u16>().is_err())
        {
            return Err(wrong("server", "is not of the form host:port"));
        }
        Ok(Self {
            address,
            signer,
            origin: credentials.origin().to_owned(),
            permit: permit.clone(),
        })
    }

    /// Sends an update and returns the server's verdict. An update counts as accepted only if the server has
    /// signed the answer.
    pub async fn update(&self, mut message: Message) -> Result<ResponseCode> {
        let now = u64::try_from(clock::now().as_second()).unwrap_or_default();
        let verifier = message
            .finalize(&self.signer, now)
            .map_err(|e| Error::bug("an update cannot be signed").caused_by(e))?;
        let answer = self.exchange(UPDATE, &message).await?;
        let code = decode(&self.address, &answer)?.metadata.response_code;
        if code == ResponseCode::NoError {
            let mut verifier = verifier.ok_or_else(|| Error::bug("a signed update has no verifier"))?;
            verifier.verify(&answer).map_err(|e| {
                Error::transient(format!(
                    "the answer of DNS server {} is not signed with our key",
                    self.address
                ))
                .caused_by(e)
            })?;
        }
        Ok(code)
    }

    /// The server's zone of a name.
    pub async fn zone_of(&self, name: &Name) -> Result<Name> {
        let mut message = Message::query();
        message.metadata.recursion_desired = false;
        message.add_query(Query::query(name.clone(), RecordType::SOA));
        let answer = decode(&self.address, &self.exchange(QUERY, &message).await?)?;
        // The zone's SOA is the answer at the apex, and in the authority section below the apex.
        let soa = answer
            .answers
            .iter()
            .chain(&answer.authorities)
            .find(|record| record.record_type() == RecordType::SOA);
        match soa {
            Some(soa) if answer.metadata.authoritative && soa.name.zone_of(name) => Ok(soa.name.clone()),
            _ => Err(Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!(
                    "DNS server {} has no zone for {name}: give it one, or set spec.zone",
                    self.address
                ),
            )),
        }
    }

    /// The text record of a name.
    pub async fn text_of(&self, name: &Name) -> Result<TextRecord> {
        let answer = self.ask(name, RecordType::TXT).await?;
        read_text_record(&answer, name).ok_or_else(|| self.not_as_an_authority(name, &answer))
    }

    /// The record sets of a name for the types that an update of these records changes.
    pub async fn sets_of(&self, records: &Records) -> Result<Vec<RecordSet>> {
        let (name, mut sets) = (&records.name, Vec::new());
        for &kind in records.concerned() {
            let answer = self.ask(name, kind).await?;
            let code = answer.metadata.response_code;
            if !matches!(code, ResponseCode::NoError | ResponseCode::NXDomain)
                || !answer.metadata.authoritative
            {
                return Err(self.not_as_an_authority(name, &answer));
            }
            // An alias is the answer to a query of any type, together with the target's records.
            let found = answer.answers.iter();
            let found: Vec<_> = found
                .filter(|record| record.name == *name && record.record_type() == kind)
                .collect();
            sets.push(RecordSet {
                kind,
                ttl: found.first().map_or(0, |record| record.ttl),
                values: found.into_iter().map(|record| record.data.clone()).collect(),
            });
        }
        Ok(sets)
    }

    async fn ask(&self, name: &Name, kind: RecordType) -> Result<Message> {
        let mut message = Message::query();
        message.metadata.recursion_desired = false;
        message.add_query(Query::query(name.clone(), kind));
        decode(&self.address, &self.exchange(QUERY, &message).await?)
    }

    fn not_as_an_authority(&self, name: &Name, answer: &Message) -> Error {
        let how = match answer.metadata.response_code {
            ResponseCode::NoError | ResponseCode::NXDomain => "not as an authority".to_owned(),
            code => code.to_string(),
        };
        Error::transient(format!(
            "DNS server {} answered the question for {name}: {how}",
            self.address
        ))
    }

    /// The meaning of a refusal, with the remedy.
    #[must_use]
    pub fn refused(&self, zone: &Name, code: ResponseCode) -> Error {
        let Self { address, origin, .. } = self;
        match code {
            ResponseCode::NotAuth | ResponseCode::BADSIG | ResponseCode::BADKEY => Error::config(
                ErrorCode::ErrInfraUnauthenticated,
                format!(
                    "DNS server {address} does not accept the TSIG key for zone {zone} ({code}): correct tsigKeyName and \
                     tsigSecret in the Secret {origin}, or add the key to the server and allow it to update the zone"
                ),
            ),
            ResponseCode::BADTIME => Error::config(
                ErrorCode::ErrInfraUnauthenticated,
                format!("DNS server {address} has another time than this seed: correct the clocks"),
            ),
            ResponseCode::Refused => Error::config(
                ErrorCode::ErrInfraUnauthorized,
                format!(
                    "DNS server {address} refuses updates of zone {zone}: allow them for the TSIG key of the Secret {origin}"
                ),
            ),
            ResponseCode::NotZone | ResponseCode::NotImp | ResponseCode::FormErr => Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!(
                    "DNS server {address} cannot update zone {zone} ({code}): correct spec.zone or the server"
                ),
            ),
            code => Error::transient(format!(
                "DNS server {address} could not update zone {zone}: {code}"
            )),
        }
    }

    async fn exchange(&self, operation: &'static str, message: &Message) -> Result<Vec<u8>> {
        let bytes = message
            .to_vec()
            .map_err(|e| Error::bug("a DNS message cannot be encoded").caused_by(e))?;
        let length = u16::try_from(bytes.len()).map_err(|_| {
            Error::config(
                ErrorCode::ErrConfigurationProblem,
                "the record is too large for a DNS message: remove values",
            )
        })?;
        let (address, id) = (self.address.clone(), bytes.get(..2).map(<[u8]>::to_vec));
        let work = async move {
            let mut stream = TcpStream::connect(&address).await?;
            // An update must not be delivered after the permit.
            discard_unsent(&stream)?;
            let mut framed = length.to_be_bytes().to_vec();
            framed.extend_from_slice(&bytes);
            stream.write_all(&framed).await?;
            let mut answer = vec![0; usize::from(stream.read_u16().await?)];
            stream.read_exact(&mut answer).await?;
            Ok::<_, std::io::Error>(answer)
        };
        // The effect covers the whole exchange: an update that has left is answered before the permit is
        // passed on.
        let answer = self.permit.effect(timeout(ANSWER_WITHIN, work)).await?;
        let code = match &answer {
            Ok(Ok(answer)) => code_of(answer),
            _ => UNANSWERED.to_owned(),
        };
        count_request(SERVICE, operation, code);
        let answer = answer
            .map_err(|_| {
                Error::transient(format!(
                    "DNS server {} did not answer within {ANSWER_WITHIN:?}",
                    self.address
                ))
            })?
            .map_err(|e| {
                Error::transient(format!("DNS server {} cannot be reached", self.address)).caused_by(e)
            })?;
        if answer.get(..2) != id.as_deref() {
            return Err(Error::transient(format!(
                "DNS server {} answered another question",
                self.address
            )));
        }
        Ok(answer)
    }
}

/// The code of an answer for the metric: the lower bits, as the head of a message has no more.
fn code_of(answer: &[u8]) -> String {
    let low = answer.get(3).map_or(0, |byte| byte & 0x0f);
    format!("{:?}", ResponseCode::from(0, low))
}

fn decode(address: &str, answer: &[u8]) -> Result<Message> {
    Message::from_vec(answer).map_err(|e| {
        Error::transient(format!("the answer of DNS server {address} cannot be read")).caused_by(e)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use runtime::process::metrics::Metrics;

    use super::*;

    fn server_at(address: &str) -> Server {
        let data = [
            ("server", address),
            ("tsigKeyName", "seed-b"),
            ("tsigSecret", "c2VjcmV0"),
        ];
        let data: BTreeMap<String, Vec<u8>> = data.map(|(key, value)| (key.to_owned(), value.into())).into();
        Server::new(&Credentials::new("garden/dns", data), &Permit::sole("a test")).unwrap()
    }

    #[test]
    fn the_code_of_an_answer_is_in_the_head() {
        let head = |byte: u8| code_of(&[0, 1, 0x84, byte]);
        assert_eq!(
            [head(0), head(3), head(0x85)],
            ["NoError", "NXDomain", "Refused"].map(str::to_owned)
        );
    }

    #[tokio::test]
    async fn a_request_without_an_answer_is_counted() {
        // No process listens at this port.
        let server = server_at("127.0.0.1:1");
        let name = absolute("example.test").unwrap();
        assert!(server.text_of(&name).await.is_err());
        let text = Metrics::default().encode();
        let line = "external_requests_total{service=\"DNS\",operation=\"query\",code=\"none\"} 1";
        assert!(text.contains(line), "{line} is not in\n{text}");
    }

    /// Servers report a key without rights on a zone in different ways.
    #[test]
    fn who_may_not_change_a_zone_learns_what_to_do() {
        let server = server_at("192.0.2.1:53");
        let zone = absolute("example.test").unwrap();
        for (code, expected, part) in [
            (
                ResponseCode::NotAuth,
                ErrorCode::ErrInfraUnauthenticated,
                "allow it to update the zone",
            ),
            (
                ResponseCode::Refused,
                ErrorCode::ErrInfraUnauthorized,
                "allow them for the TSIG key",
            ),
        ] {
            let refused = server.refused(&zone, code);
            assert_eq!(refused.codes(), [expected]);
            let told = refused.to_string();
            let has = |what: &str| told.contains(what);
            assert!(
                has(part) && has("garden/dns") && has("example.test") && !has("c2VjcmV0"),
                "{told}"
            );
        }
    }
}
