//! A gate in front of an etcd that the test plays, frame by frame.

use crate::metrics::Metrics;
use crate::owner::{
    Gate, GateTarget, GateTlsPaths, GateTraffic, Http2Proxy, PreparedClients, PreparedLimits,
};
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use permit::{Clock, Issuer};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const HOUR: Duration = Duration::from_secs(3600);
/// Longer than any step takes on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

pub(super) const PUT: &str = "/etcdserverpb.KV/Put";
pub(super) const RANGE: &str = "/etcdserverpb.KV/Range";
pub(super) const TXN: &str = "/etcdserverpb.KV/Txn";
pub(super) const WATCH: &str = "/etcdserverpb.Watch/Watch";

pub(super) async fn in_time<T>(waiting: impl Future<Output = T>) -> T {
    timeout(PATIENCE, waiting).await.expect("it takes too long")
}

/// A request at the played etcd.
pub(super) struct Arrived {
    pub(super) request: Request<RecvStream>,
    pub(super) respond: SendResponse<Bytes>,
    /// Number of the connection, from 0.
    pub(super) connection: usize,
}

impl Arrived {
    /// Sends the head of a response.
    pub(super) fn begin(&mut self) -> SendStream<Bytes> {
        let head = Response::builder().header("content-type", "application/grpc");
        self.respond.send_response(head.body(()).unwrap(), false).unwrap()
    }

    /// Answers with a message.
    pub(super) fn answer(mut self, content: &'static [u8]) {
        let mut stream = self.begin();
        stream.send_data(Bytes::from_static(content), false).unwrap();
        stream.send_trailers(trailers("0")).unwrap();
    }
}

pub(super) fn trailers(status: &'static str) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", status.parse().unwrap());
    trailers
}

/// An etcd that the test plays.
pub(super) struct PlayedEtcd {
    pub(super) address: SocketAddr,
    arrived: UnboundedReceiver<Arrived>,
    /// Counts up: all connections send GOAWAY.
    goodbye: watch::Sender<u32>,
    task: JoinSet<()>,
}

impl PlayedEtcd {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, arrived) = unbounded_channel();
        let goodbye = watch::Sender::new(0);
        let said = goodbye.clone();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            for number in 0.. {
                let stream = listener.accept().await.unwrap().0;
                connections.spawn(serve(stream, number, sender.clone(), said.subscribe()));
            }
        });
        Self {
            address,
            arrived,
            goodbye,
            task,
        }
    }

    pub(super) async fn next(&mut self) -> Arrived {
        in_time(self.arrived.recv()).await.unwrap()
    }

    /// Whether a request has arrived.
    pub(super) fn has_arrived(&mut self) -> bool {
        !self.arrived.is_empty()
    }

    pub(super) fn says_goodbye(&self) {
        self.goodbye.send_modify(|said| *said += 1);
    }

    /// All connections break, and the address is free.
    pub(super) async fn breaks(&mut self) {
        self.task.shutdown().await;
    }
}

async fn serve(
    stream: TcpStream,
    connection: usize,
    arrived: UnboundedSender<Arrived>,
    mut goodbye: watch::Receiver<u32>,
) {
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(20_000);
    let Ok(mut serving) = builder.handshake(stream).await else {
        return;
    };
    loop {
        tokio::select! {
            accepted = serving.accept() => {
                let Some(Ok((request, respond))) = accepted else { return };
                let _ = arrived.send(Arrived { request, respond, connection });
            }
            Ok(()) = goodbye.changed() => serving.graceful_shutdown(),
        }
    }
}

/// A clock, and the seconds for which the machine was suspended.
fn suspendable_clock() -> (Clock, Arc<AtomicU64>) {
    let suspended = Arc::<AtomicU64>::default();
    let seconds = suspended.clone();
    let clock = Clock::with_suspension(move || Duration::from_secs(seconds.load(Ordering::SeqCst)));
    (clock, suspended)
}

/// A gate before a played etcd.
pub(super) struct World {
    pub(super) issuer: Issuer,
    /// Seconds for which the machine was suspended, by the clock of the permit.
    suspended: Arc<AtomicU64>,
    /// The same by the clock of the list of preparations.
    list_suspended: Arc<AtomicU64>,
    pub(super) etcd: PlayedEtcd,
    pub(super) address: SocketAddr,
    pub(super) traffic: Arc<GateTraffic>,
    pub(super) prepared: Arc<PreparedClients>,
    metrics: Arc<Metrics>,
    pub(super) gate: JoinSet<()>,
}

impl World {
    pub(super) async fn begin() -> Self {
        let etcd = PlayedEtcd::start().await;
        let target = etcd.address;
        Self::before(etcd, target, None).await
    }

    pub(super) async fn before(etcd: PlayedEtcd, target: SocketAddr, tls: Option<GateTlsPaths>) -> Self {
        Self::with_limits(etcd, target, tls, 64, PreparedLimits::default()).await
    }

