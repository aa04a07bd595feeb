//! Validates the owner check of an Etcd. A flag that etcd-backup-restore refuses would cost the shoot its
//! API, so etcd-druid refuses the field here, while the former etcd keeps running.

use std::{net::SocketAddr, time::Duration};

use api::druid::{EtcdSpec, OwnerCheckSilence, OwnerCheckSpec};
use ownership::{OverrideError, OwnershipClaim, Settings, Silence, Terms, flag_of};
use runtime::Result;

use super::field::wrong;
use crate::names::{BACKUP_PORT, CLIENT_PORT, LOOPBACK_PORT, PEER_PORT, PROBE_PORT};

/// A validated owner check.
#[derive(Clone, Debug)]
pub struct OwnerCheck {
    /// The owner record's name.
    pub name: String,
    /// This seed's identity.
    pub id: String,
    /// The record's zone.
    pub zone: String,
    /// The zone's servers; empty if the process finds the servers itself.
    pub authorities: Vec<SocketAddr>,
    /// The shoot's uid.
    pub shoot_uid: String,
    /// Further flags with their specified values.
    pub options: Vec<(&'static str, String)>,
    /// The port on loopback on which etcd listens.
    pub etcd_port: i32,
    /// The gate for clients of the etcd with the Events.
    pub events_gate: Option<EventsGate>,
}

/// A second gate in the same process, for clients of the etcd with the Events.
#[derive(Clone, Debug)]
pub struct EventsGate {
    /// Port of the client Service.
    pub service_port: i32,
    /// Port in the pod. The port of the Service may be the port of etcd's probes there.
    pub pod_port: i32,
    /// Host and port of the etcd with the Events.
    pub target: String,
}

/// Reads `spec.backup.ownerCheck`.
pub(crate) fn owner_check(spec: &EtcdSpec) -> Result<Option<OwnerCheck>> {
    let Some(check) = &spec.backup.owner_check else {
        return Ok(None);
    };
    // The epoch comes from a different field with its own validation.
    OwnershipClaim::new(&check.name, &check.id, 1)
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
        events_gate: events_gate(spec, check)?,
    }))
}

fn events_gate(spec: &EtcdSpec, check: &OwnerCheckSpec) -> Result<Option<EventsGate>> {
    const FIELD: &str = "spec.backup.ownerCheck.eventsGate";
    let Some(gate) = &check.events_gate else {
        return Ok(None);
    };
    let of_service = [
        spec.etcd.client_port.unwrap_or(CLIENT_PORT),
        spec.backup.port.unwrap_or(BACKUP_PORT),
    ];
    if !(1..=65535).contains(&gate.port) || of_service.contains(&gate.port) {
        return Err(wrong(
            &format!("{FIELD}.port"),
            format!(
                "is {}; choose a port from 1 to 65535 that the client Service does not have yet ({}, {})",
                gate.port, of_service[0], of_service[1]
            ),
        ));
    }
    let parts = gate.target.rsplit_once(':');
    let port = parts.and_then(|(host, port)| port.parse::<u16>().ok().filter(|_| !host.is_empty()));
    if port.is_none_or(|port| port == 0) {
        return Err(wrong(
            &format!("{FIELD}.target"),
            format!(
                "is {:?}; write host and port of the etcd with the Events, such as etcd-events-client:2379",
                gate.target
            ),
        ));
    }
    Ok(Some(EventsGate {
        service_port: gate.port,
        pod_port: free_port(&[&taken(spec)[..], &[loopback_port(spec)]].concat()),
        target: gate.target.clone(),
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

/// Whether an etcd with these settings outlasts the default fence. Then a seed that waits for the default
/// fence may not take over the shoot. That holds for an etcd that continues in silence, and for an etcd with
/// a longer right. With invalid settings etcd keeps its former settings, whose duration is unknown. Only the
/// gardenlet, which reads the Seed, knows whether destinations wait longer.
pub(crate) fn outlasts_a_fence(check: &OwnerCheckSpec) -> bool {
    settings(check).map_or(true, |settings| !settings.is_fenced_by(Settings::default().fence))
}

/// Like [`outlasts_a_fence`], for a process that reports its settings. `ends`: whether silence ends its
/// right.
pub(crate) fn lasts_beyond_a_fence(ends: bool, least_fence: Duration) -> bool {
    !ends || least_fence > Settings::default().fence
}

/// Whether such a process outlasts the specified settings as well: the process was started with different
/// settings.
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

/// The settings beside the claim, as flags; validated together with the defaults of the unset fields.
fn options(check: &OwnerCheckSpec) -> Result<Vec<Given>> {
    Terms::new(settings(check)?).map_err(|error| refused(OverrideError::Together(error)))?;
    let durations = check
        .durations()
        .map(|(field, text)| (field, text.map(str::to_owned)));
    let drift = ("drift", check.drift.map(|drift| drift.to_string()));
    let given = durations.into_iter().chain([drift]);
    let mut options: Vec<Given> = given
        .filter_map(|(field, text)| Some((flag_of(field)?, text?)))
        .collect();
    if let Some(silence) = check.silence {
        options.push(("owner-check-silence", word_of(silence).as_str().to_owned()));
    }
    Ok(options)
}

fn settings(check: &OwnerCheckSpec) -> Result<Settings> {
    let given = Settings::default().with_overrides(check.durations(), check.drift);
    let mut settings = given.map_err(refused)?;
    if let Some(silence) = check.silence {
        settings.silence = word_of(silence);
    }
    Ok(settings)
}

fn refused(error: OverrideError) -> runtime::Error {
    const PATH: &str = "spec.backup.ownerCheck";
    match error {
        OverrideError::Field { field, what } => wrong(&format!("{PATH}.{field}"), what),
        OverrideError::Together(_) => wrong(PATH, error.to_string()),
    }
}

/// The port on which etcd listens behind the gate.
fn loopback_port(spec: &EtcdSpec) -> i32 {
    free_port(&taken(spec))
}

/// Ports in the pod without those of the owner check.
fn taken(spec: &EtcdSpec) -> [i32; 4] {
    [
        spec.etcd.client_port.unwrap_or(CLIENT_PORT),
        spec.etcd.server_port.unwrap_or(PEER_PORT),
        PROBE_PORT,
        spec.backup.port.unwrap_or(BACKUP_PORT),
    ]
}

/// The first port from [`LOOPBACK_PORT`] on that is not in use in the pod.
fn free_port(taken: &[i32]) -> i32 {
    (LOOPBACK_PORT..=u16::MAX.into())
        .find(|port| !taken.contains(port))
        .unwrap_or(LOOPBACK_PORT)
}
