//! All claims, by domain: a decision examines only the claims that overlap the domain.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use api::gardencore::Shoot;
use kube::runtime::reflector::ObjectRef;

use super::claim::{DomainClaim, is_older};

/// Claims by the labels of the domain from the last label to the first, then by uid. The domains below a
/// domain are neighbours.
type ByLabels = BTreeMap<(String, String), Arc<DomainClaim>>;

/// The claims of all Shoots, as the watch of Shoots shows the Shoots, with the reservations of this process.
#[derive(Default)]
pub(super) struct DomainIndex {
    /// The claim of each Shoot with a domain.
    claims: HashMap<ObjectRef<Shoot>, Arc<DomainClaim>>,
    reserved: ByLabels,
    /// Without Shoots in deletion, because no domain is reserved for these Shoots.
    waiting: ByLabels,
    /// uids of the Shoots with a reservation of this process that the watch does not show yet.
    unseen: HashSet<String>,
}

impl DomainIndex {
    /// Takes the claim of a Shoot in the place of the former claim. `None`: the Shoot is gone, or has no
    /// domain. A reservation of this process stays until the watch shows the reservation.
    pub(super) fn set_claim(&mut self, shoot: &ObjectRef<Shoot>, claim: Option<DomainClaim>) {
        if let Some(former) = self.claims.remove(shoot) {
            let key = key_of(&former);
            self.reserved.remove(&key);
            self.waiting.remove(&key);
            if claim.as_ref().is_none_or(|claim| claim.uid != former.uid) {
                self.unseen.remove(&former.uid);
            }
        }
        let Some(mut claim) = claim else {
            return;
        };
        if claim.is_reserved {
            self.unseen.remove(&claim.uid);
        }
        claim.is_reserved |= self.unseen.contains(&claim.uid);
        let (key, claim) = (key_of(&claim), Arc::new(claim));
        if claim.is_reserved {
            self.reserved.insert(key, Arc::clone(&claim));
        } else if !claim.is_deleting {
            self.waiting.insert(key, Arc::clone(&claim));
        }
        self.claims.insert(shoot.clone(), claim);
    }

    /// Whether the watch shows this Shoot.
    pub(super) fn has(&self, claim: &DomainClaim) -> bool {
        let known = self.claims.get(&claim.shoot);
        known.is_some_and(|known| known.uid == claim.uid)
    }

    /// Records a reservation that the watch may not show yet. The watch reports no further change of a Shoot
    /// that is gone, so the index takes no such Shoot.
    pub(super) fn reserve(&mut self, claim: &DomainClaim) {
        if self.has(claim) {
            self.unseen.insert(claim.uid.clone());
            self.set_claim(&claim.shoot, Some(claim.clone()));
        }
    }

    /// A reservation of a different Shoot for a domain that overlaps.
    pub(super) fn reservation_beside(&self, claim: &DomainClaim) -> Option<&DomainClaim> {
        overlapping(&self.reserved, &claim.domain).find(|other| other.uid != claim.uid)
    }

    /// The older Shoots without a reservation that claim a domain that overlaps, and whose domain overlaps no
    /// reservation.
    pub(super) fn older(&self, claim: &DomainClaim) -> Vec<DomainClaim> {
        overlapping(&self.waiting, &claim.domain)
            .filter(|other| other.uid != claim.uid && is_older(other, claim))
            .filter(|other| self.reservation_beside(other).is_none())
            .cloned()
            .collect()
    }
}

/// The claims of all domains that are equal to the domain, or above or below.
fn overlapping<'a>(claims: &'a ByLabels, domain: &str) -> impl Iterator<Item = &'a DomainClaim> + use<'a> {
    let own = labels(domain);
    let ends = own.match_indices('.').map(|(end, _)| end + 1);
    let above = ends.filter(|end| *end < own.len());
    let above: Vec<String> = above.map(|end| own[..end].to_owned()).collect();
    let at = move |name: String| {
        let from = (name.clone(), String::new());
        claims.range(from..).take_while(move |((key, _), _)| *key == name)
    };
    let below = claims
        .range((own.clone(), String::new())..)
        .take_while(move |((key, _), _)| key.starts_with(&own));
    let all = above.into_iter().flat_map(at).chain(below);
    all.map(|(_, claim)| {
        #[cfg(test)]
        tests::EXAMINED.set(tests::EXAMINED.get() + 1);
        claim.as_ref()
    })
}

fn key_of(claim: &DomainClaim) -> (String, String) {
    (labels(&claim.domain), claim.uid.clone())
}

/// `test.customer.` for `customer.test`. A dot ends each label, so that a prefix is a domain above.
fn labels(domain: &str) -> String {
    domain.rsplit('.').flat_map(|label| [label, "."]).collect()
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
