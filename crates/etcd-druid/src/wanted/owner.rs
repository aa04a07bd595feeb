//! Who must own the shoot for its etcd to be served, checked: a flag that etcd-backup-restore refuses would cost the shoot its
//! API, so it is refused here, while the former etcd runs on.

use std::{net::SocketAddr, time::Duration};

use api::druid::{EtcdSpec, OwnerCheckSilence, OwnerCheckSpec};
use jiff::SignedDuration;
use ownership::{Claim, Settings, Silence, Terms};
use runtime::Result;

use super::field::wrong;
use crate::names::{BACKUP_PORT, CLIENT_PORT, LOOPBACK_PORT, PEER_PORT, PROBE_PORT};

/// The longest of all durations, and the shortest where nothing else is said: as etcd-backup-restore takes them.
const LONGEST: Duration = Duration::from_secs(60 * 60);
const SHORTEST: Duration = Duration::from_millis(100);
/// The shortest bound of a question.
const SHORTEST_BOUND: Duration = Duration::from_millis(50);
/// The shortest time of what may also be nothing.
const SHORTEST_OR_NONE: Duration = Duration::from_millis(1);

/// An owner check whose settings fit together.
#[derive(Clone, Debug)]
pub struct OwnerCheck {
    /// The owner record's name.
    pub name: String,
    /// This seed's identity.
    pub id: String,
    /// The record's zone.
    pub zone: String,
    /// Its servers; empty where they are found by themselves.
    pub authorities: Vec<SocketAddr>,
    /// The shoot's uid.
    pub shoot_uid: String,
    /// Further flags, as they were given: name and value.
    pub options: Vec<(&'static str, String)>,
    /// The port on loopback on which etcd listens.
    pub etcd_port: i32,
}

/// Reads `spec.backup.ownerCheck`.
pub(crate) fn owner_check(spec: &EtcdSpec) -> Result<Option<OwnerCheck>> {
    let Some(check) = &spec.backup.owner_check else {
        return Ok(None);
    };
    // The epoch is another field's, and checked there.
    Claim::new(&check.name, &check.id, 1)
        .map_err(|e| wrong("spec.backup.ownerCheck", format!("is wrong: {e}")))?;
    if !is_in(&check.name, &check.zone) {
        return Err(wrong(
            "spec.backup.ownerCheck.zone",
            format!(
                "is {:?}, and the record {:?} is not in it; name the record's zone",
                check.zone, check.name
            ),
        ));
    }
    if check.shoot_uid.is_empty() {
        return Err(wrong(
            "spec.backup.ownerCheck.shootUID",
            "is empty; say the shoot's uid",
        ));
    }
    let authorities = check.authorities.iter().map(|text| {
        let parsed = text
            .parse::<SocketAddr>()
            .ok()
            .filter(|server| server.port() != 0);
        parsed.ok_or_else(|| {
            wrong(
                "spec.backup.ownerCheck.authorities",
                format!("has {text:?}; write address and port, such as 192.0.2.1:53"),
            )
        })
    });
    Ok(Some(OwnerCheck {
        name: check.name.clone(),
        id: check.id.clone(),
        zone: check.zone.clone(),
        authorities: authorities.collect::<Result<_>>()?,
        shoot_uid: check.shoot_uid.clone(),
        options: options(check)?,
        etcd_port: loopback_port(spec),
    }))
}

fn is_in(name: &str, zone: &str) -> bool {
    let absolute = |name: &str| {
        format!(
            ".{}.",
            name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
        )
    };
    let zone = absolute(zone);
    zone.len() > 2 && absolute(name).ends_with(&zone)
}

/// A flag with its value.
type Given = (&'static str, String);

/// Whether a seed that waits for the default fence would meet an etcd with these settings: one that goes on in silence, or one whose
/// right lasts longer. Beside settings that cannot be used etcd goes on with those of before, and nobody knows how long these last.
pub(crate) fn outlasts_a_fence(check: &OwnerCheckSpec) -> bool {
    settings(check).map_or(true, |(_, settings)| {
        lasts_beyond_a_fence(settings.silence == Silence::Deactivate, settings.least_fence())
    })
}

/// The same of a process that says by which settings it goes. `ends`: whether silence ends its right.
pub(crate) fn lasts_beyond_a_fence(ends: bool, least_fence: Duration) -> bool {
    !ends || least_fence > Settings::default().fence
}

/// What is given beside the claim, as flags; checked together with what is not given.
fn options(check: &OwnerCheckSpec) -> Result<Vec<Given>> {
    let (options, settings) = settings(check)?;
    Terms::new(settings)
        .map_err(|e| wrong("spec.backup.ownerCheck", format!("does not fit together: {e}")))?;
    Ok(options)
}

fn settings(check: &OwnerCheckSpec) -> Result<(Vec<Given>, Settings)> {
    let mut settings = Settings::default();
    let mut options = durations(check, &mut settings)?;
    if let Some(drift) = check.drift {
        settings.drift = u32::try_from(drift).map_err(|_| {
            wrong(
                "spec.backup.ownerCheck.drift",
                format!("is {drift}; write parts of a million, from 0 to 100000"),
            )
        })?;
        options.push(("owner-check-drift", drift.to_string()));
    }
    if let Some(silence) = check.silence {
        settings.silence = match silence {
            OwnerCheckSilence::Deactivate => Silence::Deactivate,
            OwnerCheckSilence::Tolerate => Silence::Tolerate,
        };
        options.push(("owner-check-silence", settings.silence.word().to_owned()));
    }
    Ok((options, settings))
}

fn durations(check: &OwnerCheckSpec, to: &mut Settings) -> Result<Vec<Given>> {
    let c = check;
    let all = [
        (
            "interval",
            "owner-check-interval",
            &c.interval,
            &mut to.interval,
            SHORTEST,
        ),
        (
            "timeout",
            "owner-check-timeout",
            &c.timeout,
            &mut to.attempt,
            SHORTEST_BOUND,
        ),
        (
            "storeTimeout",
            "owner-check-store-timeout",
            &c.store_timeout,
            &mut to.second_witness,
            SHORTEST_BOUND,
        ),
        (
            "validity",
            "owner-check-validity",
            &c.validity,
            &mut to.validity,
            SHORTEST,
        ),
        (
            "requests",
            "owner-check-requests",
            &c.requests,
            &mut to.requests,
            SHORTEST,
        ),
        (
            "propagation",
            "owner-check-propagation",
            &c.propagation,
            &mut to.propagation,
            SHORTEST_OR_NONE,
        ),
        (
            "dnsCacheTTL",
            "owner-check-caches",
            &c.dns_cache_ttl,
            &mut to.caches,
            SHORTEST_OR_NONE,
        ),
        ("fence", "owner-check-fence", &c.fence, &mut to.fence, SHORTEST),
    ];
    let mut options = Vec::new();
    for (field, flag, given, setting, shortest) in all {
        if let Some(text) = given {
            *setting = duration(field, text, shortest)?;
            options.push((flag, text.clone()));
        }
    }
    Ok(options)
}

fn duration(field: &str, text: &str, shortest: Duration) -> Result<Duration> {
    let may_be_none = shortest == SHORTEST_OR_NONE;
    let value = text.parse::<SignedDuration>().ok();
    value
        .and_then(|value| Duration::try_from(value).ok())
        .filter(|value| (shortest..=LONGEST).contains(value) || (may_be_none && value.is_zero()))
        .ok_or_else(|| {
            let or = if may_be_none { ", or 0s" } else { "" };
            wrong(
                &format!("spec.backup.ownerCheck.{field}"),
                format!("is {text:?}; write a duration from {shortest:?} to 1h, such as 5s{or}"),
            )
        })
}

/// A port that nothing else in the pod has.
fn loopback_port(spec: &EtcdSpec) -> i32 {
    let taken = [
        spec.etcd.client_port.unwrap_or(CLIENT_PORT),
        spec.etcd.server_port.unwrap_or(PEER_PORT),
        PROBE_PORT,
        spec.backup.port.unwrap_or(BACKUP_PORT),
    ];
    // There are five, and four may be taken.
    (LOOPBACK_PORT..LOOPBACK_PORT + 5)
        .find(|port| !taken.contains(port))
        .unwrap_or(LOOPBACK_PORT)
}
