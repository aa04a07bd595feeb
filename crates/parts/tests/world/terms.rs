//! Bounds of the owner check for tests, of this package and of the drill.

use std::time::Duration;

use anyhow::Result;
use ownership::{Settings, Terms};

/// Bounds that fit together, and a fence that can be waited for again and again.
pub fn short() -> Result<Terms> {
    answered_within(Duration::from_millis(20))
}

/// The same in proportion to how long an answer is waited for.
pub fn answered_within(short: Duration) -> Result<Terms> {
    Ok(Terms::new(Settings {
        interval: short * 3,
        attempt: short,
        second_witness: short,
        validity: short * 9,
        requests: short,
        propagation: Duration::ZERO,
        pause: Duration::ZERO,
        fence: short * 25,
        ..Settings::default()
    })?)
}
