//! The identity of an operation in the logs and Events of this gardenlet.
//!
//! Promise: the source and the destination of a move, their processes beside etcd, and `status.uid` with
//! `status.ownership.epoch` of the Shoot lead to the same identity, so that a single search finds the whole
//! move.

use api::gardencore::{Shoot, shoot::ShootStatus};
use ownership::operation_id;
use placement::{Operation, names::uid};
use runtime::controller::events;
use tracing::{Instrument, info_span};

/// The identity of an operation, and the ownership epoch of this seed.
pub(crate) struct OperationIdentity {
    id: String,
    epoch: i64,
}

impl OperationIdentity {
    /// The identity of an operation that begins now.
    pub(crate) fn new(shoot: &Shoot, operation: Operation) -> Self {
        let epoch = shoot.status.as_ref().map_or(1, ShootStatus::epoch);
        match operation {
            Operation::Migrate => Self::of_move_from(shoot, epoch),
            _ => Self {
                id: operation_id(&uid(shoot), epoch),
                epoch,
            },
        }
    }

    /// The move that ended this epoch of this seed, for the work that a former seed has after the move. A
    /// move belongs to the epoch that the move begins.
    pub(crate) fn of_move_from(shoot: &Shoot, epoch: i64) -> Self {
        Self {
            id: operation_id(&uid(shoot), epoch + 1),
            epoch,
        }
    }

    /// The identity, as in the logs.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Runs work whose logs and Events contain the identity and the epoch.
    pub(crate) async fn scope<F: Future>(self, work: F) -> F::Output {
        let Self { id, epoch } = self;
        let span = info_span!("operation", operationID = %id, epoch);
        events::in_operation(&id, epoch, work.instrument(span)).await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use serde_json::json;
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    fn shoot(epoch: i64) -> Shoot {
        serde_json::from_value(json!({
            "metadata": {"name": "demo", "namespace": "garden-dev", "uid": "anew"},
            "spec": {"region": "r", "provider": {"type": "local"}, "kubernetes": {"version": "1.34.4"}},
            "status": {"uid": "u", "ownership": {"epoch": epoch}},
        }))
        .unwrap()
    }

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Log {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    #[tokio::test]
    async fn both_seeds_of_a_move_log_one_operation_and_their_own_epoch() {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt().json().with_writer(log.clone()).finish();
        let guard = tracing::subscriber::set_default(subscriber);
        let work = || async { tracing::info!("works") };
        for identity in [
            OperationIdentity::new(&shoot(2), Operation::Migrate),
            OperationIdentity::new(&shoot(3), Operation::Restore),
            OperationIdentity::of_move_from(&shoot(3), 2),
        ] {
            identity.scope(work()).await;
        }
        drop(guard);
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        let seen = log.lines().map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            (line["span"]["operationID"].clone(), line["span"]["epoch"].clone())
        });
        let expected = [
            (json!("u-3"), json!(2)),
            (json!("u-3"), json!(3)),
            (json!("u-3"), json!(2)),
        ];
        assert_eq!(seen.collect::<Vec<_>>(), expected);
    }
}
