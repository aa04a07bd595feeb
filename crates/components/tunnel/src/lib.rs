//! The tunnel from a shoot's API server to the shoot's nodes, pods and Services, for seeds without a route to
//! these addresses (RX-34). The API server uses the tunnel by HTTP CONNECT (EgressSelector).
//!
//! ```text
//! kube-apiserver --CONNECT, TLS--> server <==one TLS connection== agent --TCP--> kubelet, pod, Service
//!     (seed)                       (seed)   dialled by the agent   (shoot)
//!                                         through the seed's edge
//! ```
//!
//! The agent dials, but the server sends the requests. On the agent's connection, the agent is the *server*
//! of HTTP/2, and every stream is a CONNECT of the tunnel server. So a stream can only begin in the seed; an
//! agent has no message for a request.
//!
//! | topic | module |
//! |---|---|
//! | certificates of the shoot's authority for tunnels | [`tls`] |
//! | admission of peers | [`door`] |
//! | connected agents, and the choice of the agent for a request | [`server::agents`], [`server::choose`] |
//! | requests of kube-apiserver | [`server::front`] |
//! | the agent's connection | [`agent`] |
//! | allowed targets of an agent | [`agent::reach`] |
//! | bytes in both directions, headers between server and agents | [`pipe`], [`headers`] |
//! | the reverse direction: from pods to the API server | [`api_proxy`] |
//!
//! Promises
//! - Only the shoot's own kube-apiserver opens connections, and only the shoot's own agents carry
//!   connections. Each peer needs a certificate of the shoot's authority for tunnels with the peer's name.
//! - Each wait has a limit ([`limits`]), and so have memory, connections and headers.
//! - An open connection is never moved to a second agent. A connection that could not be opened is tried with
//!   the next agent.
//! - The agents do not depend on the seed. After a move, the agents find the new seed by the API's name, with
//!   the same keys.

pub mod agent;
pub mod api_proxy;
pub mod door;
pub mod headers;
pub mod limits;
pub mod pipe;
pub mod server;
pub mod tls;
