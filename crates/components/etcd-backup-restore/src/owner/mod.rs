//! The owner check: asks for the owner of the shoot while etcd serves (R17-13, R17-14, R17-40..49;
//! docs/understand/ownership.md describes the protocol).
//!
//! Off unless its flags are given. With the flags etcd listens on loopback and clients pass the gate in this
//! process.
//!
//! Guarantees
//! - No byte passes the gate, in either direction, without a valid permit of ownership at that moment: also
//!   in a process that was stopped and resumed.
//! - A lost epoch stays shut: the seal is on the disk before the final snapshot begins, and no restart opens
//!   the gate again in that epoch.
//! - Shutting the gate and the 503 of `/readyz` wait for neither bucket nor disk (R17-44).
//!
//! | the owner | etcd gets SIGTERM |
//! |---|---|
//! | is unconfirmed | at once |
//! | has changed, and both seals are written within the fence | after the final snapshot, or ten minutes |
//! | has changed, and a seal is not written within the fence | at the end of the fence |
//!
//! | file | content |
//! |---|---|
//! | `flags` | the command line, validated |
//! | `ownership_controller` | runs the check, and acts on the result (`next_state` of `ownership`) |
//! | `sealing` | the steps after a loss |
//! | `gate`, `peer`, `pipe` | the path of clients to etcd |
//! | `http2` | the gate as a proxy for HTTP/2 |
//! | `events` | the etcd with the Events, behind a second gate |
//! | `marker` | the seal on the volume |
//! | `witness` | the bucket as second witness |
//! | `etcd_process` | SIGTERM to etcd |
//! | `status` | the state that probes and the relay read |

mod etcd_process;
mod events;
mod flags;
mod gate;
mod http2;
mod marker;
mod ownership_controller;
mod peer;
mod pipe;
mod sealing;
mod status;
mod witness;

pub use events::EventsTarget;
pub use flags::{OwnerArgs, OwnerCheck};
pub use gate::{Gate, GateTarget};
pub use http2::{
    GateProtocol, GateTlsPaths, GateTraffic, Http2GateArgs, Http2Proxy, PreparedClients, PreparedLimits,
    PreparedRefusal, RequestClass,
};
pub use marker::Marker;
pub use ownership_controller::{CurrentSnapshotter, OwnershipController, SettingsUnder};
pub use status::OwnershipStatus;
