//! Permits on paused time: no work continues after the end.

#![allow(clippy::unwrap_used, clippy::unchecked_time_subtraction)]

mod clock;
mod effects;
mod layer;
mod several;
mod work;

use std::time::Duration;

use crate::{Clock, Issuer, NotPermitted};

const SECOND: Duration = Duration::from_secs(1);

fn issued_for(duration: Duration) -> Issuer {
    named("the lock ns/lock", duration)
}

fn named(by: &str, duration: Duration) -> Issuer {
    let clock = Clock::default();
    let until = clock.now() + duration;
    Issuer::new(by, clock, until)
}

fn refusal(why: &str) -> NotPermitted {
    NotPermitted {
        by: "the lock ns/lock".to_owned(),
        why: why.to_owned(),
    }
}

const TIME_IS_OVER: &str = "its time is over";
