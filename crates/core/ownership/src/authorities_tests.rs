//! The addresses that a process keeps while the name of a server cannot be resolved.

#![allow(clippy::unwrap_used, clippy::panic)]
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hickory_proto::op::{Message, OpCode};
use hickory_proto::rr::Record;
use hickory_proto::rr::rdata::{A, NS};
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use tokio::net::UdpSocket;

use super::*;

const ZONE: &str = "internal.example.";
/// Longer than the answer of a busy machine takes.
const WITHIN: Duration = Duration::from_secs(4);

/// The servers `one` and `two` of the zone. The name `two` is answered only while `two_answers`.
fn answer(question: &[u8], two_answers: bool) -> Option<Vec<u8>> {
    let question = Message::from_vec(question).unwrap();
    let query = question.queries.first().unwrap().clone();
    let mut message = Message::response(question.metadata.id, OpCode::Query);
    let asked = query.name().to_ascii();
    if asked.starts_with("two.") && !two_answers {
        return None;
    }
    let mut add = |data| {
        message.add_answer(Record::from_rdata(query.name().clone(), 10, data));
    };
    match query.query_type() {
        RecordType::NS => {
            for server in ["one.internal.example.", "two.internal.example."] {
                add(RData::NS(NS(absolute(server).unwrap())));
            }
        }
        RecordType::A => add(RData::A(A::new(
            192,
            0,
            2,
            if asked.starts_with("one.") { 1 } else { 2 },
        ))),
        _ => {}
    }
    message.add_query(query);
    Some(message.to_vec().unwrap())
}

#[tokio::test]
async fn a_server_whose_name_is_not_answered_keeps_its_addresses() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut udp = ConnectionConfig::udp();
    udp.port = socket.local_addr().unwrap().port();
    let upstream = NameServerConfig::new(socket.local_addr().unwrap().ip(), true, vec![udp]);
    let config = ResolverConfig::from_name_servers(vec![upstream]);
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    builder.options_mut().cache_size = 0;
    let found = Authorities::discover_with(ZONE, builder.build().unwrap(), 53).unwrap();
    let two_answers = Arc::new(AtomicBool::new(false));
    let serves = async {
        let mut buffer = [0; 1024];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
            let question = buffer.get(..length).unwrap();
            if let Some(answer) = answer(question, two_answers.load(Ordering::SeqCst)) {
                socket.send_to(&answer, from).await.unwrap();
            }
        }
    };
    let story = async {
        let Source::Found(finder) = &found.source else {
            panic!("servers are named")
        };
        let find = || finder.find(&found.zone, WITHIN);
        let [one, two] = ["192.0.2.1:53", "192.0.2.2:53"].map(|server| server.parse::<SocketAddr>().unwrap());
        assert_eq!(
            find().await,
            Ok(vec![one]),
            "an unknown name delays no other server"
        );
        two_answers.store(true, Ordering::SeqCst);
        assert_eq!(find().await, Ok(vec![one, two]));
        two_answers.store(false, Ordering::SeqCst);
        assert_eq!(find().await, Ok(vec![one, two]));
    };
    tokio::select! {
        () = serves => {}
        () = story => {}
    }
}
