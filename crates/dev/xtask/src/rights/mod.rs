//! `xtask rights`: compares the rights in the garden with the requests of the code.
//!
//! The rights come from the charts in the rendering of Helm, and from the roles that
//! garden-controller-manager writes. The requests come from the sources: each use of an `Api` in a function
//! that the process can reach by name, if the types in the sources show the kind and the garden. A request
//! that the search cannot read counts for no right, so that the right fails the check until `rights.yaml` has
//! the reason.

mod callee;
mod charts;
mod compare;
mod crates;
mod evaluate;
mod exceptions;
mod granted;
mod items;
mod kinds;
mod page;
mod paths;
mod policy_rule;
mod search;
mod shapes;
mod types;
mod vocabulary;
mod walk;

use std::path::Path;

use anyhow::{Result, bail};

use self::{
    compare::Check, crates::Crates, exceptions::Exceptions, items::Items, search::Search, shapes::Cluster,
};
pub use page::{PAGE, page};

/// A process with rights in the garden.
struct Process {
    name: &'static str,
    folder: &'static str,
    /// Whether each client of the process leads to the garden.
    has_only_garden: bool,
}

const PROCESSES: &[Process] = &[
    Process {
        name: "garden-controller-manager",
        folder: "crates/core/garden-controller-manager",
        has_only_garden: true,
    },
    Process {
        name: "gardenlet",
        folder: "crates/core/gardenlet",
        has_only_garden: false,
    },
];

/// Fails with a line for each right in the garden without a request, and each request without a right.
pub fn run() -> Result<()> {
    let root = Path::new(".");
    let mut rights = charts::rights(root)?;
    rights.extend(granted::rights(root)?);
    rights.retain(|right| right.cluster == Cluster::Garden);
    if let Some(right) = rights.iter().find(|right| !is_compared(&right.process)) {
        bail!(
            "{}: {} has rights in the garden; add the process to {}",
            right.file,
            right.process,
            file!()
        );
    }
    let items = Items::read(root)?;
    let search = Search::new(&items);
    let crates = Crates::read()?;
    let exceptions = Exceptions::read(root)?;
    let mut check = Check::new(&exceptions, &rights);
    for process in PROCESSES {
        let main = format!("{}/src/main.rs", process.folder);
        let folder = process.folder.rsplit('/').next().unwrap_or_default();
        let only = process.has_only_garden.then_some(Cluster::Garden);
        let requests = search.of_process(&main, &crates.closure(folder), only);
        let has_rights = rights.iter().any(|right| right.process == process.name);
        if !has_rights || requests.is_empty() {
            bail!(
                "{} has no rights or no requests; correct {}",
                process.name,
                file!()
            );
        }
        check.process(process.name, &requests);
    }
    let breaches = check.breaches();
    for breach in &breaches {
        eprintln!("rights: {breach}");
    }
    if !breaches.is_empty() {
        bail!(
            "{} breach(es) of the rights; {PAGE} says how rights and requests are compared",
            breaches.len()
        );
    }
    println!(
        "rights: ok ({} rights in the garden, {} processes)",
        rights.len(),
        PROCESSES.len()
    );
    Ok(())
}

fn is_compared(process: &str) -> bool {
    PROCESSES.iter().any(|compared| compared.name == process)
}

#[cfg(test)]
mod tests;
