//! The ownership state that probes, users and the relay read: served from memory, at any time.

use crate::clock;
use crate::error::{Class, Error};
use crate::metrics::Metrics;
use ownership::{Answer, Authorities, OWNED_BY_BUCKET_ALONE, RelayedAnswer, Report, Settings, SidecarState};
use permit::{Clock, Permit};
use sidecar_protocol::SidecarOwnership;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The last answer, if the answer confirms the owner.
const OWNS: &str = "the seed owns the shoot";

/// Why an answer that confirmed the owner expired.
const TOO_LATE: &str = "its last confirmation is too old: this process, or its machine, was stopped";

#[derive(Default)]
struct Inner {
    state: SidecarState,
    /// The permit in use while the state is `Serving`.
    permit: Option<Permit>,
    /// The last answer, or the reason for the seal.
    why: String,
    /// The result of the last SIGTERM to etcd.
    etcd: Option<String>,
}

/// Shared between the controller, which writes, and the HTTP interface, which reads.
pub struct OwnershipStatus {
    inner: Mutex<Inner>,
    expected: Arc<Notify>,
    metrics: Arc<Metrics>,
    epoch: i64,
    settings: Settings,
    authorities: Arc<Authorities>,
    /// The gardenlet has recorded phase `Sealing` of this epoch. In memory only: the gardenlet repeats its
    /// report while it waits for the final snapshot.
    is_sealing: AtomicBool,
}

impl OwnershipStatus {
    /// Initially no authority has confirmed the owner. This process follows `settings` and asks
    /// `authorities`.
    #[must_use]
    pub fn new(epoch: i64, settings: Settings, authorities: Arc<Authorities>, metrics: Arc<Metrics>) -> Self {
        let status = Self {
            inner: Mutex::default(),
            expected: Arc::default(),
            metrics,
            epoch,
            settings,
            authorities,
            is_sealing: AtomicBool::default(),
        };
        status.set_state_metric(SidecarState::Waiting);
        status
    }

