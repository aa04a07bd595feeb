//! Closes zones on a host of the local cloud. Each host of the cluster that plays the cloud has one agent,
//! which follows what accounts want closed (`cloud_local::isolation`) and which machines are on its host, and
//! drops what the machines of a closed zone send and what is sent to them.
//!
//! Promises:
//! - **Both ways, at once, everything of the machine**: a packet is dropped by the link by which it comes
//!   from the machine or goes to it, before connections are looked at. So established flows end too, pods on
//!   the machine are caught like the machine, and IPv4 like IPv6. What the host itself sends to the machine
//!   is dropped as well.
//! - **Nothing else**: links of other machines, of other clusters and of other zones are in no rule. A link's
//!   index is not given out again while the host runs, so a rule that is late by a moment drops nothing of a
//!   later machine.
//! - **It confirms only what the kernel has.** What the kernel refuses, or what cannot be found out, is not
//!   confirmed, and what was confirmed before is taken back.
//! - Rules stay when the agent ends, and are made anew after the host was started anew, before anything is
//!   confirmed again. They go with the object that wanted them.
//! - Lists that have not been read, and objects that cannot be read, change nothing (I4).
//!
//! What it cannot do: a machine that starts in a closed zone exchanges packets from when its link is made
//! until its host has told its address and the agent has heard of it. A real access list is there before any
//! machine.

pub mod agent;
pub mod kernel;
pub mod plan;
