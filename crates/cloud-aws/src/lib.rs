//! An account of AWS as a library: the network of a shoot, its machines, zones of it that are closed, and
//! below them the few calls of EC2's Query API that this takes, each typed where it is used.
//!
//! | module | what |
//! |---|---|
//! | [`access`] | connections and paces that all clients of a process share |
//! | [`client`] | signs, sends, reads; waits where EC2 throttles; repeats calls that only read |
//! | [`call`] | one call: its action and parameters |
//! | [`refusal`] | what EC2 says no by, and who has to act then |
//! | [`tags`] | how things of a cluster are found again |
//! | [`zones`], [`network`], [`routing`], [`acls`], [`instances`] | the calls |
//! | [`termination`] | how an instance is asked to end, and how a hanging end is forced |
//! | [`identity`] | the account of the keys, compared before an object counts as gone |
//! | [`infrastructure`] | makes and removes all that one shoot has but its machines |
//! | [`machines`] | makes, finds and removes those |
//! | [`isolation`] | closes and opens a zone of it |
//!
//! Promises
//! - A request leaves only under the permit that the client was made with (I3), and one that is under way is
//!   finished before the right is passed on.
//! - No message holds a key of the account.
//! - A call that changes something is only repeated where EC2 has said that it did nothing of it
//!   (throttling). Whether a call whose answer was lost has been carried out is for the caller to look up, by
//!   tags.
//! - The keys of an account come from its Secret alone. No call goes to the metadata service of the seed's
//!   instances.

pub mod access;
mod account;
pub mod acls;
pub mod call;
pub mod client;
pub mod disks;
pub mod identity;
pub mod infrastructure;
pub mod instances;
pub mod isolation;
pub mod machines;
pub mod network;
mod pace;
pub mod refusal;
pub mod routing;
mod skew;
pub mod tags;
pub mod termination;
mod token;
pub mod zones;

pub use access::Ec2Access;
pub use call::Call;
pub use client::Ec2;
pub use refusal::{Answer, Failed};
pub use tags::{Items, Owned, Tag, Tagged};
