use super::{eventually, free_port};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, tcp};
use tokio::task::JoinSet;

/// An answer with this many bytes at once is the content of an object, not a listing.
const CONTENT: usize = 8 * 1024;

#[derive(Default)]
struct Rules {
    /// How requests begin that are held.
    holding: Mutex<Option<&'static str>>,
    held: AtomicUsize,
    /// Requests that began.
    seen: AtomicUsize,
    /// Heads of these requests, in lower case.
    heads: Mutex<Vec<String>>,
    released: tokio::sync::Notify,
    garbled: AtomicBool,
}

/// How requests begin.
const METHODS: [&str; 5] = ["GET ", "HEAD ", "PUT ", "POST ", "DELETE "];

/// A proxy before an object store: counts requests, holds requests, or changes the bytes of reads.
pub struct Gate {
    pub endpoint: String,
    rules: Arc<Rules>,
    _connections: JoinSet<()>,
}

impl Gate {
    pub async fn before(endpoint: &str) -> Self {
        let server = endpoint.trim_start_matches("http://").to_owned();
        let port = free_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let rules = Arc::<Rules>::default();
        let shared = rules.clone();
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut halves = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let Ok(server) = TcpStream::connect(&server).await else {
                    continue;
                };
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                halves.spawn(requests(from_client, to_server, shared.clone()));
                halves.spawn(answers(from_server, to_client, shared.clone()));
            }
        });
        Self {
            endpoint: format!("http://127.0.0.1:{port}"),
            rules,
            _connections: connections,
        }
    }

    /// Holds all further requests that begin with this text.
    pub fn hold(&self, beginning: &'static str) {
        *self.rules.holding.lock().unwrap() = Some(beginning);
    }

    /// Later requests pass; held requests stay held.
    pub fn let_others_pass(&self) {
        *self.rules.holding.lock().unwrap() = None;
    }

    /// Releases the held requests.
    pub fn release(&self) {
        self.let_others_pass();
        self.rules.released.notify_waiters();
    }

    pub async fn something_is_held(&self) {
        self.are_held(1).await;
    }

    pub async fn are_held(&self, number: usize) {
        eventually("requests are held", async || {
            (self.rules.held.load(Ordering::SeqCst) >= number).then_some(())
        })
        .await;
    }

    /// How many requests came.
    pub fn requests(&self) -> usize {
        self.rules.seen.load(Ordering::SeqCst)
    }

    /// The heads of the requests that came, in lower case.
    pub fn heads(&self) -> Vec<String> {
        self.rules.heads.lock().unwrap().clone()
    }

    /// Changes a bit in the bytes that are read of large objects.
    pub fn garble(&self, on: bool) {
        self.rules.garbled.store(on, Ordering::SeqCst);
    }
}

async fn requests(mut from: tcp::OwnedReadHalf, mut to: tcp::OwnedWriteHalf, rules: Arc<Rules>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if METHODS.iter().any(|method| buffer.starts_with(method.as_bytes())) {
            rules.seen.fetch_add(1, Ordering::SeqCst);
            let text = String::from_utf8_lossy(&buffer[..read]).to_lowercase();
            let head = text.split("\r\n\r\n").next().unwrap_or_default();
            rules.heads.lock().unwrap().push(head.to_owned());
        }
        let held = *rules.holding.lock().unwrap();
        if held.is_some_and(|beginning| buffer.starts_with(beginning.as_bytes())) {
            let released = rules.released.notified();
            rules.held.fetch_add(1, Ordering::SeqCst);
            released.await;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

async fn answers(mut from: tcp::OwnedReadHalf, mut to: tcp::OwnedWriteHalf, rules: Arc<Rules>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if read >= CONTENT && rules.garbled.load(Ordering::SeqCst) {
            buffer[read - 1] ^= 1;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
