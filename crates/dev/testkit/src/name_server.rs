//! An authoritative DNS server that accepts updates signed by TSIG (RFC 2136).

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::Engine;
use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode, UpdateMessage};
use hickory_proto::rr::rdata::{TXT, tsig::TsigAlgorithm};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType, TSigner};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use crate::ports;
use crate::process::Server;
use crate::wait::eventually;

/// Longer than the server needs to load the zones on a busy machine, and longer than some queries may wait
/// for an answer.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Longer than an answer over loopback takes, even if server and test are not scheduled for some seconds. A
/// stopped server refuses immediately.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// Interval of repeated queries meanwhile: a datagram may be lost.
const ASK_EVERY: Duration = Duration::from_secs(5);

/// A running knot.
pub struct NameServer {
    /// Host and port, UDP and TCP.
    pub address: String,
    /// Name of the key that may update every zone.
    pub tsig_key_name: &'static str,
    /// Name of a key with the same secret that may transfer every zone, and update none.
    pub reading_key_name: &'static str,
    /// The key, in base64.
    pub tsig_secret: String,
    /// The algorithm of the key.
    pub tsig_algorithm: &'static str,
    server: Option<Server>,
    zones: Vec<String>,
    folder: TempDir,
}

impl NameServer {
    /// Starts a server for these zones (without a trailing dot); the zones contain only SOA and NS.
    pub async fn start(zones: &[&str]) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("repot-dns-").tempdir()?;
        let mut server = Self {
            address: format!("127.0.0.1:{}", ports::free()?),
            tsig_key_name: "repot",
            reading_key_name: "reader",
            tsig_secret: base64::engine::general_purpose::STANDARD.encode("a key for tests, 32 bytes of it."),
            tsig_algorithm: "hmac-sha256",
            server: None,
            zones: zones.iter().map(ToString::to_string).collect(),
            folder,
        };
        for zone in zones {
            let text = format!(
                "$TTL 60\n@ SOA ns.{zone}. admin.{zone}. 1 60 60 600 5\n@ NS ns.{zone}.\nns A 127.0.0.1\n"
            );
            std::fs::write(server.folder.path().join(format!("{zone}.zone")), text)?;
        }
        std::fs::write(server.folder.path().join("knot.conf"), server.config()?)?;
        server.resume().await?;
        Ok(server)
    }

    fn config(&self) -> Result<String> {
        let folder = self.folder.path().display();
        let listen = self.address.replace(':', "@");
        let mut text = format!(
            "server:\n  rundir: {folder}\n  listen: {listen}\n  udp-workers: 1\n  tcp-workers: 1\n  background-workers: 1\n\
             log:\n  - target: stderr\n    any: info\n\
             database:\n  storage: {folder}\n  journal-db-max-size: 16M\n  kasp-db-max-size: 5M\n  timer-db-max-size: 2M\n\
             key:\n  - id: {key}\n    algorithm: {algorithm}\n    secret: {secret}\n\
             {empty:2}- id: {reader}\n    algorithm: {algorithm}\n    secret: {secret}\n\
             acl:\n  - id: update\n    key: {key}\n    action: [update, transfer]\n\
             {empty:2}- id: read\n    key: {reader}\n    action: transfer\n\
             template:\n  - id: default\n    storage: {folder}\n    acl: [update, read]\n    zonefile-sync: -1\n    \
             zonefile-load: difference-no-serial\n    journal-content: all\nzone:\n",
            empty = "",
            key = self.tsig_key_name,
            reader = self.reading_key_name,
            algorithm = self.tsig_algorithm,
            secret = self.tsig_secret,
        );
        for zone in &self.zones {
            writeln!(text, "  - domain: {zone}\n    file: {zone}.zone")?;
        }
        Ok(text)
    }

    /// Kills the server. The records stay in the journals of the zones, including records from updates.
    pub fn stop(&mut self) {
        self.server = None;
    }

    /// Starts the server again on the same address, and waits until the server answers for all zones.
    pub async fn resume(&mut self) -> Result<()> {
        let args = ["-c", "knot.conf"];
        self.server = Some(Server::start("knotd", "knotd", self.folder.path(), args, &[])?);
        for zone in self.zones.clone() {
            let (server, address) = (&mut self.server, &self.address);
            let ready = eventually("the name server answers", READY_WITHIN, || {
                let ended = server.as_mut().and_then(|server| server.check_alive().err());
                let zone = zone.clone();
                async move {
                    match ended {
                        Some(ended) => Ok(Err(ended)),
                        None => ask(address, &zone, RecordType::SOA).await.map(|_| Ok(())),
                    }
                }
            });
            ready.await??;
        }
        Ok(())
    }

    /// Queries the server. Returns the records' data as text, sorted; empty if the name does not exist. TXT
    /// data of several strings is joined.
    pub async fn records(&self, name: &str, kind: RecordType) -> Result<Vec<String>> {
        ask(&self.address, name, kind).await
    }

    /// IPv4 addresses of a name.
    pub async fn addresses(&self, name: &str) -> Result<Vec<String>> {
        self.records(name, RecordType::A).await
    }

    /// Sets exactly these texts of each name, in a single update. A long text is a single record with several
    /// strings.
    pub async fn write_texts(&self, zone: &str, names: &[(&str, &[&str])]) -> Result<()> {
        let mut update = Message::query();
        update.metadata.op_code = OpCode::Update;
        update.metadata.recursion_desired = false;
        update.add_zone(Query::query(absolute(zone)?, RecordType::SOA));
        for (name, texts) in names {
            let name = absolute(name)?;
            let mut whole = Record::update0(name.clone(), 0, RecordType::TXT);
            whole.dns_class = DNSClass::ANY;
            update.add_update(whole);
            for text in *texts {
                let text = RData::TXT(TXT::from_bytes(text.as_bytes().chunks(255).collect()));
                update.add_update(Record::from_rdata(name.clone(), 10, text));
            }
        }
        let algorithm = TsigAlgorithm::from_name(Name::from_ascii(self.tsig_algorithm)?);
        let key = base64::engine::general_purpose::STANDARD.decode(&self.tsig_secret)?;
        let signer = TSigner::new(key, algorithm, absolute(self.tsig_key_name)?, 300)?;
        #[allow(clippy::disallowed_methods)] // the server compares it with its own clock
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        update.finalize(&signer, now.as_secs())?;
        let bytes = update.to_vec()?;
        let mut stream = TcpStream::connect(&self.address).await?;
        stream.write_u16(u16::try_from(bytes.len())?).await?;
        stream.write_all(&bytes).await?;
        let mut answer = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut answer).await?;
        match Message::from_vec(&answer)?.metadata.response_code {
            ResponseCode::NoError => Ok(()),
            refused => bail!("the update was refused: {refused}"),
        }
    }

    /// Texts of a name.
    pub async fn texts(&self, name: &str) -> Result<Vec<String>> {
        self.records(name, RecordType::TXT).await
    }
}

