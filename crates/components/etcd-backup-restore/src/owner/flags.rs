//! The flags of the owner check. Flags that exist in Gardener's etcd-backup-restore have the same names here.

use super::etcd_process::EtcdProcess;
use super::events::EventsTarget;
use super::http2::{GateForwarding, Http2GateArgs, PreparedLimits};
use super::marker::Marker;
use crate::error::{Class, Error, Result};
use crate::etcd_flags::EtcdArgs;
use crate::flag_ranges::{number, period, period_or_zero};
use clap::Args;
use ownership::{Authorities, OwnershipClaim, Settings, Silence, Terms};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// File descriptors reserved for this process: a flood of client connections must not block the owner check.
const OWN_FILES: usize = 256;

/// Connections for Events at a time: kube-apiserver opens a handful. A separate share, so that a flood at a
/// gate does not fill both gates.
const EVENTS_CONNECTIONS: usize = 100;

/// `--owner-check-silence`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum OnSilence {
    /// The gate is shut if neither witness has answered within the validity.
    #[default]
    Deactivate,
    /// The gate stays open until the record says that the shoot is lost.
    Tolerate,
}

/// Flags of the owner check, enabled by `--owner-name`.
#[derive(Debug, Args)]
pub struct OwnerArgs {
    /// Name of the owner record; this flag enables the owner check.
    #[arg(long, requires_all = ["owner_id", "owner_zone", "shoot_uid", "gate_listen_address", "gate_target", "data_dir"])]
    pub owner_name: Option<String>,
    /// Identity of this seed, the expected value of the owner record.
    #[arg(long, requires = "owner_name")]
    pub owner_id: Option<String>,
    /// Zone of the record.
    #[arg(long, requires = "owner_name")]
    pub owner_zone: Option<String>,
    /// Addresses of the zone's servers, ip:port; without this flag the process finds the servers through the
    /// zone's NS records.
    #[arg(long, requires = "owner_name", value_delimiter = ',')]
    pub owner_authorities: Vec<SocketAddr>,
    /// The shoot's uid, which ownership.json in the store must have.
    #[arg(long, requires = "owner_name")]
    pub shoot_uid: Option<String>,
    /// Time between two checks.
    #[arg(long, requires = "owner_name", value_parser = period("100ms", "1h"), default_value = "4s")]
    pub owner_check_interval: Duration,
    /// Timeout of a try at the zone's servers; a check has two tries.
    #[arg(long, requires = "owner_name", value_parser = period("50ms", "1h"), default_value = "1s")]
    pub owner_check_timeout: Duration,
    /// Timeout of the request to the store, sent if the zone's servers do not answer.
    #[arg(long, requires = "owner_name", value_parser = period("50ms", "1h"), default_value = "1s")]
    pub owner_check_store_timeout: Duration,
    /// How long an answer is valid.
    #[arg(long, requires = "owner_name", value_parser = period("100ms", "1h"), default_value = "12s")]
    pub owner_check_validity: Duration,
    /// How long a request may still run after its permit has ended.
    #[arg(long, requires = "owner_name", value_parser = period("100ms", "1h"), default_value = "5s")]
    pub owner_check_requests: Duration,
    /// How long a server may still return the former record to a client after that server has returned the
    /// new record to another client.
    #[arg(long, requires = "owner_name", value_parser = period_or_zero("for none", "1ms", "1h"), default_value = "2s")]
    pub owner_check_propagation: Duration,
    /// How long a cache on the path may answer in a server's place.
    #[arg(long, requires = "owner_name", value_parser = period_or_zero("for none", "1ms", "1h"), default_value = "0")]
    pub owner_check_caches: Duration,
    /// Largest error of a clock, in parts per million.
    #[arg(long, requires = "owner_name", value_parser = number::<u32>(0, 100_000), default_value = "1000")]
    pub owner_check_drift: u32,
    /// How long a destination waits; the process checks the other durations against this time.
    #[arg(long, requires = "owner_name", value_parser = period("100ms", "1h"), default_value = "24s")]
    pub owner_check_fence: Duration,
    /// Effect of silence of both witnesses.
    #[arg(long, requires = "owner_name", value_enum, default_value = "Deactivate")]
    pub owner_check_silence: OnSilence,
    /// Address to which clients of etcd connect.
    #[arg(long, requires = "owner_name")]
    pub gate_listen_address: Option<SocketAddr>,
    /// Address on which etcd listens, on loopback.
    #[arg(long, requires = "owner_name")]
    pub gate_target: Option<SocketAddr>,
    /// Connections of clients at a time.
    #[arg(long, requires = "owner_name", value_parser = number::<usize>(16, 60_000), default_value = "2000")]
    pub gate_max_connections: usize,
    /// Where clients of the etcd with the Events connect to, served under the same permit as clients of etcd.
    #[arg(long, requires_all = ["owner_name", "gate_events_target"])]
    pub gate_events_listen_address: Option<SocketAddr>,
    /// The etcd with the Events, host:port. The name is resolved for each connection.
    #[arg(long, requires_all = ["owner_name", "gate_events_listen_address"])]
    pub gate_events_target: Option<EventsTarget>,
    /// Protocol of the gate.
    #[command(flatten)]
    pub http2: Http2GateArgs,
}

