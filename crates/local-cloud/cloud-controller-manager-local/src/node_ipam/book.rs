//! The ranges of pod addresses by Node. Pure; fed by the watch of Nodes.
//!
//! The API server lets `spec.podCIDRs` be set once and never changed, so a Node cannot get two ranges from
//! any writers. This book ensures that no two Nodes get the same range. The book assigns no range before the
//! first complete list of Nodes. An assigned range is reserved for the Node until the watch shows the result
//! of the write.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
};

use cloud_local::range::{around, overlap};
use ipnet::Ipv4Net;
use k8s_openapi::api::core::v1::Node;
use kube::{ResourceExt, runtime::watcher::Event};

use crate::nodes;

/// Maximum bits between the cluster's range and a Node's range: at most 65,536 Nodes are counted.
const MOST_BITS: u8 = 16;

/// All ranges of a cluster.
pub struct Book {
    range: Ipv4Net,
    size: u8,
    /// Number of owners of each used range, by the position in the cluster's range.
    used: BTreeMap<u32, u32>,
    /// The start of the search for a free range: behind the last assigned range, so that a returned range
    /// rests before the next use.
    next: u32,
    owners: BTreeMap<String, Owner>,
    /// Nodes of the list under way.
    listing: Option<BTreeSet<String>>,
    ready: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Owner {
    uid: String,
    ranges: Vec<Ipv4Net>,
    /// Assigned, and not yet seen in the Node.
    reserved: bool,
}

/// The answer to a request for a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This range is assigned to this Node.
    Range(Ipv4Net),
    /// All ranges are in use.
    NoneLeft,
    /// Not all Nodes have been seen yet.
    NotReady,
}

impl Book {
    /// A book of ranges with prefix length `size` in `range`. A range that overlaps `blocked` (the range of
    /// Services) is never assigned.
    pub fn new(range: Ipv4Net, size: u8, blocked: &[Ipv4Net]) -> Result<Self, String> {
        if !(range.prefix_len()..=32).contains(&size) {
            return Err(format!(
                "a Node's range of size /{size} does not fit into {range}"
            ));
        }
        if size - range.prefix_len() > MOST_BITS {
            return Err(format!(
                "{range} has more than 65,536 ranges of size /{size}: choose a smaller range or larger ones for Nodes"
            ));
        }
        let mut book = Self {
            range,
            size,
            used: BTreeMap::new(),
            next: 0,
            owners: BTreeMap::new(),
            listing: None,
            ready: false,
        };
        for blocked in blocked {
            book.count(*blocked, true);
        }
        Ok(book)
    }

    /// Takes an event of the watch. Must see every event, in order, before a request with the object of that
    /// event.
    pub fn take(&mut self, event: &Event<Node>) {
        match event {
            Event::Init => self.listing = Some(BTreeSet::new()),
            Event::InitApply(node) => {
                if let Some(listing) = &mut self.listing {
                    listing.insert(node.name_any());
                }
                self.see(node);
            }
            Event::Apply(node) => self.see(node),
            Event::Delete(node) => self.forget(&node.name_any(), &nodes::uid(node)),
            Event::InitDone => {
                // Deletions between two watches.
                let listed = self.listing.take().unwrap_or_default();
                let gone: Vec<_> = self
                    .owners
                    .keys()
                    .filter(|name| !listed.contains(*name))
                    .cloned()
                    .collect();
                for name in gone {
                    self.remove(&name);
                }
                self.ready = true;
            }
        }
    }

    /// The range for a Node without a range. The same range at each call, until the range is returned or the
    /// Node shows a different range.
    pub fn reserve(&mut self, node: &Node) -> Answer {
        if !self.ready {
            return Answer::NotReady;
        }
        let (name, uid) = (node.name_any(), nodes::uid(node));
        if let Some(owner) = self.owners.get(&name).filter(|owner| owner.uid == uid)
            && let Some(range) = owner.ranges.first()
        {
            return Answer::Range(*range);
        }
        let Some(range) = self.free() else {
            return Answer::NoneLeft;
        };
        self.replace(
            &name,
            Owner {
                uid,
                ranges: vec![range],
                reserved: true,
            },
        );
        Answer::Range(range)
    }

