//! An epoch that goes on where an earlier one of the same seed has ended: a move was called off after its source had sealed its epoch,
//! or the shoot came back before another seed had opened its data. Nothing is copied, and nothing is lost.

use super::Initialize;
use super::data_dir::{Condition, inspect};
use crate::chain;
use crate::error::Result;
use crate::store::Recorded;
use ownership::keeps_data;

impl Initialize {
    /// Chooses the chain that the epoch begins with, once, from what lies in its own place. A place without any snapshot has none.
    pub(super) async fn record_what_it_goes_on_with(&self, origin: i64) -> Result<()> {
        let epoch = self.store.epoch();
        if self.store.recorded(epoch).await?.is_some() {
            return Ok(());
        }
        let Some(newest) = chain::newest(&self.store.history(origin).await?)? else {
            return Ok(());
        };
        let chosen = Recorded::of(&newest, epoch, origin);
        let recorded = self.store.record(chosen).await?;
        tracing::info!(
            epoch,
            origin,
            revision = recorded.last_revision,
            "the epoch goes on where an earlier one of this place has ended"
        );
        Ok(())
    }

    /// What data of that earlier epoch are worth. They hold all that its etcd ever acknowledged, also what no snapshot has.
    pub(super) async fn adopted(&self, condition: Condition, origin: Option<i64>) -> Result<Condition> {
        let epoch = self.store.epoch();
        let own = match condition {
            Condition::OfEpoch(own) if keeps_data(epoch, origin, own) => own,
            other => return Ok(other),
        };
        let found = inspect(&self.data_dir, &self.tools, own).await?;
        tracing::info!(
            origin,
            epoch,
            ?found,
            "the data directory is of the epoch that this one goes on with"
        );
        Ok(found)
    }
}
