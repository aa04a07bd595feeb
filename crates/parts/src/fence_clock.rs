//! From when a fence counts.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ownership::Terms;
use permit::{Clock, Moment};
use runtime::{Error, Result};

use crate::configuration_problem;

/// A timer may ring a little early by the clock that counts.
const A_LITTLE: Duration = Duration::from_millis(5);

/// When the fence of one run of one flow began. A run that is begun anew has not seen any witness, and counts from zero.
#[derive(Clone, Debug, Default)]
pub struct FenceClock {
    clock: Clock,
    shown: Arc<Mutex<Option<Moment>>>,
}

impl FenceClock {
    /// Every witness shows the destination at this moment. The first time counts: what they show once they show for good.
    pub fn begin(&self) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.get_or_insert_with(|| self.clock.now());
    }

    /// Whether it is behind.
    #[must_use]
    pub fn has_passed(&self, terms: &Terms) -> bool {
        terms.fence_has_passed(self.shown(), self.clock.now())
    }

    /// Waits until it is behind. Fails where it has not begun, and where no time makes one.
    pub(crate) async fn pass(&self, terms: &Terms) -> Result<()> {
        let Some(fence) = terms.fence() else {
            return Err(configuration_problem(
                "no time fences a seed that may go on for as long as nobody tells it otherwise",
            ));
        };
        let shown = self
            .shown()
            .ok_or_else(|| Error::bug("a fence is awaited that has not begun"))?;
        while !self.has_passed(terms) {
            let left = fence.saturating_sub(self.clock.now().since(shown));
            tokio::time::sleep(left + A_LITTLE).await;
        }
        Ok(())
    }

    fn shown(&self) -> Option<Moment> {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
