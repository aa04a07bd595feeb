//! The network of pods on machines of the local cloud: an agent on each machine.
//!
//! A machine reaches further machines by their node addresses and shares no link, so packets between pods go
//! through VXLAN. An agent needs the range of pod addresses and the address of each machine, and both are in
//! the Node. The hardware address of a VXLAN device is derived from the machine's address
//! ([`plan::hardware_address`]). So agents exchange no messages and write nothing to the API.
//!
//! | topic | module |
//! |---|---|
//! | the machines | [`runtime::client::informer`] and [`fleet`], from a watch of Nodes |
//! | the plan for this machine | [`plan`] |
//! | the required changes | [`diff`] |
//! | the reconcile loop | [`agent`] |
//! | the VXLAN device, routes, neighbours, forwarding, masquerading | [`kernel`], by netlink |
//! | the file by which containerd connects pods | [`conflist`] |
//!
//! Promises
//! - Only a complete list of Nodes counts. While the API does not answer, the network stays unchanged: pods
//!   do not notice a move of the control plane (I4).
//! - Correct entries are not touched, so pods do not notice a restart of the agent either. The agent removes
//!   no entry at shutdown.
//! - Entries without a Node are removed.

pub mod agent;
pub mod conflist;
pub mod diff;
pub mod fleet;
pub mod kernel;
pub mod plan;
