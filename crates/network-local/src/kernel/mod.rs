//! The machine's kernel, told by netlink. What it is told is what differs from what it has.

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

/// The network namespace in which it was opened.
pub struct Kernel {
    routing: Handle,
    filter: masquerade::Filter,
    /// Passes requests and answers on, until this value is dropped.
    _connection: JoinSet<()>,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Largest packet that pods may send.
    pub mtu: u32,
    /// How many entries of tables were changed.
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

    /// Makes the device and its tables as planned. Every entry is tried, also after one that was refused.
    ///
    /// # Errors
    /// What the kernel refused first.
    pub async fn make(&self, plan: &Plan) -> Result<Done> {
        let (device, mtu) = self.device(plan).await?;
        let actual = self.tables(device).await?;
        let changes = changes(&actual, &plan.tables);
        let mut refused = None;
        for change in &changes {
            if let Err(error) = self.change(device, plan, *change).await {
                refused.get_or_insert(failed(&format!("make {change:?}"), &error));
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

    /// Lets what pods send to the outside of their network come from this machine's address, which the
    /// outside can answer to.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub async fn masquerade(&mut self, pods: Ipv4Net) -> Result<()> {
        let done = self.filter.masquerade(pods).await;
        done.map_err(|error| failed("masquerade what leaves the pods' network", &error))
    }
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::transient(format!("the kernel does not {what}: {error}"))
}