/// The second gate, for clients of the etcd with the Events.
pub(super) struct EventsGate {
    pub(super) listen: SocketAddr,
    pub(super) target: EventsTarget,
    pub(super) most: usize,
}

/// The validated settings of the owner check.
pub struct OwnerCheck {
    pub(super) claim: OwnershipClaim,
    pub(super) terms: Terms,
    pub(super) authorities: Arc<Authorities>,
    pub(super) uid: String,
    pub(super) marker: Marker,
    pub(super) etcd: EtcdProcess,
    pub(super) listen: SocketAddr,
    pub(super) most: usize,
    pub(super) forwarding: GateForwarding,
    pub(super) prepared: PreparedLimits,
    pub(super) events: Option<EventsGate>,
}

fn wrong(flag: &str, what: impl std::fmt::Display) -> Error {
    Error::new(Class::Configuration, format!("{flag}: {what}"))
}

impl OwnerArgs {
    /// The owner check, if enabled. `etcd` are the flags of the process's own etcd client.
    pub fn check(&self, epoch: i64, data_dir: Option<&Path>, etcd: &EtcdArgs) -> Result<Option<OwnerCheck>> {
        let Some(name) = &self.owner_name else {
            return Ok(None);
        };
        // clap requires these flags too; this check serves callers that build `OwnerArgs` without clap.
        let missing = |flag: &str| wrong(flag, "it is needed for the owner check");
        let id = self.owner_id.as_ref().ok_or_else(|| missing("--owner-id"))?;
        let zone = self.owner_zone.as_ref().ok_or_else(|| missing("--owner-zone"))?;
        let uid = self.shoot_uid.clone().filter(|uid| !uid.is_empty());
        let listen = self
            .gate_listen_address
            .ok_or_else(|| missing("--gate-listen-address"))?;
        let target = self.gate_target.ok_or_else(|| missing("--gate-target"))?;
        let data_dir = data_dir.ok_or_else(|| missing("--data-dir"))?;
        let claim = OwnershipClaim::new(name, id, epoch).map_err(|e| wrong("--owner-name, --owner-id", e))?;
        let terms = Terms::new(self.settings()).map_err(|e| wrong("--owner-check-*", e))?;
        let authorities = match self.owner_authorities.as_slice() {
            [] => Authorities::discover(zone),
            named => Authorities::named(zone, named.iter().copied()),
        };
        let authorities = authorities.map_err(|e| wrong("--owner-zone, --owner-authorities", e))?;
        authorities.check(&claim).map_err(|e| wrong("--owner-zone", e))?;
        ways(listen, target, &etcd.endpoints)?;
        let events = self.events(listen, target)?;
        let forwarding = self.http2.forwarding(etcd)?;
        let prepared = self.http2.prepared_limits();
        let connections = match forwarding {
            GateForwarding::Http2(Some(_)) => prepared.connections,
            // Such a gate sees no certificates.
            GateForwarding::Http2(None) | GateForwarding::Tcp => 0,
        };
        let room = Room::new(
            self.gate_max_connections,
            connections,
            events.is_some(),
            open_files(),
        );
        Ok(Some(OwnerCheck {
            claim,
            terms,
            authorities: Arc::new(authorities),
            uid: uid.ok_or_else(|| missing("--shoot-uid"))?,
            marker: Marker::beside(data_dir),
            etcd: EtcdProcess {
                data_dir: data_dir.to_owned(),
                target,
            },
            listen,
            most: room.etcd,
            forwarding,
            prepared: PreparedLimits {
                connections: room.prepared,
                ..prepared
            },
            events: events.map(|(listen, target)| EventsGate {
                listen,
                target,
                most: room.events,
            }),
        }))
    }

