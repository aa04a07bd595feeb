//! The requests of each process: all functions that the process can reach by name.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    items::{Function, Items},
    shapes::{Cluster, KindOf},
    walk::{Request, Walk},
};

/// The most rounds until the requests of generic functions reach the callers.
const ROUNDS: usize = 8;

/// A place in the sources.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    pub file: String,
    pub function: String,
}

/// The requests of all functions.
pub struct Search<'a> {
    items: &'a Items,
    found: Vec<BTreeSet<Request>>,
}

/// The requests of a process, with the places in the sources.
pub type Requests = BTreeMap<Request, BTreeSet<Origin>>;

impl<'a> Search<'a> {
    pub fn new(items: &'a Items) -> Self {
        let mut found = vec![BTreeSet::new(); items.functions.len()];
        for _ in 0..ROUNDS {
            let next: Vec<BTreeSet<Request>> = items
                .functions
                .iter()
                .map(|function| Walk::read(items, function, &found))
                .collect();
            if next == found {
                break;
            }
            found = next;
        }
        Self { items, found }
    }

    /// The requests of the functions that the first functions of a process reach, if kind and cluster are
    /// visible. `crates`: the crate of the process and all dependencies. `only`: the cluster of each client
    /// in a process with clients of a single cluster.
    pub fn of_process(&self, main: &str, crates: &BTreeSet<String>, only: Option<Cluster>) -> Requests {
        let mut requests = Requests::new();
        let mut add = |request: &Request, place: Origin| {
            // An argument is known where the function is called.
            let is_argument = matches!(request.cluster, Cluster::Argument(_));
            let cluster = match (&request.kind, request.cluster) {
                (KindOf::Known(kind), Cluster::Argument(_) | Cluster::Unknown) => {
                    cluster_of_group(&kind.group).or(only.filter(|_| !is_argument))
                }
                (KindOf::Known(_), known) => Some(known),
                _ => None,
            };
            if let Some(cluster) = cluster {
                let request = Request {
                    cluster,
                    ..request.clone()
                };
                requests.entry(request).or_default().insert(place);
            }
        };
        let reached = self.reached(main, crates);
        for &index in &reached {
            for request in &self.found[index] {
                add(request, origin_of(&self.items.functions[index]));
            }
        }
        for (request, place) in self.reconciled(&reached) {
            add(&request, place);
        }
        requests
    }

    /// The requests of the runner for the finalizers of reconciled objects.
    fn reconciled(&self, reached: &BTreeSet<usize>) -> Vec<(Request, Origin)> {
        let mut requests = Vec::new();
        for reconciled in &self.items.reconciled {
            let is_reached = reached.iter().any(|index| {
                let scope = &self.items.functions[*index].scope;
                scope.file == reconciled.scope.file && scope.owner == reconciled.scope.owner
            });
            if !is_reached {
                continue;
            }
            for verb in ["get", "patch"] {
                let request = Request {
                    kind: self.items.kind(&reconciled.scope, &reconciled.object),
                    subresource: "",
                    verb,
                    cluster: Cluster::Unknown,
                };
                let place = Origin {
                    file: reconciled.scope.file.clone(),
                    function: "FINALIZER".to_owned(),
                };
                requests.push((request, place));
            }
        }
        requests
    }

    /// The functions that a reached function may call: a name of the function, and for a method a name of the
    /// type. A method of a trait needs the name of the method or of the type.
    fn reached(&self, main: &str, crates: &BTreeSet<String>) -> BTreeSet<usize> {
        let (mut reached, mut words) = (BTreeSet::new(), BTreeSet::new());
        let is_called = |function: &Function, words: &BTreeSet<String>| {
            let is_named = words.contains(&function.name);
            match &function.scope.owner {
                _ if function.scope.file == main => true,
                Some(owner) if function.is_of_trait => is_named || words.contains(owner),
                Some(owner) => is_named && words.contains(owner),
                None => is_named,
            }
        };
        loop {
            let before = (reached.len(), words.len());
            for (index, function) in self.items.functions.iter().enumerate() {
                let is_here = crates.contains(&function.scope.crate_name);
                if is_here && is_called(function, &words) && reached.insert(index) {
                    words.extend(function.words.iter().cloned());
                    words.extend(function.scope.owner.clone());
                }
            }
            for (name, definition) in &self.items.types {
                if words.contains(name) {
                    words.extend(definition.iter().cloned());
                }
            }
            if before == (reached.len(), words.len()) {
                return reached;
            }
        }
    }
}

/// The cluster that has the kinds of an API group, if only clusters of this type have the kinds.
fn cluster_of_group(group: &str) -> Option<Cluster> {
    match group {
        "core.gardener.cloud" | "security.gardener.cloud" => Some(Cluster::Garden),
        "extensions.gardener.cloud"
        | "druid.gardener.cloud"
        | "machine.sapcloud.io"
        | "resources.gardener.cloud" => Some(Cluster::Seed),
        _ => None,
    }
}

fn origin_of(function: &Function) -> Origin {
    let owner = function
        .scope
        .owner
        .as_ref()
        .map_or(String::new(), |owner| format!("{owner}::"));
    Origin {
        file: function.scope.file.clone(),
        function: format!("{owner}{}", function.name),
    }
}
