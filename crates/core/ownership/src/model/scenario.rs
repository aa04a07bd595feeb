//! The part of the protocol that a run of the model explores, and the rule that is switched off.

use std::sync::OnceLock;
use std::time::Duration;

use permit::HostClock;

use crate::settings::{Settings, Terms};

/// The seeds. An identity belongs to a seed, not to an epoch of the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Seed {
    A,
    B,
    C,
}

/// A rule of section "What breaks without a rule", switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Off {
    /// No rule is off.
    Nothing,
    /// A write in the garden does not test the state that was read.
    TestedGrant,
    /// The write tests the epoch, and not the rest.
    WholeTest,
    /// Seeds may take the steps of every seed.
    Writers,
    /// The fence begins when DNS shows the new owner.
    FenceAfterBucket,
    /// The fence begins when the first server shows the new owner.
    FenceAfterAllServers,
    /// Validity counts from the answer.
    ValidityFromSending,
    /// Answers of caches count.
    Authoritative,
    /// An update of DNS does not test the state that was read.
    ConditionalUpdate,
    /// Identities are compared, epochs are not.
    EpochCompared,
    /// A stopped sidecar does not stop etcd.
    GateInPath,
    /// The final snapshot is taken before the mark is on the disk.
    DurableSeal,
    /// Clouds may be changed as soon as etcd may be opened.
    TwoGates,
    /// The fence does not count requests that are under way.
    RequestsInFence,
    /// The fence does not count hidden replicas.
    PropagationInFence,
    /// The fence does not count drift.
    DriftInFence,
    /// A stopped process wakes with the remaining time from before the stop.
    ClockCountsAll,
    /// A missing object counts as Owned.
    MissingIsUnknown,
    /// The chain is chosen again.
    ChainOnce,
    /// Any content of a data directory is used.
    ForeignData,
    /// A relay passes its own answer on with full validity.
    RelayTellsWhatIsLeft,
    /// A source that received the request to stop counts as drained.
    DrainedIsJudged,
    /// A hand-over counts although the owner record still names the source.
    HandOverConfirmed,
    /// A claimant relies on phases that the claimant has not noted in the seed.
    PhaseNoted,
    /// A deleted identity ends an epoch, whatever the second witness says.
    DeletionNeedsWitness,
    /// Another identity beside an epoch that has just begun ends that epoch.
    FreshEpoch,
    /// The fence asks only the servers of the destination.
    ServersOfFormerSeeds,
    /// The fence asks the servers of the destination and of the seed before the destination.
    ServersOfAllFormerSeeds,
    /// No reading ends a permit after a pause by the hypervisor.
    HostClock,
    /// The fence does not count a pause that no reading shows.
    PauseInFence,
    /// The fence does not count the second until the host clock is read.
    ReadingInFence,
}

/// A run of the model. Bits of the masks are epochs.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) off: Option<Off>,
    /// The events that must happen in the run (`check`).
    pub(super) sees: &'static [&'static str],
    /// The seeds that may own the shoot, the first owner first.
    pub(super) seats: &'static [Seed],
    /// Backup processes, actuators and gardenlets that are modelled in detail; the remaining sites take
    /// permitted actions at any time.
    pub(super) sidecars: u8,
    pub(super) actuators: u8,
    pub(super) gardenlets: u8,
    /// The last epoch that is granted.
    pub(super) last: i64,
    pub(super) servers: usize,
    /// The servers that the processes of each seed ask, as bits.
    pub(super) lists: [u8; 3],
    /// A takeover between seeds with different lists is refused.
    pub(super) refuses_other_lists: bool,
    /// Hypervisors pause machines. No process is stopped for a different reason then.
    pub(super) host_pauses: bool,
    /// A move with the source's help is possible, and the cancellation of such a move.
    pub(super) planned: bool,
    /// A move without the source's help.
    pub(super) forced: bool,
    /// A stolen certificate hands over in the name of the first owner, whose processes go on and delete no
    /// record.
    pub(super) forged: bool,
    /// A stolen certificate records phases in the name of a claimant, whose gardenlet is honest.
    pub(super) forged_phases: bool,
    pub(super) deletion: bool,
    /// One write to the garden, and one to DNS, may be under way for any time.
    pub(super) late_writes: bool,
    pub(super) late_updates: bool,
    /// Seeds try steps that belong to another writer.
    pub(super) strangers: bool,
    /// A stranger deletes the owner record once, at any time.
    pub(super) slip: bool,
    /// Replicas that are behind may be behind with either of the two names.
    pub(super) out_of_step: bool,
    /// Data directories are lost.
    pub(super) data_loss: bool,
    pub(super) caches: bool,
    /// A clock of the source loses a second, and a clock of the destination gains a second.
    pub(super) drift: bool,
    pub(super) settings: Settings,
    /// Seconds by which the fence is shorter than the least fence.
    pub(super) fence_less: u64,
    /// Sidecars that are not modelled in detail seal, at any time after the permitted moment.
    pub(super) others_seal: bool,
    pub(super) waits_by: OnceLock<Terms>,
}

