//! Closes zones on a host of the local cloud. Each host of the cluster that simulates the cloud has an agent.
//! The agent follows the orders of accounts (`cloud_local::isolation`) and the machines of the host. The
//! agent drops all packets from and to the machines of a closed zone.
//!
//! Promises:
//! - **Both directions, at once, all packets of the machine**: a packet is dropped by the link from or to the
//!   machine, before connection tracking. So established flows end too. The rule covers pods on the machine,
//!   IPv4 and IPv6, and packets that the host sends to the machine.
//! - **No further packets**: links of further machines, clusters and zones are in no rule. The kernel does
//!   not reuse a link index while the host runs, so a late rule drops no packet of a later machine.
//! - **Only the state of the kernel is confirmed.** A refusal or an unknown state is not confirmed, and an
//!   earlier confirmation is withdrawn.
//! - Rules stay when the agent ends. After a restart of the host, the rules are written again before any
//!   confirmation. The rules end with the object that ordered the rules.
//! - Incomplete lists and invalid objects change nothing (I4).
//!
//! A limit: a machine that starts in a closed zone exchanges packets for a moment. The moment lasts from the
//! creation of the link until the host has reported the address and the agent has read the report. A real
//! access list exists before any machine.

pub mod agent;
pub mod kernel;
pub mod plan;
