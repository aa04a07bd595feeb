//! A garden with running controllers.

use std::{future::Future, ops::Deref};

use anyhow::Result;
use garden_controller_manager::Context;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Garden;

/// A garden with running controllers of garden-controller-manager.
pub struct Controlled {
    // Dropped first: no controller works on a garden that ends.
    controllers: JoinSet<()>,
    shutdown: CancellationToken,
    garden: Garden,
}

impl Controlled {
    /// No controller runs yet. All controllers get this context.
    pub fn new(garden: Garden, context: &Context) -> Self {
        Self {
            controllers: JoinSet::new(),
            shutdown: context.shutdown.clone(),
            garden,
        }
    }

    /// Starts a controller.
    pub fn start(&mut self, controller: impl Future<Output = ()> + Send + 'static) {
        self.controllers.spawn(controller);
    }

    /// Stops all controllers, then the garden.
    pub async fn end(mut self) -> Result<()> {
        self.shutdown.cancel();
        self.controllers.shutdown().await;
        Ok(())
    }
}

impl Deref for Controlled {
    type Target = Garden;

    fn deref(&self) -> &Garden {
        &self.garden
    }
}
