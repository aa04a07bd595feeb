//! Whether a seed publishes ownership in DNS, the servers for owner checks, and the validity of an answer.

use std::net::SocketAddr;

use crate::{
    derive::{Deserialize, KubeSchema, Serialize, skip_serializing_none},
    druid::OwnerCheckSilence,
};

/// An address with a port, as `192.0.2.1:53` or `[2001:db8::1]:53`.
const ADDRESS_AND_PORT: &str = r"^([0-9.]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}$";

/// Go's notation of a duration, short enough for a comparison of the value.
const SHORT_DURATION: &str = r"^([0-9]{1,6}(\.[0-9]{1,3})?(ns|us|µs|ms|s|m|h))+$";

/// Whether the seed publishes ownership in DNS, the servers for owner checks, and the validity of an answer
/// (docs/understand/ownership.md, "Time"). A destination waits for the longest `fence` of those Seeds that
/// may still have processes of the shoot.
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
    /// DNS servers of the zone with the seed's internal names, as `address:port`. Absent to find the servers
    /// by the NS records of the zone. All seeds must name the same servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 64), regex(pattern = ADDRESS_AND_PORT)))]
    pub authorities: Vec<String>,
    /// Time between two checks of the owner of a shoot. Default: 4s.
    #[schemars(length(max = 16), regex(pattern = SHORT_DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('100ms') && duration(self) <= duration('1h')", "must be from 100ms to 1h"))]
    pub interval: Option<String>,
    /// Longest duration of a single try to ask the DNS servers. A check has two tries. Default: 1s.
    #[schemars(length(max = 16), regex(pattern = SHORT_DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('50ms') && duration(self) <= duration('1h')", "must be from 50ms to 1h"))]
    pub timeout: Option<String>,
    /// Longest duration of a request to the second witness: the store, the garden, or the process beside
    /// etcd. Default: 1s.
    #[schemars(length(max = 16), regex(pattern = SHORT_DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('50ms') && duration(self) <= duration('1h')", "must be from 50ms to 1h"))]
    pub store_timeout: Option<String>,
    /// Validity of an answer, from the time of the question. Default: 12s.
    #[schemars(length(max = 16), regex(pattern = SHORT_DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('100ms') && duration(self) <= duration('1h')", "must be from 100ms to 1h"))]
    pub validity: Option<String>,
    /// The longest time for which a request may continue after the permit has ended. Default: 5s.
    #[schemars(length(max = 16), regex(pattern = SHORT_DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('100ms') && duration(self) <= duration('1h')", "must be from 100ms to 1h"))]
    pub requests: Option<String>,
    /// The longest time for which a DNS server may still show the former record to some clients after showing
    /// the new record. Default: 2s.
    #[schemars(length(max = 16), regex(pattern = SHORT_DURATION))]
    #[x_kube(validation = (
        "duration(self) == duration('0s') || duration(self) >= duration('1ms') && duration(self) <= duration('1h')",
        "must be from 1ms to 1h, or 0s"
    ))]
    pub propagation: Option<String>,
    /// The longest time for which a DNS cache between a process and the servers may answer. Default: 0s. The
    /// processes of Repot cache no answer.
    #[serde(rename = "dnsCacheTTL")]
    #[schemars(length(max = 16), regex(pattern = SHORT_DURATION))]
    #[x_kube(validation = (
        "duration(self) == duration('0s') || duration(self) >= duration('1ms') && duration(self) <= duration('1h')",
        "must be from 1ms to 1h, or 0s"
    ))]
    pub dns_cache_ttl: Option<String>,
    /// Time for which a seed waits that takes a shoot over without the help of this seed. The default of 24s
    /// is also the shortest wait. The other durations are checked against this field.
    #[schemars(length(max = 16), regex(pattern = SHORT_DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('24s') && duration(self) <= duration('1h')", "must be from 24s to 1h"))]
    pub fence: Option<String>,
    /// Highest error of a clock, in parts of a million. Default: 1000.
    #[schemars(range(min = 0, max = 100_000))]
    pub drift: Option<i32>,
    /// Behaviour of etcd when neither the DNS servers nor the store answer. Default: `Deactivate`, etcd is no
    /// longer served. With `Tolerate`, waiting cannot fence this seed: a takeover needs the statement of a
    /// person that the seed is off.
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

    /// The intervals and bounds by field, unchanged.
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

    /// Whether etcd is served while no witness answers about the owner.
    #[must_use]
    pub fn tolerates_silence(&self) -> bool {
        self.silence == Some(OwnerCheckSilence::Tolerate)
    }
}