impl Scenario {
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            off: None,
            sees: &["fence", "acts"],
            seats: &[Seed::A, Seed::B],
            sidecars: 0,
            actuators: 0,
            gardenlets: 0,
            last: 2,
            servers: 1,
            lists: [0b11; 3],
            refuses_other_lists: false,
            host_pauses: false,
            planned: false,
            forced: true,
            forged: false,
            forged_phases: false,
            deletion: false,
            late_writes: false,
            late_updates: false,
            strangers: false,
            slip: false,
            out_of_step: false,
            data_loss: false,
            caches: true,
            drift: false,
            settings: settings(1, 2, 1, 0),
            fence_less: 0,
            others_seal: false,
            waits_by: OnceLock::new(),
        }
    }

    pub(super) fn is_on(&self, rule: Off) -> bool {
        self.off != Some(rule)
    }

    /// The terms by which permits are judged.
    pub(super) fn terms(&self) -> Terms {
        Terms::new(Settings {
            fence: Duration::from_secs(60),
            ..self.settings
        })
        .unwrap()
    }

    /// The terms by which a destination waits: the least fence of these settings, in whole seconds.
    pub(super) fn fence_terms(&self) -> &Terms {
        self.waits_by.get_or_init(|| self.least())
    }

    fn least(&self) -> Terms {
        let mut settings = self.settings;
        settings.pause = self.counted_pause();
        // Less than a thousandth of a tick.
        let nothing = Duration::from_nanos(1);
        match self.off {
            Some(Off::RequestsInFence) => settings.requests = nothing,
            Some(Off::PropagationInFence) => settings.propagation = Duration::ZERO,
            Some(Off::DriftInFence) => settings.drift = 0,
            _ => {}
        }
        let whole = settings
            .least_fence()
            .as_millis()
            .saturating_sub(1)
            .div_ceil(1000);
        let fence = u64::try_from(whole).unwrap() - self.fence_less;
        // `Terms::new` would refuse a fence that is too short, so the settings below pass any fence: the run
        // shows the effect of that fence.
        settings.fence = Duration::from_secs(fence);
        settings.propagation = Duration::ZERO;
        settings.requests = nothing;
        settings.pause = Duration::ZERO;
        settings.validity = settings.interval * 2 + settings.check_takes();
        settings.drift = 0;
        Terms::new(settings).unwrap()
    }

    /// The time that the fence counts for a pause that no reading shows.
    fn counted_pause(&self) -> Duration {
        match self.off {
            Some(Off::PauseInFence) => Duration::ZERO,
            Some(Off::ReadingInFence) => self.settings.pause - HostClock::READ_EVERY,
            _ => self.settings.pause,
        }
    }

    /// Seconds for which all witnesses must have shown an epoch before the epoch may open, independent of the
    /// destination.
    pub(super) fn needed(&self) -> u8 {
        let settings = self.settings;
        let needed = settings.propagation + settings.validity + settings.requests + self.counted_pause();
        u8::try_from(needed.as_secs()).unwrap()
    }

    /// The servers that the processes of a seed ask.
    pub(super) fn list(&self, seed: Seed) -> impl Iterator<Item = usize> + Clone + use<> {
        let list = self.lists[seed as usize];
        (0..self.servers).filter(move |server| list >> server & 1 == 1)
    }

    pub(super) fn validity(&self) -> u8 {
        u8::try_from(self.settings.validity.as_secs()).unwrap()
    }

    pub(super) fn requests(&self) -> u8 {
        u8::try_from(self.settings.requests.as_secs()).unwrap()
    }

    pub(super) fn fence(&self) -> u8 {
        u8::try_from(self.fence_terms().fence().unwrap().as_secs()).unwrap()
    }
}

/// Seconds are ticks.
pub(super) fn settings(propagation: u64, validity: u64, requests: u64, drift: u32) -> Settings {
    Settings {
        interval: Duration::from_millis(30),
        timeout: Duration::from_millis(10),
        store_timeout: Duration::from_millis(10),
        validity: Duration::from_secs(validity),
        requests: Duration::from_secs(requests),
        propagation: Duration::from_secs(propagation),
        drift,
        pause: Duration::ZERO,
        ..Settings::default()
    }
}
