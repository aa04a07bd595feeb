//! Who must own the shoot for its etcd to be served, checked: a flag that etcd-backup-restore refuses would cost the shoot its
//! API, so it is refused here, while the former etcd runs on.

use std::{net::SocketAddr, time::Duration};

use api::druid::{EtcdSpec, OwnerCheckSilence, OwnerCheckSpec};
use ownership::{Claim, GivenError, Settings, Silence, Terms, flag_of};
use runtime::Result;

use super::field::wrong;
use crate::names::{BACKUP_PORT, CLIENT_PORT, LOOPBACK_PORT, PEER_PORT, PROBE_PORT};

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

/// Whether a seed that waits for the default fence may not take the shoot over beside an etcd with these settings: none that goes on
/// in silence, and none whose right lasts longer. Beside settings that cannot be used etcd goes on with those of before, and nobody
/// knows how long these last. The gardenlet, which knows the Seed, knows whether destinations wait for longer.
pub(crate) fn outlasts_a_fence(check: &OwnerCheckSpec) -> bool {
    settings(check).map_or(true, |settings| !settings.is_fenced_by(Settings::default().fence))
}

/// The same of a process that says by which settings it goes. `ends`: whether silence ends its right.
pub(crate) fn lasts_beyond_a_fence(ends: bool, least_fence: Duration) -> bool {
    !ends || least_fence > Settings::default().fence
}

/// Whether such a process outlasts what is asked for as well: it was started with other settings.
pub(crate) fn lasts_beyond(check: &OwnerCheckSpec, ends: bool, least_fence: Duration) -> bool {
    settings(check).map_or(true, |asked| {
        (!ends && asked.silence == Silence::Deactivate) || least_fence > asked.least_fence()
    })
}

fn word_of(silence: OwnerCheckSilence) -> Silence {
    match silence {
        OwnerCheckSilence::Deactivate => Silence::Deactivate,
        OwnerCheckSilence::Tolerate => Silence::Tolerate,
    }
}

/// What is given beside the claim, as flags; checked together with what is not given.
fn options(check: &OwnerCheckSpec) -> Result<Vec<Given>> {
    Terms::new(settings(check)?).map_err(|error| refused(GivenError::Together(error)))?;
    let durations = check
        .durations()
        .map(|(field, text)| (field, text.map(str::to_owned)));
    let drift = ("drift", check.drift.map(|drift| drift.to_string()));
    let given = durations.into_iter().chain([drift]);
    let mut options: Vec<Given> = given
        .filter_map(|(field, text)| Some((flag_of(field)?, text?)))
        .collect();
    if let Some(silence) = check.silence {
        options.push(("owner-check-silence", word_of(silence).word().to_owned()));
    }
    Ok(options)
}

fn settings(check: &OwnerCheckSpec) -> Result<Settings> {
    let given = Settings::default().given(check.durations(), check.drift);
    let mut settings = given.map_err(refused)?;
    if let Some(silence) = check.silence {
        settings.silence = word_of(silence);
    }
    Ok(settings)
}

fn refused(error: GivenError) -> runtime::Error {
    const PATH: &str = "spec.backup.ownerCheck";
    match error {
        GivenError::Field { field, what } => wrong(&format!("{PATH}.{field}"), what),
        GivenError::Together(_) => wrong(PATH, error.to_string()),
    }
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
