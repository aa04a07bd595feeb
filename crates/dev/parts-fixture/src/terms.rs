//! Bounds of the owner check for tests, of this package and of the drill.

use std::time::Duration;

use anyhow::Result;
use ownership::{Settings, Terms};

/// Consistent bounds, with a fence that is short enough for repeated waits.
pub fn short() -> Result<Terms> {
    answered_within(Duration::from_millis(20))
}

/// The same bounds in proportion to the timeout of an answer.
pub fn answered_within(short: Duration) -> Result<Terms> {
    Ok(Terms::new(Settings {
        interval: short * 3,
        timeout: short,
        store_timeout: short,
        validity: short * 9,
        requests: short,
        propagation: Duration::ZERO,
        pause: Duration::ZERO,
        fence: short * 25,
        ..Settings::default()
    })?)
}
