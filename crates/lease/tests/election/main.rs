//! The election on a real API server: what one elector does, and that several processes never act at once.

#![allow(clippy::unwrap_used, clippy::panic)]

mod acts;
mod behaviour;
mod candidate;
mod outages;
mod processes;
mod rights;
mod world;
