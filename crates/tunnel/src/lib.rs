//! The way from a shoot's API server to its nodes, pods and Services where the seed has no road to them
//! (RX-34 of the landscape; the API server's EgressSelector asks for it by HTTP CONNECT).
//!
//! ```text
//! kube-apiserver --CONNECT, TLS--> server <==one TLS connection, dialled by the agent== agent --TCP--> kubelet, pod, Service
//!    (seed)                        (seed)            through the seed's front            (shoot)
//! ```
//!
//! The agent dials and is asked: on its connection it is the *server* of HTTP/2, and every stream is a
//! CONNECT of ours. So a stream can only begin in the seed; there is no message by which an agent could ask
//! for anything.
//!
//! | what | where |
//! |---|---|
//! | who is who: certificates of the shoot's own authority | [`tls`] |
//! | who is let in | [`door`] |
//! | which agents there are, and which one is asked | [`server::agents`], [`server::choose`] |
//! | what kube-apiserver asks | [`server::front`] |
//! | how an agent keeps its connection | [`agent`] |
//! | where an agent goes and where not | [`agent::reach`] |
//! | bytes in both directions | [`pipe`] |
//! | the other way round: from pods to the API server | [`api_proxy`] |
//!
//! Promises
//! - Only the shoot's own kube-apiserver opens connections, only the shoot's own agents carry them: each by a
//!   certificate of the shoot's authority for tunnels that names it.
//! - Each wait has a bound ([`bounds`]), and so have memory, connections and headers.
//! - A connection that was opened is never moved to another agent; one that could not be opened is tried with
//!   the next.
//! - Nothing here depends on the seed: after a move agents find the new one by the API's name, with the keys
//!   they have.

pub mod agent;
pub mod api_proxy;
pub mod bounds;
pub mod door;
pub mod pipe;
pub mod server;
pub mod tls;
pub mod words;