fn absolute(name: &str) -> Result<Name> {
    Ok(Name::from_ascii(format!("{}.", name.trim_end_matches('.')))?)
}

async fn ask(address: &str, name: &str, kind: RecordType) -> Result<Vec<String>> {
    let mut question = Message::new(1, MessageType::Query, OpCode::Query);
    question.add_query(Query::query(absolute(name)?, kind));
    let socket = UdpSocket::bind("127.0.0.1:0").await?;
    socket.connect(address).await?;
    let question = question.to_vec()?;
    let mut buffer = vec![0; 4096];
    let answered = async {
        loop {
            socket.send(&question).await?;
            if let Ok(heard) = tokio::time::timeout(ASK_EVERY, socket.recv(&mut buffer)).await {
                return heard;
            }
        }
    };
    let length = crate::wait_bound::timeout(ANSWER_WITHIN, answered)
        .await
        .context("no answer")??;
    let answer = Message::from_vec(&buffer[..length])?;
    match answer.metadata.response_code {
        ResponseCode::NoError | ResponseCode::NXDomain => {}
        code => bail!("{name}: {code}"),
    }
    let matching = answer
        .answers
        .iter()
        .filter(|record| record.record_type() == kind);
    let mut data: Vec<String> = matching.map(|record| record.data.to_string()).collect();
    data.sort();
    Ok(data)
}
