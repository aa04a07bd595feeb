//! The real binary against a real etcd, etcdutl and an S3 protocol server.
//!
//! `make tools` puts the programs into the folder that `REPOT_BIN` names.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod conflicts;
mod copy;
mod credentials;
mod deltas;
mod epoch;
mod events_history;
mod evidence;
mod final_snapshot;
mod follow;
mod follow_faults;
mod follow_rate;
mod follow_shapes;
mod foreign_keys;
mod gate_cost;
mod http2_gate;
mod lab;
mod memory;
mod mutations;
mod no_space;
mod owner;
mod owner_cut_off;
mod owner_deleted;
mod owner_events;
mod owner_log;
mod owner_silent;
mod owner_stopped;
mod permit;
mod prepared_gate;
mod proxy;
mod restore;
mod restore_refused;
mod resume;
mod returned;
mod seal_order;
mod takeover;
mod taking;
mod tls;
mod versions;
mod volume_loss;
mod watches;
mod web_identity;
