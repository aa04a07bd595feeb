use hickory_proto::op::{Message, OpCode, Query, ResponseCode, UpdateMessage};
use hickory_proto::rr::rdata::{TXT, tsig::TsigAlgorithm};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType, TSigner};
use testkit::NameServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub const ZONE: &str = "internal.example";
pub const OWNER: &str = "owner.demo.dev.internal.example";
const EPOCH: &str = "epoch.owner.demo.dev.internal.example";

/// A real authority of the zone with the owner record.
pub struct Zone {
    pub server: NameServer,
}

impl Zone {
    pub async fn start() -> Self {
        Self {
            server: NameServer::start(&[ZONE]).await.unwrap(),
        }
    }

    pub async fn owned_by(&self, seed: &str, epoch: i64) {
        self.write(&[seed], &[&epoch.to_string()]).await;
    }

    /// Makes both names have exactly these texts, in one update, as a claimant does.
    pub async fn write(&self, owner: &[&str], epoch: &[&str]) {
        let server = &self.server;
        let mut message = Message::query();
        message.metadata.op_code = OpCode::Update;
        message.metadata.recursion_desired = false;
        message.add_zone(Query::query(name(ZONE), RecordType::SOA));
        for (owner, texts) in [(OWNER, owner), (EPOCH, epoch)] {
            let mut whole = Record::update0(name(owner), 0, RecordType::TXT);
            whole.dns_class = DNSClass::ANY;
            message.add_update(whole);
            for text in texts {
                let text = RData::TXT(TXT::new(vec![(*text).to_owned()]));
                message.add_update(Record::from_rdata(name(owner), 10, text));
            }
        }
        let algorithm = TsigAlgorithm::from_name(Name::from_ascii(server.tsig_algorithm).unwrap());
        let key = decoded(&server.tsig_secret);
        let signer = TSigner::new(key, algorithm, name(server.tsig_key_name), 300).unwrap();
        #[allow(clippy::disallowed_methods)] // the server compares it with its own clock
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        message.finalize(&signer, now.as_secs()).unwrap();
        let bytes = message.to_vec().unwrap();
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        stream
            .write_u16(u16::try_from(bytes.len()).unwrap())
            .await
            .unwrap();
        stream.write_all(&bytes).await.unwrap();
        let mut answer = vec![0; usize::from(stream.read_u16().await.unwrap())];
        stream.read_exact(&mut answer).await.unwrap();
        let code = Message::from_vec(&answer).unwrap().metadata.response_code;
        assert_eq!(code, ResponseCode::NoError, "the update was refused");
    }
}

fn decoded(secret: &str) -> Vec<u8> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(secret).unwrap()
}

fn name(text: &str) -> Name {
    let mut name = Name::from_ascii(text).unwrap();
    name.set_fqdn(true);
    name
}
