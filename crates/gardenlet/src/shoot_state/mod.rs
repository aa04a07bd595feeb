//! Keeps the ShootStates of this seed's shoots up to date, so that the garden always holds what a dead seed
//! would take with it (R7-42).
//!
//! It is driven by changes: of extension objects, of machines, and of Secrets that are carried, of which it
//! watches metadata only. Changes are gathered for some seconds (`debounce`), then one look at the shoot's
//! namespace is written, if anything in it is new (`parts::ShootState::sync`). Promises: only of shoots that
//! this seed has; the keys of a new one before it has data (R7-40), and all of it when it is created, without
//! a pause; never while a move, a restore or a deletion runs, whose flows write the ShootState themselves;
//! the age is told, as constraint `ShootStateUpToDate` of the Shoot and as metric
//! `shoot_state_synced_timestamp_seconds`.

mod changes;
mod controller;
mod debounce;
mod duty;
mod gauge;

pub use controller::run;