    /// The API server has refused the range for this Node: the range was certainly not written.
    pub fn give_back(&mut self, node: &Node) {
        let name = node.name_any();
        let ours = self.owners.get(&name);
        if ours.is_some_and(|owner| owner.reserved && owner.uid == nodes::uid(node)) {
            self.remove(&name);
        }
    }

    /// Further Nodes with addresses of this Node's range. This book never assigns such ranges; a different
    /// writer wrote both.
    #[must_use]
    pub fn sharers(&self, node: &Node) -> Vec<&str> {
        let name = node.name_any();
        let own = ranges(node);
        if !own.iter().any(|range| {
            self.positions(*range)
                .is_some_and(|mut at| at.any(|at| self.used.get(&at) > Some(&1)))
        }) {
            return Vec::new();
        }
        self.owners
            .iter()
            .filter(|(other, owner)| {
                **other != name
                    && owner
                        .ranges
                        .iter()
                        .any(|theirs| own.iter().any(|own| overlap(own, theirs)))
            })
            .map(|(other, _)| other.as_str())
            .collect()
    }

    fn see(&mut self, node: &Node) {
        let (name, uid, ranges) = (node.name_any(), nodes::uid(node), ranges(node));
        let known = self.owners.get(&name).filter(|owner| owner.uid == uid);
        // An event from before the controller's own write: the reservation stays.
        if ranges.is_empty() && known.is_some() {
            return;
        }
        self.replace(
            &name,
            Owner {
                uid,
                ranges,
                reserved: false,
            },
        );
    }

    fn forget(&mut self, name: &str, uid: &str) {
        if self.owners.get(name).is_some_and(|owner| owner.uid == uid) {
            self.remove(name);
        }
    }

    /// Counts the new ranges before the old ranges are released: a range that stays never looks free.
    fn replace(&mut self, name: &str, owner: Owner) {
        for range in &owner.ranges {
            self.count(*range, true);
        }
        self.remove(name);
        if !owner.ranges.is_empty() {
            self.owners.insert(name.to_owned(), owner);
        }
    }

    fn remove(&mut self, name: &str) {
        for range in self
            .owners
            .remove(name)
            .into_iter()
            .flat_map(|owner| owner.ranges)
        {
            self.count(range, false);
        }
    }

    fn count(&mut self, range: Ipv4Net, more: bool) {
        let Some(positions) = self.positions(range) else {
            return;
        };
        for position in positions {
            let owners = self.used.entry(position).or_default();
            *owners = if more {
                *owners + 1
            } else {
                owners.saturating_sub(1)
            };
            if *owners == 0 {
                self.used.remove(&position);
            }
        }
    }

    fn free(&mut self) -> Option<Ipv4Net> {
        let total = 1_u32 << (self.size - self.range.prefix_len());
        let position = (self.next..total)
            .chain(0..self.next)
            .find(|position| !self.used.contains_key(position))?;
        self.next = (position + 1) % total;
        let first = u32::from(self.range.network()) + self.offset(position);
        Ipv4Net::new(first.into(), self.size).ok()
    }

    /// First address of a range, relative to the first address of the cluster.
    fn offset(&self, position: u32) -> u32 {
        position.checked_shl(32 - u32::from(self.size)).unwrap_or(0)
    }

    /// The positions that share an address with a range; `None` without overlap.
    fn positions(&self, range: Ipv4Net) -> Option<std::ops::RangeInclusive<u32>> {
        let first = range.network().max(self.range.network());
        let last = range.broadcast().min(self.range.broadcast());
        let at = |address: Ipv4Addr| {
            let offset = u32::from(address) - u32::from(self.range.network());
            offset.checked_shr(32 - u32::from(self.size)).unwrap_or(0)
        };
        (first <= last).then(|| at(first)..=at(last))
    }
}

/// The IPv4 ranges that a Node has.
fn ranges(node: &Node) -> Vec<Ipv4Net> {
    texts(node).filter_map(|text| around(text).ok()).collect()
}

/// Whether a Node has ranges of any kind.
#[must_use]
pub fn has_range(node: &Node) -> bool {
    texts(node).next().is_some()
}

/// `spec.podCIDR` is the first of `spec.podCIDRs`.
fn texts(node: &Node) -> impl Iterator<Item = &String> {
    let spec = node.spec.iter();
    spec.flat_map(|spec| spec.pod_cidrs.iter().flatten().chain(&spec.pod_cidr))
        .collect::<BTreeSet<_>>()
        .into_iter()
}
