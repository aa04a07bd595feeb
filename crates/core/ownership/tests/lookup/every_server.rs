//! Every server of a zone, as a destination has to know the servers: the fence must not leave out a server
//! that a former owner may ask.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::rdata::{A, NS};
use hickory_proto::rr::{RData, Record, RecordType};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use ownership::Authorities;

use crate::server::{Server, answer};
use crate::world::{ZONE, name};

/// Longer than a busy machine needs for some local questions.
const WITHIN: Duration = Duration::from_secs(60);
/// After this time a server counts as silent. The other server answers far sooner on a busy machine.
const SILENT_FOR: Duration = Duration::from_secs(10);

/// Knows two servers of the zone, and the address of the second while `knows` is true.
fn resolves(question: &Message, knows: &AtomicBool) -> Vec<u8> {
    let query = question.queries.first().unwrap().clone();
    answer(question, |message| {
        message.answers.clear();
        let mut add = |data| {
            message.add_answer(Record::from_rdata(query.name().clone(), 10, data));
        };
        let asked = query.name().to_ascii();
        match query.query_type() {
            RecordType::NS => {
                for server in ["one.internal.example.", "two.internal.example."] {
                    add(RData::NS(NS(name(server).unwrap())));
                }
            }
            RecordType::A if asked.starts_with("one.") => add(RData::A(A::new(192, 0, 2, 1))),
            RecordType::A if knows.load(Ordering::SeqCst) => add(RData::A(A::new(192, 0, 2, 2))),
            RecordType::AAAA if asked.starts_with("one.") || knows.load(Ordering::SeqCst) => {}
            _ => message.metadata.response_code = ResponseCode::NXDomain,
        }
    })
}

/// The resolver of a machine, answered by this server.
fn resolver(server: &Server) -> TokioResolver {
    let mut connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
    for connection in &mut connections {
        connection.port = server.address.port();
    }
    let upstream = NameServerConfig::new(server.address.ip(), true, connections.into());
    let config = ResolverConfig::from_name_servers(vec![upstream]);
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    builder.options_mut().cache_size = 0;
    builder.options_mut().timeout = 2 * SILENT_FOR;
    builder.build().unwrap()
}

#[tokio::test]
async fn a_server_without_an_address_is_not_left_out_of_every_server() {
    let knows = Arc::new(AtomicBool::new(false));
    let shared = Arc::clone(&knows);
    let server = Server::start(move |question, _| vec![resolves(question, &shared)]).await;
    let found = Authorities::discover_with(ZONE, resolver(&server), 53).unwrap();
    assert!(!found.are_named() && found.known_servers().is_empty());
    let why = found.every_server(WITHIN).await.unwrap_err();
    assert!(
        why.contains("two.internal.example") && why.contains("has no address"),
        "{why}"
    );
    knows.store(true, Ordering::SeqCst);
    let expected: Vec<SocketAddr> = ["192.0.2.1:53", "192.0.2.2:53"]
        .map(|one| one.parse().unwrap())
        .into();
    assert_eq!(found.every_server(WITHIN).await, Ok(expected.clone()));
    let named = Authorities::named(ZONE, expected.clone()).unwrap();
    assert!(named.are_named());
    assert_eq!(named.known_servers(), expected);
    assert_eq!(named.every_server(WITHIN).await, Ok(expected));
}

/// A name without an answer comes first: without a separate bound for each name the lookup would use up the
/// time of the remaining names.
#[tokio::test]
async fn a_name_that_is_not_answered_delays_no_other_server() {
    let answers = Arc::new(AtomicBool::new(false));
    let shared = Arc::clone(&answers);
    let server = Server::start(move |question, _| {
        let asked = question.queries.first().unwrap().name().to_ascii();
        let is_silent = asked.starts_with("one.") && !shared.load(Ordering::SeqCst);
        if is_silent {
            return Vec::new();
        }
        vec![resolves(question, &AtomicBool::new(true))]
    })
    .await;
    let found = Authorities::discover_with(ZONE, resolver(&server), 53).unwrap();
    let why = found.every_server(SILENT_FOR).await.unwrap_err();
    assert!(why.contains("server one.internal.example. of"), "{why}");
    assert!(why.contains("no answer within 10s"), "{why}");
    answers.store(true, Ordering::SeqCst);
    assert_eq!(found.every_server(WITHIN).await.unwrap().len(), 2);
}
