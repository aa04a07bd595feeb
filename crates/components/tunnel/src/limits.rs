//! All limits in one place: the resources and the time that a peer may take. No flag changes these limits.
//!
//! | limits | used by |
//! |---|---|
//! | `STREAMS` to `HANDSHAKES` | bytes and connections of server and agent |
//! | `HANDSHAKE` to `IDLE` | waits of server and agent |
//! | `FIRST_PAUSE`, `LONGEST_PAUSE` | the back-off of an agent; the first also the pause of both listeners |
//! | `LOOK_UP_EVERY`, `LOOK_UPS` | when an agent follows the name of the API |
//! | `CONNECTIONS` to `HOLD_AGAIN` | the proxy on a machine (`api_proxy`) |

use std::time::Duration;

/// The ALPN protocol of an agent. The seed's edge uses the protocol to tell an agent from a user of the API.
pub const PROTOCOL: &[u8] = b"repot-tunnel";

/// Connections through an agent. More than a busy API server has to the kubelets: 1 or 2 per kubelet, and 1
/// for each `exec` and `logs -f`. Each connection may take [`WINDOW`] bytes of memory while the peer does not
/// read.
pub const STREAMS: u32 = 512;
/// Bytes under way in a connection. A larger window would only cost memory: 128 KiB in 20 ms are 6 MiB/s.
pub const WINDOW: u32 = 128 * 1024;
/// Bytes under way in all connections of an agent: the sum over all connections, so that a connection without
/// a reader never stops the rest.
pub const SHARED_WINDOW: u32 = STREAMS * WINDOW;
/// Bytes per read, in each direction.
pub const BUFFER: usize = 16 * 1024;
/// Bytes of a connection that wait to be sent.
pub const SEND_BUFFER: usize = 64 * 1024;
/// Headers of a request. A target is a name of 253 letters at most and a port.
pub const HEADERS: usize = 8 * 1024;
/// Agents of a shoot. More than a Deployment creates, including a rollout while the server still lists the
/// former agents.
pub const AGENTS: usize = 16;
/// Concurrent handshakes at each listener.
pub const HANDSHAKES: usize = 64;

/// Timeout of a handshake, from the first byte to the peer's certificate, and of the first request after the
/// handshake. Longer than four round trips in a slow network. An attacker occupies a place no longer than
/// this.
pub const HANDSHAKE: Duration = Duration::from_secs(5);
/// Wait of a connection while no agent is connected. Long enough for an agent to reconnect after a hiccup,
/// and shorter than the shortest sensible timeout of a webhook.
pub const WAIT_FOR_AGENT: Duration = Duration::from_secs(2);
/// Timeout of an agent for dialling a target. Longer than three attempts of the kernel (1 s, 2 s), shorter
/// than the timeout of the API server.
pub const DIAL: Duration = Duration::from_secs(5);
/// How long the server waits for an agent's answer: an agent that is stuck must not hold a request for
/// longer.
pub const ANSWER: Duration = Duration::from_secs(8);
/// Interval of the pings of each side. With the timeout [`ALIVE_WITHIN`], a node without power is detected
/// after 15 s.
pub const ALIVE_EVERY: Duration = Duration::from_secs(10);
/// See [`ALIVE_EVERY`].
pub const ALIVE_WITHIN: Duration = Duration::from_secs(5);
/// Timeout of a connection without traffic. Equal to the timeout of the seed's edge for a silent user
/// connection (`charts/seed/files/haproxy.cfg`), so that the tunnel never cuts off `kubectl logs -f` first.
pub const IDLE: Duration = Duration::from_secs(65 * 60);
/// Pause of an agent after the first failure; doubles up to [`LONGEST_PAUSE`]. The listeners of the server
/// and of the proxy of a machine make the same pause after a failed accept.
pub const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Longest pause of an agent. Shorter than the time that nodes may wait during a move, long enough to spare
/// the edge. A connection that lasted longer ends the back-off: the next pause is [`FIRST_PAUSE`].
pub const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Interval in which an agent checks whether the API's name still leads to the connected address.
pub const LOOK_UP_EVERY: Duration = Duration::from_secs(5);
/// Number of consecutive different answers before an agent follows the name. More than 1, because a single
/// answer may be a mistake.
pub const LOOK_UPS: u32 = 3;

/// Connections through the proxy of a node. A node has some hundred pods, and a client of Go or Rust has 1 or
/// 2 connections. Each connection takes two [`BUFFER`]s and the buffers of the kernel.
pub const CONNECTIONS: usize = 1024;
/// Connections per pod address, so that a single pod cannot take all connections.
pub const CONNECTIONS_OF_ONE: usize = 256;
/// Concurrent dials of the edge.
pub const DIALS: usize = 64;
/// Timeout for an address of the edge: an address without an answer must leave time for the next address,
/// within [`DIAL`].
pub const DIAL_ONE: Duration = Duration::from_secs(2);
/// Idle time of a connection before the first keep-alive probe.
pub const PROBE_AFTER: Duration = Duration::from_secs(10);
/// Interval of keep-alive probes. The peer is declared dead after [`PROBES`] probes without an answer.
pub const PROBE_EVERY: Duration = Duration::from_secs(5);
/// See [`PROBE_EVERY`].
pub const PROBES: u32 = 3;
/// Unacknowledged data of this age ends the connection, like unanswered probes: a watch must not hang on a
/// dead seed.
pub const UNHEARD: Duration = Duration::from_secs(25);
/// Timeout of a connection whose one direction is closed while the reverse direction is silent. Equal to the
/// timeout of the seed's edge. Without this limit, a pod that never closes the connection would keep the
/// place.
pub const HALF_OPEN: Duration = Duration::from_secs(30);
/// Pause before a removed address is added again.
pub const HOLD_AGAIN: Duration = Duration::from_millis(250);
