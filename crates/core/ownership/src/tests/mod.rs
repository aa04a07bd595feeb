//! Tables of the pure functions, and permits on paused time.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::unchecked_time_subtraction,
    clippy::indexing_slicing
)]

mod dns_verdict;
mod judgement;
mod overrides;
mod protocol;
mod question;
mod record_verdict;
mod reply;
mod settings;
mod sidecar_state;
mod tracker;
mod watch;

use hickory_proto::rr::Name;

use crate::OwnershipClaim;

/// The claim of these tests: seed-a, epoch 3.
fn claim() -> OwnershipClaim {
    OwnershipClaim::new("owner.demo.dev.internal.example", "seed-a", 3).unwrap()
}

fn name(text: &str) -> Name {
    let mut name = Name::from_ascii(text).unwrap();
    name.set_fqdn(true);
    name
}
