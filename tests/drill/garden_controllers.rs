//! Runs controllers of garden-controller-manager.

use std::sync::Arc;

use anyhow::Result;
use clap::Parser;
use garden_controller_manager::{Config, Context, backup_entries, controllers, shoots};
use kube::Client;
use runtime::{
    client::{Garden, Permit},
    controller::Events,
    process::Process,
};
use tokio::task::JoinSet;

/// The controllers that a flow needs: the controllers create objects that no seed may create, and assign
/// backups to the owner seed.
pub const FOR_FLOWS: &[&str] = &["shoot-kubeconfig", "shoot-state", "backup-entry-placement"];

/// Runs these until the set is dropped.
pub fn start(garden: &Client, names: &[&'static str]) -> Result<JoinSet<()>> {
    start_with(garden, names, &[])
}

/// The same with further flags.
pub fn start_with(garden: &Client, names: &[&'static str], flags: &[String]) -> Result<JoinSet<()>> {
    let flags = std::iter::once("garden-controller-manager").chain(flags.iter().map(String::as_str));
    let process = Process::new("drill");
    let client = Garden::new(garden.clone(), &Permit::sole("the drill"));
    let context = Context {
        shoots: shoots::watch(&client),
        backup_entries: backup_entries::watch(&client),
        garden: client,
        config: Arc::new(Config::try_parse_from(flags)?),
        events: Events::new(garden.clone(), "garden-controller-manager"),
        metrics: process.metrics.clone(),
        shutdown: process.shutdown.clone(),
    };
    let (names, mut running) = (names.to_vec(), JoinSet::new());
    running.spawn(async move {
        let _process = process;
        if let Err(ended) = controllers::run(names, context).await {
            eprintln!("garden-controller-manager ended: {ended}");
        }
    });
    Ok(running)
}
