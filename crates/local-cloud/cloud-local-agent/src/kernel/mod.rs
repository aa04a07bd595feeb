//! The host's kernel, controlled by netlink.

mod rules;
mod ways;

use std::{collections::BTreeSet, io, time::Duration};

use rtnetlink::Handle;
use runtime::{Error, Result};
use tokio::{task::JoinSet, time::timeout};

use crate::plan::Ways;

/// Timeout for an answer of the kernel. The kernel answers immediately, unless an answer was lost.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// The closed zones of an account in a network namespace.
pub struct Kernel {
    routing: Handle,
    filter: rules::Filter,
    /// Passes requests and answers on, until the drop of this value.
    _connection: JoinSet<()>,
}

impl Kernel {
    /// Opens the network namespace of this thread. Each account has a separate table in the namespace.
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

    /// The links that lead to each address.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub async fn ways(&self) -> Result<Ways> {
        let told = timeout(ANSWERS_WITHIN, ways::ways(&self.routing)).await;
        let told = told.map_err(|_| unanswered("show its routes"))?;
        told.map_err(|error| failed("show its routes", error))
    }

    /// Drops all packets at these links, and no packet at any further link. On return, the kernel has the
    /// rules.
    ///
    /// # Errors
    /// The kernel refuses: then the rules stay unchanged.
    pub async fn shut(&mut self, links: &BTreeSet<u32>) -> Result<()> {
        let done = timeout(ANSWERS_WITHIN, self.filter.shut(links)).await;
        let done = done.map_err(|_| unanswered("shut links"))?;
        done.map_err(|error| failed("shut links", error))
    }
}

fn failed(what: &str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::transient(format!("the kernel does not {what}")).caused_by(error)
}

fn unanswered(what: &str) -> Error {
    Error::transient(format!("the kernel does not {what}: no answer"))
}
