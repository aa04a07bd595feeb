//! Bounds of the owner check for tests, of this package and of the drill.

use std::time::Duration;

use anyhow::Result;
use ownership::{Settings, Terms};

/// Bounds that fit together, and a fence that can be waited for again and again.
pub fn short() -> Result<Terms> {
    let short = Duration::from_millis(20);
    Ok(Terms::new(Settings {
        interval: short * 3,
        attempt: short,
        second_witness: short,
        validity: short * 9,
        requests: short,
        propagation: Duration::ZERO,
        fence: Duration::from_millis(500),
        ..Settings::default()
    })?)
}
