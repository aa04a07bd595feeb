//! Bounds of the owner check for tests, of this package and of the drill.

// Each test uses its part of this module.
#![allow(dead_code)]

use std::time::Duration;

use anyhow::Result;
use ownership::{Settings, Terms};

/// Bounds that fit together, and a fence that can be waited for again and again.
pub fn short() -> Result<Terms> {
    of(Duration::from_millis(20))
}

/// The same where all of a garden is one process, which may be busy for longer than an answer of [`short`] takes.
pub fn patient() -> Result<Terms> {
    of(Duration::from_millis(200))
}

fn of(short: Duration) -> Result<Terms> {
    Ok(Terms::new(Settings {
        interval: short * 3,
        attempt: short,
        second_witness: short,
        validity: short * 9,
        requests: short,
        propagation: Duration::ZERO,
        fence: short * 25,
        ..Settings::default()
    })?)
}