    /// `most`: connections of clients without certificates of preparations.
    pub(super) async fn with_limits(
        etcd: PlayedEtcd,
        target: SocketAddr,
        tls: Option<GateTlsPaths>,
        most: usize,
        limits: PreparedLimits,
    ) -> Self {
        let metrics = Arc::<Metrics>::default();
        let mut proxy = Http2Proxy::new(target, tls, limits, metrics.gate()).unwrap();
        let (list_clock, list_suspended) = suspendable_clock();
        Arc::get_mut(&mut proxy.prepared).unwrap().use_clock(list_clock);
        let (traffic, prepared) = (proxy.traffic(), proxy.prepared_clients());
        let gate = Gate {
            listen: "127.0.0.1:0".parse().unwrap(),
            target: GateTarget::Etcd(target),
            most,
            http2: Some(Arc::new(proxy)),
            metrics: metrics.gate(),
        };
        let (clock, suspended) = suspendable_clock();
        let until = clock.now() + HOUR;
        let issuer = Issuer::new("a test", clock, until);
        let listener = gate.bind().await.unwrap();
        let address = listener.local_addr().unwrap();
        let permit = issuer.permit();
        let mut running = JoinSet::new();
        running.spawn(async move { gate.forward(listener, &permit).await });
        Self {
            issuer,
            suspended,
            list_suspended,
            etcd,
            address,
            traffic,
            prepared,
            metrics,
            gate: running,
        }
    }

    pub(super) fn suspend(&self) {
        self.suspended.store(3600, Ordering::SeqCst);
    }

    /// The list of preparations ends, and no timer knows of the end.
    pub(super) fn suspend_list(&self) {
        self.list_suspended.store(3600, Ordering::SeqCst);
    }

    pub(super) async fn client(&self) -> Client {
        Client::over(TcpStream::connect(self.address).await.unwrap()).await
    }

    /// Waits for a whole line of the metrics.
    pub(super) async fn shows(&self, line: &str) {
        let seen = async {
            while !self.metrics.text().lines().any(|shown| shown == line) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let seen = timeout(PATIENCE, seen).await;
        assert!(seen.is_ok(), "{line} is not in\n{}", self.metrics.text());
    }
}

/// A client of the gate.
pub(super) struct Client {
    sender: h2::client::SendRequest<Bytes>,
    connection: JoinSet<Result<(), h2::Error>>,
}

/// A request of a client.
pub(super) struct Asked {
    pub(super) response: h2::client::ResponseFuture,
    pub(super) body: SendStream<Bytes>,
}

impl Client {
    pub(super) async fn over<S>(stream: S) -> Self
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = h2::client::Builder::new();
        // The budget of h2 for small frames grows with this window.
        builder.initial_connection_window_size(16 << 20);
        Self::with_builder(&builder, stream).await
    }

    pub(super) async fn with_builder<S>(builder: &h2::client::Builder, stream: S) -> Self
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, serving) = builder.handshake(stream).await.unwrap();
        let mut connection = JoinSet::new();
        connection.spawn(serving);
        Self { sender, connection }
    }

    /// Begins a request.
    pub(super) async fn ask(&self, path: &str) -> Asked {
        let request = Request::post(format!("http://etcd{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        self.send(request.body(()).unwrap()).await
    }

    pub(super) async fn send(&self, request: Request<()>) -> Asked {
        let mut sender = in_time(self.sender.clone().ready()).await.unwrap();
        let (response, body) = sender.send_request(request, false).unwrap();
        Asked { response, body }
    }

    /// Sends a request with its message.
    pub(super) async fn call(&self, path: &str) -> Asked {
        let mut asked = self.ask(path).await;
        asked
            .body
            .send_data(Bytes::from_static(b"question"), true)
            .unwrap();
        asked
    }

    /// Ends the connection without a word.
    pub(super) async fn vanish(mut self) {
        self.connection.shutdown().await;
    }

    pub(super) async fn end(&mut self) -> Result<(), h2::Error> {
        in_time(self.connection.join_next()).await.unwrap().unwrap()
    }
}

/// Content and `grpc-status` of a response.
pub(super) async fn read(response: Response<RecvStream>) -> (Vec<u8>, String) {
    let status = response.headers().get("grpc-status").cloned();
    let mut body = response.into_body();
    let content = content(&mut body).await;
    let trailers = in_time(body.trailers()).await.unwrap();
    let status = trailers
        .and_then(|trailers| trailers.get("grpc-status").cloned())
        .or(status);
    (content, status.unwrap().to_str().unwrap().to_owned())
}

pub(super) async fn content(body: &mut RecvStream) -> Vec<u8> {
    let mut content = Vec::new();
    while let Some(chunk) = in_time(body.data()).await {
        let chunk = chunk.unwrap();
        body.flow_control().release_capacity(chunk.len()).unwrap();
        content.extend(chunk);
    }
    content
}

/// Sends as the receiver takes the content; returns the number of sent bytes, once the receiver takes none.
pub(super) async fn send_until_stopped(stream: &mut SendStream<Bytes>) -> usize {
    const PIECE: usize = 16 << 10;
    let (mut sent, mut stops) = (0, 0);
    loop {
        stream.reserve_capacity(PIECE);
        let capacity = std::future::poll_fn(|context| stream.poll_capacity(context));
        match timeout(Duration::from_millis(300), capacity).await {
            // The first may be a pause of the machine. The tasks of this thread run between the two.
            Err(_) if stops == 1 => return sent,
            Err(_) => stops += 1,
            Ok(capacity) => {
                stops = 0;
                let capacity = capacity.unwrap().unwrap().min(PIECE);
                stream.send_data(vec![0; capacity].into(), false).unwrap();
                sent += capacity;
            }
        }
    }
}
