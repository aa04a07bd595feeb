//! Guests: controllers of the gardenlet that a leader migration can hand over to this provider
//! (docs/understand/leader-migration.md). This module also holds the guests' inputs.
//!
//! Promises: a process that gets a guest has all inputs of the guest, or ends before the first request for a
//! lock. A process without a guest never connects to the garden.

use std::{path::PathBuf, sync::Arc, time::Duration};

use api::constants::seed_user;
use backup_controllers::{backup_bucket, backup_entry};
use futures::future::{BoxFuture, FutureExt};
use leader_migration::Locks;
use manager::PROVIDER_LOCAL;
use runtime::{
    bounds::SharePercent,
    client::{Cluster, Connection, Garden},
    controller::{Events, runner::Settings},
};

use crate::{
    MANAGER,
    context::{Context, Guests},
};

/// Flags for the command line of the process.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(
    next_help_heading = "Guests: only where a leader migration hands over the gardenlet's backup controllers"
)]
#[group(id = "guests")]
pub struct Flags {
    /// Kubeconfig of the garden, with the identity `gardener.cloud:system:seed:<seed name>`.
    #[arg(long)]
    pub garden_kubeconfig: Option<PathBuf>,

    /// Name of the seed in the garden.
    #[arg(long)]
    pub seed_name: Option<String>,

    /// Retention time of the backups of a deleted shoot, in hours. There is no default: the value must equal
    /// the gardenlet's value, or backups would be deleted early because a controller moved.
    #[arg(long)]
    pub backup_entry_deletion_grace_period_hours: Option<u32>,
}

type Start = fn(Arc<backup_controllers::Context>) -> BoxFuture<'static, ()>;

/// In the order of [`manager::PROVIDER_LOCAL`].
const GUESTS: &[(&str, Start)] = &[
    ("backup-bucket", |context| backup_bucket::run(context).boxed()),
    ("backup-entry", |context| backup_entry::run(context).boxed()),
];

impl Flags {
    /// The inputs of the guests that run in this process according to the locks; `None` without a guest.
    ///
    /// # Errors
    /// A flag that a guest needs is missing, or the kubeconfig is invalid.
    pub async fn open(&self, locks: &Locks) -> Result<Option<Guests>, String> {
        let guests = PROVIDER_LOCAL.guests.iter().copied();
        let handed_over: Vec<&str> = guests.filter(|name| locks.runs(name)).collect();
        if handed_over.is_empty() {
            return Ok(None);
        }
        let (Some(kubeconfig), Some(seed_name), Some(hours)) = (
            &self.garden_kubeconfig,
            &self.seed_name,
            self.backup_entry_deletion_grace_period_hours,
        ) else {
            return Err(format!(
                "the leader migration configuration hands {} over to {}, which needs {} for that: give what is missing, or no \
                 such entries",
                handed_over.join(" and "),
                MANAGER.0,
                self.missing().join(", ")
            ));
        };
        Ok(Some(Guests {
            garden: Connection::of_flag("--garden-kubeconfig", Some(kubeconfig)).await?,
            seed_name: seed_name.clone(),
            deletion_grace: Duration::from_secs(3600) * hours,
        }))
    }

    fn missing(&self) -> Vec<&'static str> {
        let grace = self.backup_entry_deletion_grace_period_hours;
        let flags = [
            ("--garden-kubeconfig", self.garden_kubeconfig.is_none()),
            ("--seed-name", self.seed_name.is_none()),
            ("--backup-entry-deletion-grace-period-hours", grace.is_none()),
        ];
        let missing = flags.into_iter().filter(|(_, missing)| *missing);
        missing.map(|(flag, _)| flag).collect()
    }
}

