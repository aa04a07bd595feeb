//! Settings as users write them, and the flags made from settings.

use std::time::Duration;

use crate::{OverrideError, Settings, Terms, flag_of};

#[test]
fn what_is_not_given_stays_as_it_was() {
    let before = Settings {
        interval: Duration::from_secs(5),
        ..Settings::default()
    };
    let nothing = [("interval", None), ("fence", None)];
    assert_eq!(before.with_overrides(nothing, None), Ok(before));
    let after = before.with_overrides([("fence", Some("1m")), ("unknown", Some("?"))], Some(7));
    let expected = Settings {
        fence: Duration::from_secs(60),
        drift: 7,
        ..before
    };
    assert_eq!(after, Ok(expected));
}

#[test]
fn one_field_that_is_wrong_is_named_and_all_are_judged_together() {
    let wrong = Settings::default().with_overrides([("dnsCacheTTL", Some("1us"))], None);
    assert_eq!(
        wrong.unwrap_err().to_string(),
        "dnsCacheTTL is \"1us\"; write a duration from 1ms to 1h, such as 5s, or 0s"
    );
    let apart = Terms::default().with_overrides([("validity", Some("30s"))], None);
    assert!(matches!(apart, Err(OverrideError::Together(_))), "{apart:?}");
    let together = Terms::default().with_overrides([("validity", Some("30s")), ("fence", Some("42s"))], None);
    assert_eq!(together.unwrap().fence(), Some(Duration::from_secs(42)));
}

/// A process reads from the flags exactly the settings that the flags were made from.
#[test]
fn flags_say_what_is_not_usual_and_exactly() {
    assert_eq!(Settings::default().flags(), []);
    let settings = Settings {
        interval: Duration::from_millis(4500),
        propagation: Duration::ZERO,
        dns_cache_ttl: Duration::from_micros(1500),
        drift: 0,
        ..Settings::default()
    };
    let expected = [
        ("owner-check-interval", "4500ms".to_owned()),
        ("owner-check-propagation", "0s".to_owned()),
        ("owner-check-caches", "1500us".to_owned()),
        ("owner-check-drift", "0".to_owned()),
    ];
    assert_eq!(settings.flags(), expected);
    let read = [
        ("interval", "4500ms"),
        ("propagation", "0s"),
        ("dnsCacheTTL", "1500us"),
    ];
    let read = read.map(|(field, text)| (field, Some(text)));
    assert_eq!(Settings::default().with_overrides(read, Some(0)), Ok(settings));
    assert_eq!(flag_of("storeTimeout"), Some("owner-check-store-timeout"));
    assert_eq!(flag_of("drift"), Some("owner-check-drift"));
    assert_eq!(flag_of("silence"), None);
}

#[test]
fn a_destination_waits_for_the_longest_and_never_less() {
    let seconds = |fences: &[u64]| -> Vec<_> { fences.iter().copied().map(Duration::from_secs).collect() };
    for (others, expected) in [
        (seconds(&[]), 24),
        (seconds(&[5, 23]), 24),
        (seconds(&[45, 30]), 45),
    ] {
        let waits = Terms::default().waiting_for(others).fence();
        assert_eq!(waits, Some(Duration::from_secs(expected)));
    }
    let settings = Settings::default();
    assert!(
        settings.is_fenced_by(Duration::from_secs(24)) && !settings.is_fenced_by(Duration::from_secs(23))
    );
}
