//! Flags of a process that acts for one shoot.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use api::meta::ErrorCode;
use clap::Args;
use ownership::Terms;
use permit::Permit;
use runtime::{Error, Result, workload::mounted};

use crate::{
    claim::OwnerClaim,
    held::Held,
    sidecar::{AUTHORITY, KnownBy, Sidecar, URL},
};

/// Who must have the shoot. All of it or nothing: without a name nobody is asked.
#[derive(Args, Clone, Debug, Default)]
pub struct OwnerFlags {
    /// Name of the owner record: nothing is done for the shoot while it does not say that this seed has it.
    /// Not asked if not given.
    #[arg(long, requires_all = ["owner_id", "owner_zone", "ownership_epoch", "owner_witness"])]
    owner_name: Option<String>,
    /// Identity of this seed, which the record must have.
    #[arg(long, requires = "owner_name")]
    owner_id: Option<String>,
    /// Zone of the record.
    #[arg(long, requires = "owner_name")]
    owner_zone: Option<String>,
    /// Servers of the zone, each an address and a port; found by the zone's NS records if not given.
    #[arg(long, requires = "owner_name", value_delimiter = ',')]
    owner_authorities: Vec<SocketAddr>,
    /// The epoch in which the seed has the shoot.
    #[arg(long, requires = "owner_name", value_parser = clap::value_parser!(i64).range(1..))]
    ownership_epoch: Option<i64>,
    /// Where the process beside the shoot's etcd says whose the shoot is.
    #[arg(long, requires = "owner_name")]
    owner_witness: Option<String>,
    /// PEM file with the authority by which that is known; for HTTPS.
    #[arg(long, requires = "owner_name")]
    owner_witness_ca: Option<PathBuf>,
    #[command(flatten)]
    terms: TermsFlags,
}

/// How often it is asked, and for how long an answer is good: durations in Go's notation. What is not given
/// is as docs/understand/ownership.md has it.
#[derive(Args, Clone, Debug, Default)]
#[allow(clippy::struct_field_names)] // they are the names of the flags
struct TermsFlags {
    /// Time from one check to the next.
    #[arg(long, requires = "owner_name")]
    owner_check_interval: Option<String>,
    /// Bound of one try at the zone's servers; there are two in a check.
    #[arg(long, requires = "owner_name")]
    owner_check_timeout: Option<String>,
    /// Bound of the question to the process beside etcd, where the zone's servers say nothing.
    #[arg(long, requires = "owner_name")]
    owner_check_store_timeout: Option<String>,
    /// For how long an answer is good.
    #[arg(long, requires = "owner_name")]
    owner_check_validity: Option<String>,
    /// How long a request may be under way after its permit has ended.
    #[arg(long, requires = "owner_name")]
    owner_check_requests: Option<String>,
    /// For how long a server may show the former record to others after it has shown the new one.
    #[arg(long, requires = "owner_name")]
    owner_check_propagation: Option<String>,
    /// For how long something on the way may answer in a server's place.
    #[arg(long, requires = "owner_name")]
    owner_check_caches: Option<String>,
    /// How long a destination waits: the others are checked against it.
    #[arg(long, requires = "owner_name")]
    owner_check_fence: Option<String>,
    /// By how many parts of a million a clock may be wrong.
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
        let given = Terms::default().given(durations, self.owner_check_drift);
        given.map_err(|error| {
            Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!("--owner-check-*: {error}"),
            )
        })
    }
}

impl OwnerClaim {
    /// The flags by which a process in this namespace of the seed asks. It mounts the authority of Secret
    /// [`AUTHORITY`].
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
        // What is usual is not said: a manager that does not know these flags goes on as before.
        for (flag, value) in self.terms.settings().flags() {
            flags.push(format!("--{flag}={value}"));
        }
        flags
    }
}

impl OwnerFlags {
    /// What is to be confirmed before anything is done, and again and again while it is; nothing where no
    /// flag says so. `permit`: the right to ask.
    ///
    /// # Errors
    /// It cannot be asked like that.
    pub fn held(&self, permit: &Permit) -> Result<Option<Held>> {
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
        let known_by = match &self.owner_witness_ca {
            Some(file) => KnownBy::File(file.clone()),
            None => KnownBy::Nobody,
        };
        let sidecar = Sidecar {
            url,
            known_by,
            permit: permit.clone(),
        };
        claim.watch(Arc::new(sidecar)).map(Held::new).map(Some)
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
        assert!(owner.held(&Permit::sole("a test")).unwrap().is_some());
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
        let terms = Terms::default().given(given, Some(500)).unwrap();
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
        // Together with the others, not each alone.
        flags.retain(|flag| !flag.starts_with("--owner-check-fence"));
        let owner = read(&flags).unwrap().owner;
        let error = owner.held(&Permit::sole("a test")).map(drop).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("--owner-check-*: does not fit together: fence"),
            "{error}"
        );
    }

    /// Half of it would look as if somebody was asked.
    #[test]
    fn all_of_it_or_nothing() {
        assert!(
            read(&[])
                .unwrap()
                .owner
                .held(&Permit::sole("a test"))
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
