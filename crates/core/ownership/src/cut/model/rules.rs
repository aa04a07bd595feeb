//! The rules that a run switches off, and the scenarios.

use std::sync::OnceLock;
use std::time::Duration;

use super::sides::Budget;
use crate::settings::{Settings, Terms};

/// A rule of the cut, switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum CutRule {
    /// The record tests nothing.
    TestedRecord,
    /// The record does not test the attempt.
    TestedAttempt,
    /// A cancellation resets the number of attempts.
    AttemptOutlivesCancellation,
    /// The record names the attempt that the garden shows, instead of the attempt of the report.
    AttemptOfReport,
    /// The mark names the attempt that the garden shows, instead of the attempt with which the cut began.
    MarkOfBegunAttempt,
    /// The source opens again when a read of the garden does not show the record.
    GivenUpByWrite,
    /// Mark `Passed` is not synced before the record is sent.
    SyncedMark,
    /// A process with a new volume opens without having read the bucket.
    BucketIsRead,
    /// The cut begins without the present attempt in the bucket.
    AttemptInBucket,
    /// A process with a new volume opens when the garden still shows the attempt of the bucket.
    NewVolumeNeedsLaterAttempt,
    /// The end is read while the gate lets new requests pass.
    HoldBeforeEnd,
    /// The end is read while writes are under way.
    WritesEnd,
    /// Streams go on after the end was read.
    StreamsEnd,
    /// The follower counts a transaction that was sent and not answered.
    LastTransactionAnswered,
    /// The follower goes on after the proof.
    FollowerCloses,
    /// Revisions are compared, digests are not.
    DigestCompared,
    /// A restore in the same epoch skips no revisions.
    SkippedRevisions,
    /// The destination opens whatever data the destination has.
    ProofMatchesRecord,
    /// The destination keeps the proof in memory.
    SyncedProof,
    /// The destination follows again although the record of the proof may be under way.
    ProofKeptUntilGivenUp,
    /// The destination does not follow the sealed source again.
    FollowsAgain,
    /// The source deletes its data before the chain of the destination has the end.
    DataKeptUntilUploaded,
    /// Forwarding ends with the permit of the source.
    ForwardingOutlivesLost,
    /// Requests are forwarded to any epoch.
    ForwardedToLaterEpoch,
    /// A request that was forwarded once is never forwarded again.
    ForwardedTwice,
    /// The source forwards without a permit of the destination.
    RelayedPermit,
    /// The permit of the destination counts from the arrival of the answer.
    PermitFromSending,
    /// The destination reads the record from a cache.
    FreshRead,
    /// The fence of the third seed does not count drift.
    DriftInFence,
}

/// The part of the cut that a run explores.
#[derive(Clone, Debug)]
pub(super) struct CutScenario {
    pub(super) name: &'static str,
    pub(super) off: Option<CutRule>,
    /// Cuts may begin up to this attempt.
    pub(super) attempts: u32,
    /// The writes, the ends of leases, and the faults that a run may have.
    pub(super) budget: Budget,
    /// A client may give up a write.
    pub(super) gives_up_writes: bool,
    /// The cut does not wait for writes that the client gave up.
    pub(super) ignores_given_up_writes: bool,
    /// Clients of the destination's API server write, too.
    pub(super) via_destination: bool,
    /// Clocks count. Begins with the sealed source and the record under way; a third seed takes over.
    pub(super) timed: bool,
    /// The source forwards in a timed scenario.
    pub(super) forwards: bool,
    pub(super) drifts: bool,
    pub(super) validity: u8,
    pub(super) terms: OnceLock<Terms>,
    pub(super) fence: OnceLock<Terms>,
}

impl CutScenario {
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            off: None,
            attempts: 2,
            budget: Budget::of_writes(2),
            gives_up_writes: false,
            ignores_given_up_writes: false,
            via_destination: false,
            timed: false,
            forwards: false,
            drifts: false,
            validity: 2,
            terms: OnceLock::new(),
            fence: OnceLock::new(),
        }
    }

    pub(super) fn is_on(&self, rule: CutRule) -> bool {
        self.off != Some(rule)
    }

    /// The terms by which permits are judged.
    pub(super) fn terms(&self) -> &Terms {
        self.terms.get_or_init(|| {
            let fence = Duration::from_secs(60);
            Terms::new(Settings {
                fence,
                ..self.settings()
            })
            .unwrap()
        })
    }

    /// The terms by which the third seed waits: the least fence, in whole seconds.
    pub(super) fn fence_terms(&self) -> &Terms {
        self.fence.get_or_init(|| {
            let mut settings = self.settings();
            if !self.is_on(CutRule::DriftInFence) {
                settings.drift = 0;
            }
            let least = settings
                .least_fence()
                .as_millis()
                .saturating_sub(1)
                .div_ceil(1000);
            settings.fence = Duration::from_secs(u64::try_from(least).unwrap());
            // `Terms::new` would refuse a fence that is too short, so the settings below pass any fence.
            settings.drift = 0;
            settings.validity = settings.interval * 2 + settings.check_takes();
            Terms::new(settings).unwrap()
        })
    }

    /// Seconds are ticks. Requests to a cloud and hidden propagation are in the model of ownership.
    fn settings(&self) -> Settings {
        Settings {
            interval: Duration::from_millis(30),
            timeout: Duration::from_millis(10),
            store_timeout: Duration::from_millis(10),
            validity: Duration::from_secs(self.validity.into()),
            requests: Duration::from_nanos(1),
            propagation: Duration::ZERO,
            drift: if self.drifts { 100_000 } else { 0 },
            pause: Duration::ZERO,
            ..Settings::default()
        }
    }
}