impl Guests {
    /// The inputs of the controllers. Their Events have this process as the reporter, and are in the garden.
    fn context(&self, host: &Context) -> backup_controllers::Context {
        let garden = Garden::new(self.garden.clone(), &host.settings.permit);
        backup_controllers::Context {
            seed: host.seed.clone(),
            seed_name: self.seed_name.clone(),
            deletion_grace: self.deletion_grace,
            project_share: SharePercent::HALF,
            runner: Settings {
                events: Events::of_seed(garden.client().clone(), MANAGER.0, seed_user(&self.seed_name)),
                ..host.settings.clone()
            },
            garden,
        }
    }
}

/// The guests among these controllers, as futures that run until shutdown.
///
/// # Errors
/// There is a guest, and the host has no inputs for the garden.
pub(crate) fn start(names: &[&'static str], host: &Context) -> Result<Vec<BoxFuture<'static, ()>>, String> {
    let chosen: Vec<_> = GUESTS.iter().filter(|(name, _)| names.contains(name)).collect();
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let guests = host
        .guests
        .as_ref()
        .ok_or("guests are to run, but nothing is known of the garden")?;
    let context = Arc::new(guests.context(host));
    Ok(chosen
        .into_iter()
        .map(|(_, start)| start(Arc::clone(&context)))
        .collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser;
    use manager::{GARDENLET, assign};

    use super::*;

    #[derive(Parser)]
    struct Process {
        #[command(flatten)]
        guests: Flags,
        #[command(flatten)]
        lease: leader_migration::Flags,
    }

    async fn opened(arguments: &[&str]) -> Result<bool, String> {
        let arguments = ["provider-local"].iter().chain(arguments);
        let process = Process::try_parse_from(arguments).unwrap();
        let locks = assign(&process.lease, &PROVIDER_LOCAL).map_err(|error| error.to_string())?;
        let guests = process.guests.open(&locks).await?;
        Ok(guests.is_some())
    }

    /// A name without a controller would be a controller that never runs (RK-34).
    #[test]
    fn what_can_be_handed_over_is_what_runs() {
        let names: Vec<_> = GUESTS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, PROVIDER_LOCAL.guests);
    }

    #[test]
    fn guests_write_as_their_home_does() {
        assert_eq!(backup_controllers::MANAGER.0, GARDENLET.component);
    }

    /// The default configuration names cloud controllers only.
    #[tokio::test]
    async fn without_a_guest_the_garden_is_not_needed() {
        assert_eq!(opened(&[]).await, Ok(false));
        assert_eq!(opened(&["--enable-leader-migration"]).await, Ok(false));
        assert_eq!(opened(&["--garden-kubeconfig=/nonexistent"]).await, Ok(false));
    }

    #[tokio::test]
    async fn what_a_guest_needs_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "apiVersion: controllermanager.config.k8s.io/v1\nkind: LeaderMigrationConfiguration\n\
                    leaderName: shared\ncontrollerLeaders: [{name: backup-entry, component: '*'}]\n";
        std::fs::write(file.path(), text).unwrap();
        let config = format!("--leader-migration-config={}", file.path().display());
        let with = |more: &[&'static str]| {
            let arguments: Vec<String> = ["--enable-leader-migration", &config]
                .iter()
                .chain(more)
                .map(ToString::to_string)
                .collect();
            async move {
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                opened(&arguments).await.unwrap_err()
            }
        };
        let all = "hands backup-entry over to provider-local, which needs --garden-kubeconfig, --seed-name, \
                   --backup-entry-deletion-grace-period-hours for that";
        let error = with(&[]).await;
        assert!(error.contains(all), "{error}");
        let error = with(&["--seed-name=a", "--garden-kubeconfig=/nonexistent"]).await;
        let one = "which needs --backup-entry-deletion-grace-period-hours for that";
        assert!(error.contains(one), "{error}");
        let complete = [
            "--seed-name=a",
            "--garden-kubeconfig=/nonexistent",
            "--backup-entry-deletion-grace-period-hours=0",
        ];
        let error = with(&complete).await;
        assert!(error.contains("/nonexistent cannot be read"), "{error}");
    }
}
