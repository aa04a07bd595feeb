//! An account of AWS as a library: the network of a shoot, its machines, zones of it that are closed, and below them the few calls of
//! EC2's Query API that this takes, each typed where it is used.
//!
//! | module | what |
//! |---|---|
//! | [`client`] | signs, sends, reads; waits where EC2 throttles |
//! | [`call`] | one call: its action and parameters |
//! | [`refusal`] | what EC2 says no by, and who has to act then |
//! | [`tags`] | how things of a cluster are found again |
//! | [`zones`], [`network`], [`routing`], [`acls`], [`instances`] | the calls |
//! | [`infrastructure`] | makes and removes all that one shoot has but its machines |
//! | [`machines`] | makes, finds and removes those |
//! | [`isolation`] | closes and opens a zone of it |
//!
//! Promises
//! - A request leaves only under the permit that the client was made with (I3), and one that is under way is finished before
//!   the right is passed on.
//! - No message holds a key of the account.
//! - A call is never repeated by itself but where EC2 has said that it did nothing of it (throttling). Whether a call whose answer
//!   was lost has been carried out is for the caller to look up, by tags.

pub mod acls;
pub mod call;
pub mod client;
pub mod infrastructure;
pub mod instances;
pub mod isolation;
pub mod machines;
pub mod network;
pub mod refusal;
pub mod routing;
pub mod tags;
mod token;
pub mod zones;

pub use call::Call;
pub use client::Ec2;
pub use refusal::{Answer, Failed};
pub use tags::{Items, Owned, Tag, Tagged};
