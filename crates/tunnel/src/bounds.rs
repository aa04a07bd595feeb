//! All bounds in one place: what a peer may take, and for how long it is waited.

use std::time::Duration;

/// What an agent offers in TLS, and the seed's front looks for: it tells an agent from a user of the API.
pub const PROTOCOL: &[u8] = b"repot-tunnel";

/// Connections through one agent. More than a busy API server has to its kubelets (it keeps one or two to
/// each, and one for each `exec` and `logs -f`); each may take [`WINDOW`] of memory when nobody reads.
pub const STREAMS: u32 = 512;
/// What may be on its way in one connection. More would only be memory: 128 KiB in 20 ms are 6 MiB/s.
pub const WINDOW: u32 = 128 * 1024;
/// What may be on its way in all connections of an agent: as much as all of them may have, so that one that
/// nobody reads never stops the others.
pub const SHARED_WINDOW: u32 = STREAMS * WINDOW;
/// What is read at once, in each direction.
pub const BUFFER: usize = 16 * 1024;
/// What waits to be sent of one connection.
pub const SEND_BUFFER: usize = 64 * 1024;
/// Headers of a request. A target is a name of 253 letters at most and a port.
pub const HEADERS: usize = 8 * 1024;
/// Agents of one shoot. More than a Deployment makes, also while it is rolled out and the former ones are not
/// missed yet.
pub const AGENTS: usize = 16;
/// Handshakes at the same time, at each door.
pub const HANDSHAKES: usize = 64;

/// A handshake, from the first byte to the peer's certificate, and the first words after it. Longer than four
/// ways through a slow network; an attacker holds a place for no longer.
pub const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long a connection waits for an agent where there is none: as long as one needs to come back after a
/// hiccup, and shorter than a webhook's shortest sensible timeout.
pub const WAIT_FOR_AGENT: Duration = Duration::from_secs(2);
/// How long an agent tries to reach a target. Longer than three attempts of the kernel (1 s, 2 s), shorter
/// than what the API server waits for.
pub const DIAL: Duration = Duration::from_secs(5);
/// How long the server waits for an agent's answer: an agent that is stuck must not hold a request for
/// longer.
pub const ANSWER: Duration = Duration::from_secs(8);
/// How often each side asks whether the other is there, and how long it waits for the answer: a node without
/// power is missed after 15 s.
pub const ALIVE_EVERY: Duration = Duration::from_secs(10);
/// See [`ALIVE_EVERY`].
pub const ALIVE_WITHIN: Duration = Duration::from_secs(5);
/// A connection in which nothing moves. As long as the seed's front lets a silent connection of a user live,
/// so that this is never what cuts off `kubectl logs -f`.
pub const IDLE: Duration = Duration::from_secs(65 * 60);
/// Pause of an agent after a first failure; it doubles up to [`LONGEST_PAUSE`].
pub const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Shorter than a move may keep nodes waiting, longer than what a front minds.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often an agent looks whether the API's name still leads to where it is connected.
pub const LOOK_UP_EVERY: Duration = Duration::from_secs(5);
/// After so many looks that say otherwise it goes to where the name leads. More than one: an answer may be a
/// mistake.
pub const LOOK_UPS: u32 = 3;

/// Connections through the proxy of a node. A node has some hundred pods, and a client of Go or Rust one or
/// two connections; each takes two [`BUFFER`]s and what the kernel holds.
pub const CONNECTIONS: usize = 1024;
/// Connections of one address, so that one pod does not take them all.
pub const CONNECTIONS_OF_ONE: usize = 256;
/// Ways to the front that are tried at the same time.
pub const DIALS: usize = 64;
/// How long one of the front's addresses is tried: one that does not answer must leave time for the next,
/// within [`DIAL`].
pub const DIAL_ONE: Duration = Duration::from_secs(2);
/// A peer that has said nothing for so long is asked whether it is there.
pub const PROBE_AFTER: Duration = Duration::from_secs(10);
/// How often it is asked, and it is missed after [`PROBES`] without an answer.
pub const PROBE_EVERY: Duration = Duration::from_secs(5);
/// See [`PROBE_EVERY`].
pub const PROBES: u32 = 3;
/// What was sent and is not acknowledged for so long breaks a connection off, as above: a watch must not hang
/// on a seed that died.
pub const UNHEARD: Duration = Duration::from_secs(25);
/// A connection of which one side has said all, and the other one says nothing. As the seed's front has it:
/// without it a pod that never closes its side would keep its seat.
pub const HALF_OPEN: Duration = Duration::from_secs(30);
/// Pause before an address that somebody takes away is put back again.
pub const HOLD_AGAIN: Duration = Duration::from_millis(250);
