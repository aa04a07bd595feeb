//! The shoots that this process has lost (R17-61). The process starts no operation for a lost shoot until the
//! shoot has a later epoch. The Shoot reports the loss once.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use api::{
    gardencore::{Shoot, ShootStatus},
    meta::LastOperationType as Type,
};
use kube::ResourceExt;
use owner_checks::OWNERSHIP_LOST;
use runtime::{Result, clock, controller::Next};

use super::status_writer::{StatusObserver, StatusWriter};
use crate::{context::Context, shoot::operation::status};

/// The losses of a process, each for a shoot and an epoch.
#[derive(Debug, Default)]
pub(crate) struct LostShoots(Mutex<HashMap<String, ShootLoss>>);

#[derive(Debug)]
struct ShootLoss {
    epoch: i64,
    sentence: String,
    is_reported: bool,
}

impl LostShoots {
    /// Records the loss of the shoot in its present epoch.
    pub(crate) fn record(&self, shoot: &Shoot, sentence: &str) {
        let (uid, epoch) = key(shoot);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(&uid).is_some_and(|lost| lost.epoch >= epoch) {
            return;
        }
        let lost = ShootLoss {
            epoch,
            sentence: sentence.to_owned(),
            is_reported: false,
        };
        all.insert(uid, lost);
    }

    /// The text for a lost shoot. The epochs are compared with `<=`, since a garden that was restored from a
    /// backup may have an earlier epoch.
    pub(crate) fn find_loss(&self, shoot: &Shoot) -> Option<String> {
        let (uid, epoch) = key(shoot);
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&uid)
            .filter(|lost| epoch <= lost.epoch)
            .map(|lost| lost.sentence.clone())
    }

    /// The shoot is healthy or gone.
    pub(crate) fn forget(&self, shoot: &Shoot) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&key(shoot).0);
    }

    /// Whether this call is the first to report the loss.
    fn is_first_report(&self, shoot: &Shoot) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = all.get_mut(&key(shoot).0);
        lost.is_some_and(|lost| !std::mem::replace(&mut lost.is_reported, true))
    }
}

fn key(shoot: &Shoot) -> (String, i64) {
    let epoch = shoot.status.as_ref().map_or(1, ShootStatus::epoch);
    (shoot.uid().unwrap_or_default(), epoch)
}

/// Reports the loss in the Shoot, unless the Shoot reports the loss already. If the garden names a different
/// owner, the write is refused: only the owner of a shoot writes the status.
pub(crate) async fn report_loss(
    context: &Context,
    lost: &LostShoots,
    (shoot, type_): (&Shoot, Type),
    sentence: &str,
    observer: &dyn StatusObserver,
) -> Result<Next> {
    let status_writer = StatusWriter::new(context, shoot, type_, observer);
    let patch = |newest: &Shoot| Ok(status::lost(newest, type_, sentence, clock::now_k8s()));
    let written = status_writer.write_if(patch).await?;
    if lost.is_first_report(&written) {
        tracing::error!(shoot = written.name_any(), "{sentence}");
        let events = &context.garden_events;
        events.warning(written.as_ref(), OWNERSHIP_LOST, sentence).await;
    }
    // The next epoch.
    Ok(Next::Change)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn shoot(uid: &str, epoch: i64) -> Shoot {
        let shoot = json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web", "uid": uid},
            "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
            "status": {"ownership": {"epoch": epoch}},
        });
        serde_json::from_value(shoot).unwrap()
    }

    /// R17-61: also the tries that begin later.
    #[test]
    fn a_shoot_is_lost_until_its_epoch_is_a_later_one() {
        let lost = LostShoots::default();
        assert_eq!(lost.find_loss(&shoot("a", 3)), None);
        lost.record(&shoot("a", 3), "lost in 3");
        assert_eq!(lost.find_loss(&shoot("a", 3)).as_deref(), Some("lost in 3"));
        assert_eq!(lost.find_loss(&shoot("b", 3)), None, "another shoot of that name");
        assert!(
            lost.find_loss(&shoot("a", 2)).is_some(),
            "the garden is older than DNS"
        );
        assert_eq!(lost.find_loss(&shoot("a", 4)), None);
        lost.record(&shoot("a", 5), "lost in 5");
        lost.record(&shoot("a", 4), "of a process that comes late");
        assert_eq!(lost.find_loss(&shoot("a", 5)).as_deref(), Some("lost in 5"));
        lost.forget(&shoot("a", 5));
        assert_eq!(lost.find_loss(&shoot("a", 5)), None);
    }

    #[test]
    fn it_is_told_once_an_epoch() {
        let lost = LostShoots::default();
        assert!(!lost.is_first_report(&shoot("a", 3)));
        lost.record(&shoot("a", 3), "lost");
        assert!(lost.is_first_report(&shoot("a", 3)));
        lost.record(&shoot("a", 3), "lost");
        assert!(!lost.is_first_report(&shoot("a", 3)));
        lost.record(&shoot("a", 6), "lost");
        assert!(lost.is_first_report(&shoot("a", 6)));
    }
}
