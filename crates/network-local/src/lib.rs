//! The network of pods on machines of the local cloud: an agent on each machine.
//!
//! A machine reaches the others by their node addresses and has no link in common with them, so packets
//! between pods go through VXLAN. What an agent has to know of another machine is its range of pod addresses
//! and its address, and both stand in the Node. The hardware address of its VXLAN device follows from its
//! address ([`plan::hardware_address`]), so agents tell each other nothing and write nothing to the API.
//!
//! | what | where |
//! |---|---|
//! | which machines there are | [`runtime::follow`] and [`fleet`], from a watch of Nodes |
//! | what follows for this machine | [`plan`] |
//! | what has to be changed for it | [`diff`] |
//! | that it is made so | [`agent`] |
//! | the VXLAN device, routes, neighbours, forwarding, masquerading | [`kernel`], by netlink |
//! | the file by which containerd connects pods | [`conflist`] |
//!
//! Promises
//! - Only a complete list of Nodes counts. While the API does not answer, nothing is changed: a move of the
//!   control plane is not noticed by pods (I4).
//! - What is there and right is not touched, so a restart of the agent is not noticed either. Nothing is
//!   taken away at its end.
//! - What no Node stands for any more is taken away.

pub mod agent;
pub mod conflist;
pub mod diff;
pub mod fleet;
pub mod kernel;
pub mod plan;
