//! Flags of a process that acts for a single shoot.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use api::meta::ErrorCode;
use clap::Args;
use ownership::Terms;
use permit::Permit;
use runtime::{Error, Result, workload::mounted};

use crate::{
    claim::OwnerClaim,
    owner_watch::OwnerWatch,
    sidecar::{AUTHORITY, Sidecar, SidecarTrust, URL},
};

/// The claim that must be confirmed. The flags are set together or not at all; without a name no owner is
/// checked.
#[derive(Args, Clone, Debug, Default)]
pub struct OwnerFlags {
    /// Name of the owner record. The process does nothing for the shoot while the record does not name this
    /// seed. Without this flag no owner is checked.
    #[arg(long, requires_all = ["owner_id", "owner_zone", "ownership_epoch", "owner_witness"])]
    owner_name: Option<String>,
    /// Identity of this seed, expected as the value of the owner record.
    #[arg(long, requires = "owner_name")]
    owner_id: Option<String>,
    /// Zone of the owner record.
    #[arg(long, requires = "owner_name")]
    owner_zone: Option<String>,
    /// DNS servers of the zone, each an address and a port. Default: the servers of the zone's NS records.
    #[arg(long, requires = "owner_name", value_delimiter = ',')]
    owner_authorities: Vec<SocketAddr>,
    /// The ownership epoch in which this seed has the shoot.
    #[arg(long, requires = "owner_name", value_parser = clap::value_parser!(i64).range(1..))]
    ownership_epoch: Option<i64>,
    /// URL at which the process beside the shoot's etcd reports the owner.
    #[arg(long, requires = "owner_name")]
    owner_witness: Option<String>,
    /// PEM file with the certificate authority that verifies the process beside etcd; for HTTPS.
    #[arg(long, requires = "owner_name")]
    owner_witness_ca: Option<PathBuf>,
    #[command(flatten)]
    terms: TermsFlags,
}

/// Interval of the check and validity of an answer, as durations in Go's notation. A flag that is not set has
/// the default of docs/understand/ownership.md.
#[derive(Args, Clone, Debug, Default)]
#[allow(clippy::struct_field_names)] // the fields have the names of the flags
struct TermsFlags {
    /// Time from one check to the next.
    #[arg(long, requires = "owner_name")]
    owner_check_interval: Option<String>,
    /// Bound of a single try at the zone's servers; a check makes two tries.
    #[arg(long, requires = "owner_name")]
    owner_check_timeout: Option<String>,
    /// Bound of the question to the process beside etcd, asked when the zone's servers give no valid answer.
    #[arg(long, requires = "owner_name")]
    owner_check_store_timeout: Option<String>,
    /// Time for which an answer is valid.
    #[arg(long, requires = "owner_name")]
    owner_check_validity: Option<String>,
    /// Time for which a request may be under way after the end of the permit.
    #[arg(long, requires = "owner_name")]
    owner_check_requests: Option<String>,
    /// Time for which a server may still show the former record to other clients after showing the new
    /// record.
    #[arg(long, requires = "owner_name")]
    owner_check_propagation: Option<String>,
    /// Time for which a cache between client and server may answer in a server's place.
    #[arg(long, requires = "owner_name")]
    owner_check_caches: Option<String>,
    /// Fence of a destination: the time that a destination waits. The other durations are checked against
    /// this fence.
    #[arg(long, requires = "owner_name")]
    owner_check_fence: Option<String>,
    /// Tolerated error of a clock, in parts per million.
    #[arg(long, requires = "owner_name")]
    owner_check_drift: Option<i32>,
}

impl TermsFlags {
    fn terms(&self) -> Result<Terms> {
        let durations = [
            ("interval", &self.owner_check_interval),
            ("timeout", &self.owner_check_timeout),
            ("storeTimeout", &self.owner_check_store_timeout),
            ("validity", &self.owner_check_validity),
            ("requests", &self.owner_check_requests),
            ("propagation", &self.owner_check_propagation),
            ("dnsCacheTTL", &self.owner_check_caches),
            ("fence", &self.owner_check_fence),
        ];
        let durations = durations.map(|(field, text)| (field, text.as_deref()));
        let given = Terms::default().with_overrides(durations, self.owner_check_drift);
        given.map_err(|error| {
            Error::config(ErrorCode::ErrConfigurationProblem, "--owner-check-*").caused_by(error)
        })
    }
}

impl OwnerClaim {
    /// The flags for a process in this namespace of the seed. The process mounts the certificate authority of
    /// Secret [`AUTHORITY`].
    #[must_use]
    pub fn flags(&self, namespace: &str) -> Vec<String> {
        let mut flags = vec![
            format!("--owner-name={}", self.name),
            format!("--owner-id={}", self.identity),
            format!("--owner-zone={}", self.zone),
            format!("--ownership-epoch={}", self.epoch),
            format!("--owner-witness={}", URL.replace("{namespace}", namespace)),
            format!("--owner-witness-ca={}", mounted(AUTHORITY, "ca.crt")),
        ];
        if !self.authorities.is_empty() {
            let all: Vec<_> = self.authorities.iter().map(ToString::to_string).collect();
            flags.push(format!("--owner-authorities={}", all.join(",")));
        }
        // Defaults are left out, so that a manager without these flags still starts.
        for (flag, value) in self.terms.settings().flags() {
            flags.push(format!("--{flag}={value}"));
        }
        flags
    }
}

