//! The machine's kernel, controlled by netlink. Only differences are written.

mod device;
mod masquerade;
mod tables;

use std::io;

use ipnet::Ipv4Net;
use rtnetlink::Handle;
use runtime::{Error, Result};
use tokio::task::JoinSet;

pub use device::{DEVICE, OVERHEAD, PORT, VNI};

use crate::{diff::changes, plan::Plan};

/// The network namespace of the thread that opened the value.
pub struct Kernel {
    routing: Handle,
    filter: masquerade::Filter,
    /// Passes requests and answers on, until the drop of this value.
    _connection: JoinSet<()>,
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Maximum bytes of a packet from pods.
    pub mtu: u32,
    /// Number of changed table entries.
    pub changes: usize,
}

impl Kernel {
    /// Opens the network namespace of this thread.
    ///
    /// # Errors
    /// The kernel gives no netlink socket.
    pub fn open() -> io::Result<Self> {
        let (connection, routing, _) = rtnetlink::new_connection()?;
        let mut task = JoinSet::new();
        task.spawn(connection);
        Ok(Self {
            routing,
            filter: masquerade::Filter::open()?,
            _connection: task,
        })
    }

    /// Sets up the device and the tables according to the plan. Every entry is tried, even after a refused
    /// entry.
    ///
    /// # Errors
    /// The first refusal of the kernel.
    pub async fn make(&self, plan: &Plan) -> Result<Done> {
        let (device, mtu) = self.device(plan).await?;
        let actual = self.tables(device).await?;
        let changes = changes(&actual, &plan.tables);
        let mut refused = None;
        for change in &changes {
            if let Err(error) = self.change(device, plan, *change).await {
                refused.get_or_insert(failed(&format!("make {change:?}"), error));
            }
        }
        match refused {
            Some(error) => Err(error),
            None => Ok(Done {
                mtu,
                changes: changes.len(),
            }),
        }
    }

    /// Masquerades packets from pods to the outside with this machine's address, because outside targets can
    /// only answer this address.
    ///
    /// # Errors
    /// The kernel refuses the rule.
    pub async fn masquerade(&mut self, pods: Ipv4Net) -> Result<()> {
        let done = self.filter.masquerade(pods).await;
        done.map_err(|error| failed("masquerade what leaves the pods' network", error))
    }
}

fn failed(what: &str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::transient(format!("the kernel does not {what}")).caused_by(error)
}
