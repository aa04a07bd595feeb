//! The manual steps of an operator, by the operator's programs, on real API servers. Charts are rendered,
//! installed and uninstalled, manifests are applied, and commands of the documentation are run.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod accidents;
mod bindings;
mod commands;
mod documents;
mod encryption;
mod examples;
mod hardening;
mod lessons;
mod manifests;
mod monitoring;
mod not_run;
mod programs;
mod progress;
mod releases;
mod replicas;
mod rights;
mod sentences;
mod states;
mod tenants;
mod uninstall;
mod values;
