//! An account of AWS as a library: the network of a shoot, machines and closed zones. Below these parts are
//! the few calls of EC2's Query API that the library needs, each typed in the module that uses the call.
//!
//! | module | purpose |
//! |---|---|
//! | [`access`] | connections and paces that all clients of a process share |
//! | [`client`] | signs, sends, reads; waits where EC2 throttles; repeats calls that only read |
//! | [`call`] | a call with an action and parameters |
//! | `account`, `pace` | the keys of an account, and the pace of all calls of the account |
//! | `skew`, `token` | a wrong clock, and client tokens |
//! | [`refusal`] | the refusals of EC2, and the party that has to act |
//! | [`tags`] | the tags by which a seed finds the objects of a cluster |
//! | [`zones`], [`network`], [`routing`], [`acls`], [`instances`] | the calls |
//! | [`termination`] | how an instance is asked to end, and how a hanging end is forced |
//! | [`identity`] | the account of the keys, compared before an object counts as gone |
//! | [`infrastructure`] | makes and removes all parts of a shoot without the machines |
//! | [`machines`], `disks` | makes, finds and removes machines; the disks of an image |
//! | [`isolation`] | closes and opens a zone of a shoot |
//!
//! Promises
//! - A request leaves only under the permit of the client (I3). A request under way is finished before the
//!   permit is passed on.
//! - No message holds a key of the account.
//! - A call that changes an object is only repeated where EC2 has reported that the call had no effect
//!   (throttling). After a lost answer the caller looks up by tags whether the call was carried out.
//! - The keys of an account come from the Secret of the account alone. No call goes to the metadata service
//!   of the seed's instances.

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
