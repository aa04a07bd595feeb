//! Whether a seed says in DNS which shoots are its own, of whom that is asked, and for how long an answer is
//! good.

use std::net::SocketAddr;

use crate::{
    derive::{Deserialize, KubeSchema, Serialize, skip_serializing_none},
    druid::OwnerCheckSilence,
};

/// An address with a port, as `192.0.2.1:53` or `[2001:db8::1]:53`.
const ADDRESS_AND_PORT: &str = r"^([0-9.]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}$";

/// Go's notation of a duration, so short that its value can be compared.
const SHORT_DURATION: &str = r"^([0-9]{1,6}(\.[0-9]{1,3})?(ns|us|µs|ms|s|m|h))+$";

/// Whether the seed says in DNS which shoots are its own, of whom that is asked, and for how long an answer
/// is good (docs/understand/ownership.md, "Time"). A destination waits for the longest `fence` of those Seeds
/// from which something of the shoot may be left.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "duration(has(self.interval) ? self.interval : '4s') >= duration(has(self.timeout) ? self.timeout : '1s') + duration(has(self.timeout) ? self.timeout : '1s') + duration(has(self.storeTimeout) ? self.storeTimeout : '1s')",
    "interval must be at least as long as a check may take (2 x timeout + storeTimeout): make it longer, or these shorter"
))]
#[x_kube(validation = (
    "duration(has(self.validity) ? self.validity : '12s') >= duration(has(self.interval) ? self.interval : '4s') + duration(has(self.interval) ? self.interval : '4s') + duration(has(self.timeout) ? self.timeout : '1s') + duration(has(self.timeout) ? self.timeout : '1s') + duration(has(self.storeTimeout) ? self.storeTimeout : '1s')",
    "validity must be at least 2 x interval + 2 x timeout + storeTimeout, so that one failed check ends no permit: make it longer, or the interval shorter"
))]
#[x_kube(validation = (
    "duration(has(self.fence) ? self.fence : '24s') >= duration(has(self.propagation) ? self.propagation : '2s') + duration(has(self.dnsCacheTTL) ? self.dnsCacheTTL : '0s') + duration(has(self.validity) ? self.validity : '12s') + duration(has(self.requests) ? self.requests : '5s') + duration('4s')",
    "fence must be longer than propagation + dnsCacheTTL + validity + requests + 4s (an unnoticed pause of the machine), or a destination begins while this seed may still act: make it longer"
))]
pub struct OwnerChecks {
    /// Whether the seed writes owner records and checks them. Default: false.
    pub enabled: bool,
    /// The servers of the zone in which the seed's internal names are, as `address:port`; found by its NS
    /// records where none are named. All seeds must name the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 64), regex(pattern = ADDRESS_AND_PORT)))]
    pub authorities: Vec<String>,
    /// How often it is asked whose a shoot is; 4s unless given.
    #[schemars(length(max = 16), regex(pattern = SHORT_DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('100ms') && duration(self) <= duration('1h')", "must be from 100ms to 1h"))]
    pub interval: Option<String>,
    /// Bound of a try at the servers, of two that a check has; 1s unless given.
    #[schemars(length(max = 16), regex(pattern = SHORT_DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('50ms') && duration(self) <= duration('1h')", "must be from 50ms to 1h"))]
    pub timeout: Option<String>,
    /// Bound of the question to the second witness, that is the store, the garden, or the process beside
    /// etcd; 1s unless given.
    #[schemars(length(max = 16), regex(pattern = SHORT_DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('50ms') && duration(self) <= duration('1h')", "must be from 50ms to 1h"))]
    pub store_timeout: Option<String>,
    /// For how long an answer is good, from when it was asked for; 12s unless given.
    #[schemars(length(max = 16), regex(pattern = SHORT_DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('100ms') && duration(self) <= duration('1h')", "must be from 100ms to 1h"))]
    pub validity: Option<String>,
    /// How long a request may be under way after its permit has ended; 5s unless given.
    #[schemars(length(max = 16), regex(pattern = SHORT_DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('100ms') && duration(self) <= duration('1h')", "must be from 100ms to 1h"))]
    pub requests: Option<String>,
    /// For how long a server may show the former record to others after it has shown the new one; 2s unless
    /// given.
    #[schemars(length(max = 16), regex(pattern = SHORT_DURATION))]
    #[x_kube(validation = (
        "duration(self) == duration('0s') || duration(self) >= duration('1ms') && duration(self) <= duration('1h')",
        "must be from 1ms to 1h, or 0s"
    ))]
    pub propagation: Option<String>,
    /// For how long something on the way may answer in a server's place; 0s unless given. Nothing of ours
    /// keeps an answer.
    #[serde(rename = "dnsCacheTTL")]
    #[schemars(length(max = 16), regex(pattern = SHORT_DURATION))]
    #[x_kube(validation = (
        "duration(self) == duration('0s') || duration(self) >= duration('1ms') && duration(self) <= duration('1h')",
        "must be from 1ms to 1h, or 0s"
    ))]
    pub dns_cache_ttl: Option<String>,
    /// How long a seed waits that takes a shoot over without the help of this seed. The default of 24s is
    /// also the shortest wait. The other durations are checked against this field.
    #[schemars(length(max = 16), regex(pattern = SHORT_DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('24s') && duration(self) <= duration('1h')", "must be from 24s to 1h"))]
    pub fence: Option<String>,
    /// By how many parts of a million a clock may be wrong; 1000 unless given.
    #[schemars(range(min = 0, max = 100_000))]
    pub drift: Option<i32>,
    /// What etcd does when neither the servers nor the store say anything: it is not served any more
    /// (`Deactivate`), unless given. With `Tolerate` no time fences this seed: a shoot is taken over only on
    /// the word of a person that the seed is off.
    pub silence: Option<OwnerCheckSilence>,
}

impl OwnerChecks {
    /// The servers.
    ///
    /// # Errors
    /// The field and the value that is no address with a port.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let read = self.authorities.iter().map(|text| {
            text.parse().map_err(|_| {
                format!(
                    "{text:?} in spec.settings.ownerChecks.authorities of the Seed is no address with a port: correct it"
                )
            })
        });
        read.collect()
    }

    /// The intervals and bounds by field, as they are given.
    #[must_use]
    pub fn durations(&self) -> [(&'static str, Option<&str>); 8] {
        [
            ("interval", self.interval.as_deref()),
            ("timeout", self.timeout.as_deref()),
            ("storeTimeout", self.store_timeout.as_deref()),
            ("validity", self.validity.as_deref()),
            ("requests", self.requests.as_deref()),
            ("propagation", self.propagation.as_deref()),
            ("dnsCacheTTL", self.dns_cache_ttl.as_deref()),
            ("fence", self.fence.as_deref()),
        ]
    }

    /// Whether etcd is served while nobody says whose the shoot is.
    #[must_use]
    pub fn tolerates_silence(&self) -> bool {
        self.silence == Some(OwnerCheckSilence::Tolerate)
    }
}