    fn with<T>(&self, look: impl FnOnce(&mut Inner) -> T) -> T {
        look(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A caller waits for the end of the epoch: the controller checks at once instead of at the next
    /// interval.
    pub fn request_check(&self) {
        self.expected.notify_one();
    }

    /// The gardenlet reports that it has recorded phase `Sealing` of this epoch. From now on a deleted owner
    /// record ends the epoch, and the next check begins at once.
    ///
    /// # Errors
    /// The report names an epoch that differs from the epoch of this process.
    pub fn record_sealing(&self, epoch: i64) -> Result<(), Error> {
        if epoch != self.epoch {
            let what = format!(
                "phase Sealing of ownership epoch {epoch} was reported, and this process runs in epoch {}: wait until etcd-druid has \
                 started it in the epoch of the Etcd",
                self.epoch
            );
            return Err(Error::new(Class::OtherEpoch, what));
        }
        if !self.is_sealing.swap(true, Ordering::SeqCst) {
            tracing::info!(
                epoch,
                "the gardenlet has recorded phase Sealing: a deleted owner record ends this epoch"
            );
        }
        self.request_check();
        Ok(())
    }

    /// Whether phase `Sealing` of this epoch was reported.
    pub(crate) fn is_sealing(&self, epoch: i64) -> bool {
        epoch == self.epoch && self.is_sealing.load(Ordering::SeqCst)
    }

    /// The notification that [`OwnershipStatus::request_check`] triggers.
    pub(super) fn expected(&self) -> Arc<Notify> {
        Arc::clone(&self.expected)
    }

    /// The present state of the ownership.
    #[must_use]
    pub fn state(&self) -> SidecarState {
        self.with(|inner| inner.state)
    }

    /// Ready means: clients may be sent here at this moment (R17-40). If not, why.
    pub fn ready(&self) -> Result<(), String> {
        self.with(|inner| match (&inner.permit, inner.state) {
            // Sooner than the controller, in a process that was stopped.
            (Some(permit), SidecarState::Serving) => permit.check().map_err(|refused| refused.to_string()),
            (_, state) => Err(format!("{}: {}", state.as_str(), inner.why)),
        })
    }

    /// The answer for processes that use this process as their second witness: the verdict and its remaining
    /// validity, counted from the time of the request. etcd-druid also reads the effect of silence on this
    /// process, and the shortest time that a destination must wait. The spec of the Etcd may differ from the
    /// flags with which this process was started.
    ///
    /// An unnoticed pause of this machine lengthens the rest of the permit, and so does a pause of the
    /// machine of the asking process. The fence counts only a single such pause, so this process subtracts
    /// its own.
    #[must_use]
    pub fn ownership(&self) -> SidecarOwnership {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.with(|inner| {
            let left = match (&inner.permit, inner.state) {
                (Some(permit), SidecarState::Serving) if permit.is_valid() => {
                    let left = permit.valid_until().saturating_duration_since(Instant::now());
                    left.saturating_sub(self.settings.pause)
                }
                _ => Duration::ZERO,
            };
            let said = RelayedAnswer::from_permit(inner.state == SidecarState::Sealed, left);
            SidecarOwnership {
                epoch: Some(self.epoch),
                answer: Some(said.as_str().to_owned()),
                valid_for_milliseconds: milliseconds(left),
                state: Some(inner.state.as_str().into()),
                why: inner.why.clone(),
                etcd: inner.etcd.clone(),
                silence: Some(self.settings.silence.as_str().to_owned()),
                least_fence_milliseconds: Some(milliseconds(self.settings.least_fence())),
                servers: self
                    .authorities
                    .known_servers()
                    .iter()
                    .map(ToString::to_string)
                    .collect(),
                servers_named: Some(self.authorities.are_named()),
                host_clock: Some(Clock::default().host_clock().as_str().to_owned()),
            }
        })
    }

    /// Records the last report.
    pub(super) fn record_report(&self, report: &Report) {
        let Some(last) = &report.last else { return };
        let why = match &last.answer {
            Answer::Owned { .. } => {
                self.metrics.owned(clock::now().as_second());
                self.metrics.owner_record_confirmed(last.silent.is_none());
                match &last.silent {
                    None => OWNS.to_owned(),
                    Some(silent) => format!("{OWNED_BY_BUCKET_ALONE}{silent}"),
                }
            }
            Answer::Lost(loss) => loss.to_string(),
            Answer::Unknown(why) => {
                self.metrics.owner_record_confirmed(false);
                why.clone()
            }
        };
        self.with(|inner| inner.why = why);
    }

    /// Changes the state; only `Serving` has a permit.
    pub(super) fn change_state(&self, state: SidecarState, permit: Option<Permit>) {
        let (before, why) = self.with(|inner| {
            let before = std::mem::replace(&mut inner.state, state);
            if state == SidecarState::Suspended && inner.why.starts_with(OWNS) {
                TOO_LATE.clone_into(&mut inner.why);
            }
            inner.permit = permit;
            (before, inner.why.clone())
        });
        if before == state {
            return;
        }
        self.set_state_metric(state);
        let (before, state, epoch) = (before.as_str(), state.as_str(), self.epoch);
        if state == SidecarState::Serving.as_str() {
            tracing::info!(before, state, epoch, why, "clients are served");
        } else {
            tracing::warn!(before, state, epoch, why, "clients are not served");
        }
    }

    /// Seals with a reason, without an answer of an authority.
    pub(super) fn seal_with_reason(&self, why: &str) {
        self.with(|inner| why.clone_into(&mut inner.why));
        self.change_state(SidecarState::Sealed, None);
    }

    /// Records the result of the SIGTERM to etcd.
    pub(super) fn record_sigterm(&self, done: &Result<i32, String>) {
        let what = match done {
            Ok(pid) => {
                tracing::info!(pid, "etcd was told to end");
                format!("process {pid} was told to end")
            }
            Err(why) => {
                tracing::warn!(why, "etcd was not told to end; the gate is shut");
                why.clone()
            }
        };
        self.with(|inner| inner.etcd = Some(what));
    }

    fn set_state_metric(&self, state: SidecarState) {
        for other in SidecarState::ALL {
            self.metrics.ownership(other.as_str(), other == state);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use ownership::Silence;
    use permit::Issuer;
    use serde_json::{Value, json};
    use std::sync::atomic::AtomicU64;

    const HOUR: Duration = Duration::from_secs(3600);

    fn authorities() -> Arc<Authorities> {
        let servers = ["192.0.2.2:53", "192.0.2.1:5353"].map(|server| server.parse().unwrap());
        Arc::new(Authorities::named("example.test", servers).unwrap())
    }

    /// The answer as JSON.
    fn answer(status: &OwnershipStatus) -> Value {
        json!(status.ownership())
    }

    /// A destination asks these servers when the seed of this process is dead.
    #[tokio::test]
    async fn the_servers_that_the_process_asks_are_reported() {
        let status = OwnershipStatus::new(3, Settings::default(), authorities(), Arc::default());
        let said = answer(&status);
        assert_eq!(
            said["servers"],
            json!(["192.0.2.1:5353", "192.0.2.2:53"]),
            "{said}"
        );
        assert_eq!(said["serversNamed"], true, "{said}");
        let unnamed = Arc::new(Authorities::discover("example.test").unwrap());
        let said = answer(&OwnershipStatus::new(
            3,
            Settings::default(),
            unnamed,
            Arc::default(),
        ));
        assert_eq!(
            (&said["servers"], &said["serversNamed"]),
            (&json!([]), &json!(false))
        );
    }

    /// A takeover of a seed whose clocks may stop needs a human approval.
    #[tokio::test]
    async fn the_clock_of_the_host_that_guards_the_process_is_reported() {
        let status = OwnershipStatus::new(3, Settings::default(), authorities(), Arc::default());
        let reads_rtc = std::fs::read_dir("/sys/class/rtc").is_ok_and(|rtcs| rtcs.count() > 0);
        let reported = answer(&status)["hostClock"].as_str().unwrap().to_owned();
        let expected: &[&str] = if reads_rtc {
            &["Rtc", "Ptp", "None"]
        } else {
            &["Ptp", "None"]
        };
        assert!(expected.contains(&reported.as_str()), "{reported}");
    }

    #[tokio::test]
    async fn what_is_told_follows_the_clock_not_the_last_event() {
        let status = OwnershipStatus::new(3, Settings::default(), authorities(), Arc::default());
        assert!(status.ready().unwrap_err().starts_with("Waiting: "));
        assert_eq!(answer(&status)["answer"], "Unknown");
        // A machine that is suspended: an hour is longer than this test takes.
        let suspended = Arc::<AtomicU64>::default();
        let hours = suspended.clone();
        let clock =
            Clock::with_suspension(move || HOUR * u32::try_from(hours.load(Ordering::SeqCst)).unwrap());
        let issuer = Issuer::new("a test", clock.clone(), clock.now() + 12 * HOUR);
        status.change_state(SidecarState::Serving, Some(issuer.permit()));
        assert_eq!(status.ready(), Ok(()));
        suspended.store(5, Ordering::SeqCst);
        let said = answer(&status);
        assert_eq!((&said["answer"], &said["epoch"]), (&"Owned".into(), &3.into()));
        let left = said["validForMilliseconds"].as_u64().unwrap();
        assert!((21_600_000..=25_200_000).contains(&left), "{said}");
        // No process has noticed yet that the permit expired.
        suspended.store(12, Ordering::SeqCst);
        assert!(status.ready().unwrap_err().contains("its time is over"));
        let said = answer(&status);
        assert_eq!(
            (&said["answer"], &said["validForMilliseconds"]),
            (&"Unknown".into(), &0.into())
        );
        status.seal_with_reason("epoch 4 has begun");
        assert_eq!(answer(&status)["answer"], "Sealed");
        assert_eq!(status.ready(), Err("Sealed: epoch 4 has begun".to_owned()));
    }

    #[tokio::test]
    async fn phase_sealing_is_recorded_for_the_own_epoch_alone_and_prompts_a_check() {
        let status = OwnershipStatus::new(3, Settings::default(), authorities(), Arc::default());
        for other in [2, 4] {
            let refused = status.record_sealing(other).unwrap_err();
            assert_eq!(refused.class, Class::OtherEpoch);
        }
        assert!(!status.is_sealing(3));
        for _ in 0..2 {
            status.record_sealing(3).unwrap();
            assert!(status.is_sealing(3) && !status.is_sealing(4));
            status.expected().notified().await;
        }
    }

    /// A missing record stops a planned move, long after the record was deleted.
    #[tokio::test]
    async fn an_owner_that_the_record_does_not_confirm_is_reported_with_the_servers() {
        let metrics = Arc::<Metrics>::default();
        let status = OwnershipStatus::new(3, Settings::default(), authorities(), metrics.clone());
        for (silent, why, confirmed) in [
            (None, OWNS.to_owned(), 1),
            (
                Some("192.0.2.1:5353: the owner record names no seed".to_owned()),
                format!("{OWNS} by its bucket alone: 192.0.2.1:5353: the owner record names no seed"),
                0,
            ),
        ] {
            status.record_report(&Report {
                last: Some(ownership::Checked {
                    asked: Clock::default().now(),
                    answer: Answer::Owned { at_most: None },
                    silent,
                }),
                standing: ownership::Standing::Unconfirmed,
            });
            assert_eq!(answer(&status)["why"], why);
            let line = format!("etcdbr_owner_record_confirmed {confirmed}");
            assert!(metrics.text().contains(&line), "{}", metrics.text());
        }
    }

    #[tokio::test]
    async fn it_says_by_which_settings_it_goes() {
        let longer = Settings {
            validity: Duration::from_secs(15),
            drift: 0,
            fence: Duration::from_secs(30),
            ..Settings::default()
        };
        let tolerates = Settings {
            silence: Silence::Tolerate,
            ..Settings::default()
        };
        for (settings, silence, fence) in [
            (Settings::default(), "Deactivate", 23_036),
            (longer, "Deactivate", 26_000),
            (tolerates, "Tolerate", 23_036),
        ] {
            let status = OwnershipStatus::new(3, settings, authorities(), Arc::default());
            // In any state.
            for _ in 0..2 {
                let said = answer(&status);
                assert_eq!(said["silence"], silence, "{said}");
                assert_eq!(said["leastFenceMilliseconds"], fence, "{said}");
                status.seal_with_reason("epoch 4 has begun");
            }
        }
    }
}