impl OwnerFlags {
    /// The check that must confirm the claim before and during the work; `None` without the flags. `permit`:
    /// the right to ask.
    ///
    /// # Errors
    /// The claim or the terms are invalid, or the durations do not fit together.
    pub fn watch_owner(&self, permit: &Permit) -> Result<Option<OwnerWatch>> {
        let (Some(name), Some(identity), Some(zone), Some(epoch), Some(url)) = (
            self.owner_name.clone(),
            self.owner_id.clone(),
            self.owner_zone.clone(),
            self.ownership_epoch,
            self.owner_witness.clone(),
        ) else {
            return Ok(None);
        };
        let claim = OwnerClaim {
            shoot_uid: String::new(),
            name,
            identity,
            zone,
            authorities: self.owner_authorities.clone(),
            epoch,
            terms: self.terms.terms()?,
        };
        let trust = match &self.owner_witness_ca {
            Some(file) => SidecarTrust::File(file.clone()),
            None => SidecarTrust::PlainHttp,
        };
        let sidecar = Sidecar {
            url,
            trust,
            permit: permit.clone(),
        };
        claim.watch(Arc::new(sidecar)).map(OwnerWatch::new).map(Some)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Process {
        #[command(flatten)]
        owner: OwnerFlags,
    }

    fn claim() -> OwnerClaim {
        OwnerClaim {
            shoot_uid: String::new(),
            name: "owner.web.dev.internal.example.test".into(),
            identity: "seed-a".into(),
            zone: "example.test".into(),
            authorities: vec![
                "192.0.2.1:53".parse().unwrap(),
                "[2001:db8::1]:53".parse().unwrap(),
            ],
            epoch: 3,
            terms: Terms::default(),
        }
    }

    fn read(flags: &[String]) -> Result<Process, clap::Error> {
        Process::try_parse_from(std::iter::once("process").chain(flags.iter().map(String::as_str)))
    }

    #[test]
    fn what_is_handed_over_is_what_is_asked() {
        let flags = claim().flags("shoot--dev--web");
        let owner = read(&flags).unwrap().owner;
        assert_eq!(
            owner.owner_name.as_deref(),
            Some("owner.web.dev.internal.example.test")
        );
        assert_eq!(owner.owner_authorities, claim().authorities);
        assert_eq!(owner.ownership_epoch, Some(3));
        assert_eq!(
            owner.owner_witness.as_deref(),
            Some("https://etcd-main-peer.shoot--dev--web.svc:8080")
        );
        assert!(owner.watch_owner(&Permit::sole("a test")).unwrap().is_some());
    }

    #[test]
    fn intervals_and_bounds_are_said_where_they_are_not_the_usual_ones() {
        let usual = claim().flags("shoot--dev--web");
        assert!(
            !usual.iter().any(|flag| flag.starts_with("--owner-check")),
            "{usual:?}"
        );
        assert_eq!(read(&usual).unwrap().owner.terms.terms(), Ok(Terms::default()));
        let given = [
            ("interval", "5s"),
            ("timeout", "1500ms"),
            ("storeTimeout", "1.5s"),
            ("validity", "15s"),
            ("requests", "4s"),
            ("propagation", "0s"),
            ("dnsCacheTTL", "1m"),
            ("fence", "1m30s"),
        ];
        let given = given.map(|(field, text)| (field, Some(text)));
        let terms = Terms::default().with_overrides(given, Some(500)).unwrap();
        let claim = OwnerClaim { terms, ..claim() };
        let mut flags = claim.flags("shoot--dev--web");
        assert_eq!(read(&flags).unwrap().owner.terms.terms(), Ok(terms));
        let expected = [
            "--owner-check-interval=5s",
            "--owner-check-timeout=1500ms",
            "--owner-check-store-timeout=1500ms",
            "--owner-check-validity=15s",
            "--owner-check-requests=4s",
            "--owner-check-propagation=0s",
            "--owner-check-caches=60s",
            "--owner-check-fence=90s",
            "--owner-check-drift=500",
        ];
        assert_eq!(flags[flags.len() - expected.len()..], expected);
        // The durations do not fit together, although each is valid alone.
        flags.retain(|flag| !flag.starts_with("--owner-check-fence"));
        let owner = read(&flags).unwrap().owner;
        let error = owner.watch_owner(&Permit::sole("a test")).map(drop).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("--owner-check-*: does not fit together: fence"),
            "{error}"
        );
    }

    /// A part of the flags would look like a check while no owner is checked.
    #[test]
    fn all_of_it_or_nothing() {
        assert!(
            read(&[])
                .unwrap()
                .owner
                .watch_owner(&Permit::sole("a test"))
                .unwrap()
                .is_none()
        );
        let flags = claim().flags("shoot--dev--web");
        for left_out in [
            "--owner-name",
            "--owner-id",
            "--owner-zone",
            "--ownership-epoch",
            "--owner-witness=",
        ] {
            let rest: Vec<_> = flags
                .iter()
                .filter(|flag| !flag.starts_with(left_out))
                .cloned()
                .collect();
            assert!(read(&rest).is_err(), "without {left_out}");
        }
        let mut wrong = flags.clone();
        wrong.retain(|flag| !flag.starts_with("--ownership-epoch"));
        wrong.push("--ownership-epoch=0".to_owned());
        assert!(read(&wrong).is_err());
    }
}
