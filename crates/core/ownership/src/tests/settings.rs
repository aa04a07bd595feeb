//! Intervals and bounds, checked against each other.

use std::time::Duration;

use rstest::rstest;

use crate::{Settings, SettingsError, Silence, Terms};

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn the_defaults_are_those_of_the_page() {
    let settings = Settings::default();
    let terms = Terms::new(settings).unwrap();
    assert_eq!(terms, Terms::default());
    assert_eq!(settings.check_takes(), s(3));
    // 1.001 * (2 + 12 / 0.999 + 5 + 4) = 23.035...
    assert_eq!(settings.least_fence(), ms(23_036));
    assert_eq!(terms.fence(), Some(s(24)));
    // The page shows each default.
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/understand/ownership.md"
    ))
    .unwrap();
    for row in [
        "| I | `interval` | 4 s |",
        "| | `timeout` | 1 s |",
        "| | `storeTimeout` | 1 s |",
        "| Q | | 3 s |",
        "| V | `validity` | 12 s |",
        "| H | `requests` | 5 s |",
        "| P | `propagation` | 2 s |",
        "| | `dnsCacheTTL` | 0 s |",
        "| ρ | `drift` | 1000 |",
        "| | | 4 s |",
        "| F | `fence` | 24 s |",
        "23.036 s",
    ] {
        assert!(
            page.contains(row),
            "docs/understand/ownership.md does not say {row:?}"
        );
    }
}

#[test]
fn who_tolerates_silence_gives_no_fence() {
    let silence = Silence::Tolerate;
    let terms = Terms::new(Settings {
        silence,
        ..Settings::default()
    })
    .unwrap();
    assert_eq!(terms.fence(), None);
}

#[rstest]
#[case(|s: &mut Settings| s.interval = Duration::ZERO, SettingsError::Nothing("interval"))]
#[case(|s: &mut Settings| s.timeout = Duration::ZERO, SettingsError::Nothing("timeout"))]
#[case(|s: &mut Settings| s.store_timeout = Duration::ZERO, SettingsError::Nothing("storeTimeout"))]
#[case(|s: &mut Settings| s.validity = Duration::ZERO, SettingsError::Nothing("validity"))]
#[case(|s: &mut Settings| s.requests = Duration::ZERO, SettingsError::Nothing("requests"))]
#[case(|s: &mut Settings| s.fence = Duration::MAX, SettingsError::TooLong { name: "fence", given: Duration::MAX })]
#[case(|s: &mut Settings| s.validity = Duration::MAX, SettingsError::TooLong { name: "validity", given: Duration::MAX })]
#[case(|s: &mut Settings| s.drift = 100_001, SettingsError::Drift(100_001))]
#[case(|x: &mut Settings| x.interval = ms(2999), SettingsError::IntervalTooShort { interval: ms(2999), check: s(3) })]
#[case(|x: &mut Settings| x.timeout = s(2), SettingsError::IntervalTooShort { interval: s(4), check: s(5) })]
#[case(|x: &mut Settings| x.validity = ms(10_999), SettingsError::ValidityTooShort { validity: ms(10_999), least: s(11) })]
#[case(|x: &mut Settings| x.interval = s(5), SettingsError::ValidityTooShort { validity: s(12), least: s(13) })]
#[case(|x: &mut Settings| x.fence = s(23), SettingsError::FenceTooShort { fence: s(23), least: ms(23_036) })]
#[case(|x: &mut Settings| x.validity = s(13), SettingsError::FenceTooShort { fence: s(24), least: ms(24_038) })]
#[case(
    |x: &mut Settings| x.dns_cache_ttl = s(10),
    SettingsError::FenceTooShort { fence: s(24), least: ms(33_046) }
)]
#[case(|x: &mut Settings| x.propagation = s(60), SettingsError::FenceTooShort { fence: s(24), least: ms(81_094) })]
fn what_does_not_fit_is_refused(#[case] change: fn(&mut Settings), #[case] expected: SettingsError) {
    let mut settings = Settings::default();
    change(&mut settings);
    assert_eq!(Terms::new(settings), Err(expected));
}

#[test]
fn the_least_fence_is_enough_and_nothing_less() {
    let mut settings = Settings::default();
    settings.fence = settings.least_fence();
    assert!(Terms::new(settings).is_ok());
    settings.fence -= ms(1);
    assert!(Terms::new(settings).is_err());
}

/// Validity belongs to the former owner; the clock that counts the fence belongs to the destination.
#[test]
fn the_fence_of_a_pair_is_longer_than_the_fence_of_each() {
    let former = Settings {
        validity: s(60),
        drift: 0,
        fence: s(71),
        ..Settings::default()
    };
    let destination = Settings {
        drift: 100_000,
        fence: s(27),
        ..Settings::default()
    };
    assert_eq!(former.least_fence(), s(71));
    let terms = Terms::new(destination).unwrap();
    // 1.1 * (2 + 60 / 0.9 + 5 + 4) = 85.433...
    let waits = terms.waiting_for_settings([former]);
    assert_eq!(waits.fence(), Some(ms(85_434)));
    assert_eq!(waits.settings().validity, destination.validity);
    assert_eq!(
        Terms::new(former)
            .unwrap()
            .waiting_for_settings([destination])
            .fence(),
        Some(ms(85_434))
    );
    assert_eq!(terms.waiting_for_settings([]).fence(), Some(s(27)));
    // Each component of either side counts.
    let slow = Settings {
        propagation: s(10),
        dns_cache_ttl: s(20),
        requests: s(6),
        ..Settings::default()
    };
    // 1.1 * (10 + 20 + 60 / 0.9 + 6 + 4) = 117.333...
    assert_eq!(
        terms.waiting_for_settings([slow, former]).fence(),
        Some(ms(117_334))
    );
}

#[test]
fn an_error_says_what_to_change() {
    let settings = Settings {
        fence: s(10),
        ..Settings::default()
    };
    let told = Terms::new(settings).unwrap_err().to_string();
    assert_eq!(
        told,
        "fence (10s) must be at least 23.036s = (1 + drift) x (propagation + dnsCacheTTL + validity / (1 - drift) + requests + 4s), \
         or the destination begins while the source may still act"
    );
}
