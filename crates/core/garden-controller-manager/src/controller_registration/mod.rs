//! Which extensions a seed gets: the providers that its shoots, its backups and its names need, each as a
//! ControllerInstallation that the seed's gardenlet carries out.
//!
//! Promises: a seed gets what a shoot needs as soon as the shoot names it, also as the destination of a move
//! that has not begun; a seed that a shoot leaves keeps its providers until nothing of theirs is left there.
//! Nothing is taken away on what was only remembered, nor while the gardenlet does not say that nothing needs
//! it (condition `Required`). A registration stays while there are installations of it.
//!
//! | file | what |
//! |---|---|
//! | `need` | which kinds and types of objects a shoot and a seed have |
//! | `choice` | which registrations serve them, and what has to be written |
//! | `sources` | what is watched and how little of it is kept |
//! | `controller` | each seed: writes and takes away |
//! | `registrations` | keeps a registration that is in use |

mod choice;
mod controller;
pub mod need;
mod registrations;
mod sources;

use futures::future::join;

pub use choice::{REQUIRED, answers, fits, seed_of};

use crate::Context;

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    join(controller::run(context.clone()), registrations::run(context)).await;
}
