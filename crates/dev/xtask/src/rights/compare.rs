//! The comparison of the rights with the requests of the processes.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    exceptions::{self, Exceptions},
    policy_rule::Right,
    search::{Origin, Requests},
    shapes::{Cluster, KindOf},
};

/// A comparison, and the exceptions that the comparison needed.
pub struct Check<'a> {
    exceptions: &'a Exceptions,
    rights: &'a BTreeSet<Right>,
    breaches: BTreeSet<String>,
    /// The exceptions by number, with the verbs that the comparison needed.
    used: BTreeSet<(usize, String)>,
}

/// A request in the garden: group, resource and verb.
type Asked<'r> = (&'r str, String, &'r str);

impl<'a> Check<'a> {
    pub fn new(exceptions: &'a Exceptions, rights: &'a BTreeSet<Right>) -> Self {
        Self {
            exceptions,
            rights,
            breaches: BTreeSet::new(),
            used: BTreeSet::new(),
        }
    }

    pub fn process(&mut self, process: &str, requests: &Requests) {
        let mut asked: BTreeMap<Asked<'_>, &Origin> = BTreeMap::new();
        for (request, places) in requests {
            if let (KindOf::Known(kind), Cluster::Garden, Some(place)) =
                (&request.kind, request.cluster, places.first())
            {
                let resource = format!("{}{}", kind.plural, request.subresource);
                asked.insert((kind.group.as_str(), resource, request.verb), place);
            }
        }
        self.unused_rights(process, &asked);
        self.missing_rights(process, &asked);
    }

    fn unused_rights(&mut self, process: &str, asked: &BTreeMap<Asked<'_>, &Origin>) {
        for right in self.rights.iter().filter(|right| right.process == process) {
            let Right {
                group,
                resource,
                verb,
                file,
                ..
            } = right;
            if asked.contains_key(&(group.as_str(), resource.clone(), verb.as_str())) {
                continue;
            }
            let mut covering = self.exceptions.unused.iter();
            match covering.position(|exception| exception.covers(process, group, resource, verb)) {
                Some(index) => {
                    self.used.insert((index, verb.clone()));
                }
                None => {
                    self.breaches.insert(format!(
                        "{file}: {process} may {verb} {resource} of {group:?} in the garden, and no code asks for \
                         this right; remove the verb, or give the reason in {}",
                        exceptions::FILE
                    ));
                }
            }
        }
    }

    fn missing_rights(&mut self, process: &str, asked: &BTreeMap<Asked<'_>, &Origin>) {
        for ((group, resource, verb), place) in asked {
            let is_granted = self.rights.iter().any(|right| {
                right.process == process
                    && right.group == *group
                    && right.resource == *resource
                    && right.verb == *verb
            });
            if !is_granted {
                self.breaches.insert(format!(
                    "{} ({}): {process} asks for {verb} {resource} of {group:?} in the garden, and no chart \
                     grants this right; add the verb to the chart",
                    place.file, place.function
                ));
            }
        }
    }

    pub fn breaches(self) -> BTreeSet<String> {
        let mut breaches = self.breaches;
        for (index, exception) in self.exceptions.unused.iter().enumerate() {
            for verb in &exception.verbs {
                if !self.used.contains(&(index, verb.clone())) {
                    breaches.insert(format!(
                        "{}: {verb} has no effect in {exception}; remove the verb",
                        exceptions::FILE
                    ));
                }
            }
        }
        breaches
    }
}
