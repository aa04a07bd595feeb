//! Development only: EC2 for tests of crates that call EC2. EC2 is simulated by moto, behind a proxy that
//! injects faults.

#![allow(clippy::must_use_candidate)] // only tests use this crate

pub mod answers;
pub mod keys;
pub mod policy;
pub mod proxy;
pub mod region;
