//! The election on a real API server: the behaviour of a single elector, and several processes that never act
//! at once.

#![allow(clippy::unwrap_used, clippy::panic)]

mod acts;
mod behaviour;
mod candidate;
mod outages;
mod processes;
mod rights;
mod world;