    /// Listen address and target of the second gate.
    fn events(&self, gate: SocketAddr, etcd: SocketAddr) -> Result<Option<(SocketAddr, EventsTarget)>> {
        let (listen, target) = match (self.gate_events_listen_address, &self.gate_events_target) {
            (None, None) => return Ok(None),
            (Some(listen), Some(target)) => (listen, target.clone()),
            // clap asks for both flags; this covers flags that were built without clap.
            (Some(_), None) => {
                return Err(wrong(
                    "--gate-events-target",
                    "it is needed for the gate for Events",
                ));
            }
            (None, Some(_)) => {
                return Err(wrong(
                    "--gate-events-listen-address",
                    "it is needed for the gate for Events",
                ));
            }
        };
        for taken in [gate, etcd] {
            if listen.port() == 0 || listen.port() == taken.port() {
                let what = format!(
                    "{listen} must have another port than the gate of etcd, {gate}, and etcd, {etcd}"
                );
                return Err(wrong("--gate-events-listen-address", what));
            }
        }
        Ok(Some((listen, target)))
    }

    fn settings(&self) -> Settings {
        Settings {
            interval: self.owner_check_interval,
            timeout: self.owner_check_timeout,
            store_timeout: self.owner_check_store_timeout,
            validity: self.owner_check_validity,
            requests: self.owner_check_requests,
            propagation: self.owner_check_propagation,
            dns_cache_ttl: self.owner_check_caches,
            drift: self.owner_check_drift,
            pause: Settings::default().pause,
            fence: self.owner_check_fence,
            silence: match self.owner_check_silence {
                OnSilence::Deactivate => Silence::Deactivate,
                OnSilence::Tolerate => Silence::Tolerate,
            },
        }
    }
}

/// How many connections each gate takes.
#[derive(Debug, PartialEq, Eq)]
struct Room {
    etcd: usize,
    events: usize,
    prepared: usize,
}

impl Room {
    /// Each connection takes two file descriptors. Events get at most a quarter of the connections that fit.
    /// Preparations get what the clients of this seed leave.
    fn new(wanted: usize, prepared: usize, has_events: bool, limit: Option<usize>) -> Self {
        let fit = limit.map_or(usize::MAX, |limit| limit.saturating_sub(OWN_FILES) / 2);
        let events = if has_events {
            EVENTS_CONNECTIONS.min(fit / 4)
        } else {
            0
        };
        let fit = fit - events;
        if fit < wanted {
            tracing::warn!(wanted, fit, "the limit of open files allows fewer connections");
        }
        let etcd = wanted.min(fit);
        let left = prepared.min(fit - etcd);
        if left < prepared {
            tracing::info!(
                prepared,
                left,
                "the limit of open files leaves fewer connections for preparations"
            );
        }
        Self {
            etcd,
            events,
            prepared: left,
        }
    }
}

/// How many files the process may open; `None` without a limit, or if the kernel does not report the limit.
fn open_files() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Checks that clients reach etcd only through the gate, and that this process has its own path: this process
/// needs etcd when the gate is shut.
fn ways(listen: SocketAddr, target: SocketAddr, endpoints: &[String]) -> Result<()> {
    if !target.ip().is_loopback() || target.port() == 0 {
        let what = format!("{target} is no loopback address: clients would go past the gate");
        return Err(wrong("--gate-target", what));
    }
    let covers = |ip: std::net::IpAddr| ip.is_unspecified() || ip == target.ip();
    if listen.port() == 0 || (listen.port() == target.port() && covers(listen.ip())) {
        let what = format!("{listen} must be another address than etcd's, {target}");
        return Err(wrong("--gate-listen-address", what));
    }
    for endpoint in endpoints {
        let port = endpoint.parse::<http::Uri>().ok().and_then(|uri| uri.port_u16());
        if port != Some(target.port()) {
            let what = format!(
                "{endpoint} must lead to etcd itself, at the port of --gate-target ({}): through the gate no final snapshot \
                 could be taken",
                target.port()
            );
            return Err(wrong("--endpoints", what));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "flags_tests.rs"]
mod tests;
