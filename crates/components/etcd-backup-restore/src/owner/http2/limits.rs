//! The limits of connections, streams, headers and buffers.
//!
//! The gate answers pings of clients itself, so that these pings do not find an etcd that hangs. For this the
//! gate pings etcd. Clients get no pings: the kernel's keepalive probes detect a client that is gone.

use super::tasks::TaskAdder;
use hyper::{client, server};
use hyper_util::rt::TokioTimer;
use std::time::Duration;

/// Bound of a TLS handshake: a client that sends nothing does not keep its place among the connections.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);

/// The limits of a connection that depend on the client.
pub(super) struct ConnectionLimits {
    /// Streams of a client at a time.
    streams: u32,
    /// Bytes of a stream that the gate takes from the sender, in each direction, while the receiver takes
    /// none.
    window: u32,
    /// The same for all streams of a connection together.
    shared_window: u32,
}

/// Of the processes of this seed. etcd has no limit of streams; a kube-apiserver has at most some 1,000
/// requests under way. A client that waits for a free stream behind its own watches would wait for ever. A
/// smaller window makes the sender of a large range wait for the gate. Streams that stand still must not stop
/// the other streams: 32 of them fill the shared window.
pub(super) static OWN: ConnectionLimits = ConnectionLimits {
    streams: 10_000,
    window: 1 << 20,
    shared_window: 32 << 20,
};

/// Of a preparation: the windows of all connections of the default share take at most 1 GiB, and the buffers
/// before the sockets 0.5 GiB. Up to three streams that stand still do not stop the other streams of the
/// connection.
pub(super) static PREPARED: ConnectionLimits = ConnectionLimits {
    streams: 1_000,
    window: 256 << 10,
    shared_window: 1 << 20,
};

/// Bytes of a stream that wait for the socket of the receiver.
const SEND_BUFFER: usize = 256 << 10;

/// Bytes of the headers of a request or response. etcd's errors are in headers too.
const HEADERS: u32 = 64 << 10;

/// Bytes of a frame, the default of HTTP/2. Clients of etcd never use larger frames.
const FRAME: u32 = 16 << 10;

/// Streams that were reset before the gate has begun with them. More end the connection: a flood of opened
/// and reset streams costs the client next to nothing.
const RESET_AT_ONCE: usize = 1_000;

/// Silence of etcd before a ping, while a request is under way: as kube-apiserver pings etcd. etcd closes a
/// connection that pings more often than each five seconds, or that pings without a request.
const PING_AFTER: Duration = Duration::from_secs(30);

/// Bound of the answer to a ping, also that of kube-apiserver. etcd answers while the disk stands still.
const PING_ANSWER: Duration = Duration::from_secs(10);

/// The gate's side of a client's connection.
pub(super) fn of_client(
    tasks: TaskAdder,
    limits: &ConnectionLimits,
) -> server::conn::http2::Builder<TaskAdder> {
    let mut builder = server::conn::http2::Builder::new(tasks);
    builder
        .max_concurrent_streams(limits.streams)
        .initial_stream_window_size(limits.window)
        .initial_connection_window_size(limits.shared_window)
        .max_send_buf_size(SEND_BUFFER)
        .max_frame_size(FRAME)
        .max_header_list_size(HEADERS)
        .max_pending_accept_reset_streams(RESET_AT_ONCE)
        // Counted over the life of a connection, which may be months.
        .max_local_error_reset_streams(None::<usize>)
        // Headers of etcd pass unchanged.
        .auto_date_header(false);
    builder
}

/// The gate's side of a connection to etcd.
pub(super) fn of_etcd(
    tasks: TaskAdder,
    limits: &ConnectionLimits,
) -> client::conn::http2::Builder<TaskAdder> {
    let streams = limits.streams as usize;
    let mut builder = client::conn::http2::Builder::new(tasks);
    builder
        .initial_max_send_streams(streams)
        .initial_stream_window_size(limits.window)
        .initial_connection_window_size(limits.shared_window)
        .max_send_buf_size(SEND_BUFFER)
        .max_frame_size(FRAME)
        .max_header_list_size(HEADERS)
        // Streams that the gate has reset, and for which responses are expected still.
        .max_concurrent_reset_streams(streams)
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_AFTER)
        .keep_alive_timeout(PING_ANSWER)
        .max_local_error_reset_streams(None::<usize>);
    builder
}
