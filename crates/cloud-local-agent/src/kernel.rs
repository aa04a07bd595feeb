//! The host's kernel, told by netlink.

mod rules;
mod ways;

use std::{collections::BTreeSet, io, time::Duration};

use rtnetlink::Handle;
use runtime::{Error, Result};
use tokio::{task::JoinSet, time::timeout};

use crate::plan::Ways;

/// How long the kernel may take for an answer. It answers at once, unless an answer was lost.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// The network namespace in which it was opened, as far as one account's closed zones go.
pub struct Kernel {
    routing: Handle,
    filter: rules::Filter,
    /// Passes requests and answers on, until this value is dropped.
    _connection: JoinSet<()>,
}

impl Kernel {
    /// Opens the network namespace of this thread. Each account has a table of its own there.
    ///
    /// # Errors
    /// The kernel gives no netlink socket.
    pub fn open(account: &str) -> io::Result<Self> {
        let (connection, routing, _) = rtnetlink::new_connection()?;
        let mut task = JoinSet::new();
        task.spawn(connection);
        Ok(Self {
            routing,
            filter: rules::Filter::open(account)?,
            _connection: task,
        })
    }

    /// Which links lead to which addresses.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub async fn ways(&self) -> Result<Ways> {
        let told = timeout(ANSWERS_WITHIN, ways::ways(&self.routing)).await;
        let told = told.map_err(|_| failed("show its routes", "no answer"))?;
        told.map_err(|error| failed("show its routes", error))
    }

    /// Lets nothing pass these links, whatever it belongs to, and everything pass all others. When it returns
    /// the kernel has it.
    ///
    /// # Errors
    /// The kernel refuses: then everything is as before.
    pub async fn shut(&mut self, links: &BTreeSet<u32>) -> Result<()> {
        let done = timeout(ANSWERS_WITHIN, self.filter.shut(links)).await;
        let done = done.map_err(|_| failed("shut links", "no answer"))?;
        done.map_err(|error| failed("shut links", error))
    }
}

fn failed(what: &str, error: impl std::fmt::Display) -> Error {
    Error::transient(format!("the kernel does not {what}: {error}"))
}
