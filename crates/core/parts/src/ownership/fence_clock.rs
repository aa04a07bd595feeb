//! The start of a fence, on the local monotonic clock, and the answer of the owner record about a hand-over.

use std::{
    collections::{BTreeSet, HashMap},
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use mutation::Mutation;
use ownership::Terms;
use permit::{Clock, Moment};
use runtime::{Error, Result};

use crate::configuration_problem;

/// A timer may fire slightly early relative to the clock of the fence.
const A_LITTLE: Duration = Duration::from_millis(5);

/// Start of the fence of a single epoch. A restarted process has not seen any witness, and counts from zero.
/// The owner record is a witness, too: a confirmed hand-over needs no fence, and no further question.
#[derive(Clone, Debug, Default)]
pub struct FenceClock {
    clock: Clock,
    begun: Arc<Mutex<Option<Begun>>>,
    hand_over_is_confirmed: Arc<AtomicBool>,
}

#[derive(Clone, Debug)]
struct Begun {
    /// All servers showed the destination at this moment.
    shown: Moment,
    /// Every server that has shown the destination.
    servers: BTreeSet<SocketAddr>,
}

impl FenceClock {
    /// Records that every witness, among them these DNS servers, shows the destination at this moment. A
    /// repeated call with known servers has no effect, because a witness that shows the destination keeps
    /// showing the destination. A new server begins the fence again: until this moment, the server may have
    /// extended a permit of a former owner.
    pub fn begin(&self, servers: impl IntoIterator<Item = SocketAddr>) {
        let servers: BTreeSet<_> = servers.into_iter().collect();
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = self.clock.now();
        match begun.as_mut() {
            Some(known) if servers.is_subset(&known.servers) => {}
            Some(known) => {
                known.shown = shown;
                known.servers.extend(servers);
            }
            None => *begun = Some(Begun { shown, servers }),
        }
    }

    /// Records that the owner record has confirmed the hand-over.
    pub(crate) fn note_confirmed_hand_over(&self) {
        self.hand_over_is_confirmed.store(true, Ordering::Relaxed);
    }

    /// Whether the owner record has confirmed the hand-over in an earlier attempt.
    pub(crate) fn is_hand_over_confirmed(&self) -> bool {
        self.hand_over_is_confirmed.load(Ordering::Relaxed)
    }

    /// Whether the fence has passed.
    #[must_use]
    pub fn has_passed(&self, terms: &Terms) -> bool {
        terms.fence_has_passed(self.shown(), self.clock.now()) || Mutation::FencePassesAtOnce.is_active()
    }

    /// Remaining time of the fence. Fails under the conditions of [`Self::pass`].
    pub(crate) fn left(&self, terms: &Terms) -> Result<Duration> {
        let Some(fence) = terms.fence() else {
            return Err(configuration_problem(
                "no time fences a seed that may go on for as long as nobody tells it otherwise",
            ));
        };
        let shown = self
            .shown()
            .ok_or_else(|| Error::bug("a fence is awaited that has not begun"))?;
        Ok(fence.saturating_sub(self.clock.now().since(shown)))
    }

    /// Time since the end of the fence; `None` before the end.
    pub(crate) fn behind(&self, terms: &Terms) -> Option<Duration> {
        let (fence, shown) = (terms.fence()?, self.shown()?);
        let passed = self.clock.now().since(shown);
        passed.checked_sub(fence)
    }

    /// Waits until the fence has passed. Fails when the fence has not begun, and when the terms allow no
    /// fence by time.
    pub(crate) async fn pass(&self, terms: &Terms) -> Result<()> {
        loop {
            let left = self.left(terms)?;
            if self.has_passed(terms) {
                return Ok(());
            }
            tokio::time::sleep(left + A_LITTLE).await;
        }
    }

    fn shown(&self) -> Option<Moment> {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.as_ref().map(|begun| begun.shown)
    }
}

/// The fences of a process. A repeated flow continues with the fence that the flow has begun.
#[derive(Clone, Debug, Default)]
pub struct Fences(Arc<Mutex<HashMap<String, (i64, FenceClock)>>>);

impl Fences {
    /// The fence of a shoot in this epoch. The start of a fence in a different epoch proves nothing for this
    /// epoch.
    #[must_use]
    pub fn get_clock(&self, uid: &str, epoch: i64) -> FenceClock {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(uid.to_owned()).or_default();
        if known.0 != epoch {
            *known = (epoch, FenceClock::default());
        }
        known.1.clone()
    }

    /// Drops the fence, once the shoot is held or gone.
    pub fn forget(&self, uid: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise each attempt would wait for the whole fence, twenty seconds without an API.
    #[test]
    fn a_fence_is_of_one_shoot_in_one_epoch_until_it_is_forgotten() {
        let fences = Fences::default();
        let begun = |uid: &str, epoch| fences.get_clock(uid, epoch).shown().is_some();
        fences.get_clock("a", 2).begin([]);
        assert!(begun("a", 2) && !begun("b", 2));
        assert!(!begun("a", 3), "another epoch is another fence");
        assert!(!begun("a", 2), "and nobody goes back to the one before");
        fences.get_clock("a", 2).begin([]);
        fences.forget("a");
        assert!(!begun("a", 2));
    }

    #[test]
    fn a_confirmed_hand_over_is_of_one_shoot_in_one_epoch() {
        let fences = Fences::default();
        let is_confirmed = |uid: &str, epoch| fences.get_clock(uid, epoch).is_hand_over_confirmed();
        fences.get_clock("a", 2).note_confirmed_hand_over();
        assert!(is_confirmed("a", 2) && !is_confirmed("b", 2));
        assert!(!is_confirmed("a", 3));
    }
}
