//! The claims of waiting shoots to the next free slot.
//!
//! A shoot leaves a free slot to a waiting shoot whose turn is earlier. If the checks of the waiting shoot
//! fail, the slot would stay free. So a claim ends some minutes after the last refused request, and with the
//! first request that gets a slot, even if the shoot does not use the slot.

use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};

/// How long a claim is valid after a refused request. Longer than the period of 60 s after which the
/// controllers check a waiting shoot again.
const VALID_FOR: SignedDuration = SignedDuration::from_mins(3);

/// The claims, by the uid of the Shoot.
#[derive(Debug, Default)]
pub(crate) struct SlotClaims {
    /// The time of the last refused request. `None`: a later request has got a slot.
    refused: HashMap<String, Option<Timestamp>>,
}

impl SlotClaims {
    /// Drops the claims of shoots that do not wait. A waiting shoot without an entry gets a claim.
    /// `waiting`: the uids of all waiting Shoots.
    pub(crate) fn observe(&mut self, waiting: &HashSet<String>, now: Timestamp) {
        self.refused.retain(|uid, _| waiting.contains(uid));
        for uid in waiting {
            self.refused.entry(uid.clone()).or_insert(Some(now));
        }
    }

    /// A request was refused.
    pub(crate) fn refuse(&mut self, uid: String, now: Timestamp) {
        self.refused.insert(uid, Some(now));
    }

    /// A request got a slot.
    pub(crate) fn grant(&mut self, uid: String) {
        self.refused.insert(uid, None);
    }

    /// Whether other shoots leave a free slot to this shoot.
    pub(crate) fn is_valid(&self, uid: &str, now: Timestamp) -> bool {
        let refused = self.refused.get(uid).copied().flatten();
        refused.is_some_and(|since| now.duration_since(since) < VALID_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_ends_without_requests_and_with_a_slot() {
        let (start, mut claims) = (Timestamp::UNIX_EPOCH, SlotClaims::default());
        let waiting = HashSet::from(["a".to_owned()]);
        claims.observe(&waiting, start);
        assert!(claims.is_valid("a", start) && !claims.is_valid("b", start));
        let late = start + VALID_FOR;
        claims.observe(&waiting, late);
        assert!(!claims.is_valid("a", late), "no request followed");
        claims.refuse("a".to_owned(), late);
        assert!(claims.is_valid("a", late));
        claims.grant("a".to_owned());
        claims.observe(&waiting, late);
        assert!(!claims.is_valid("a", late), "the slot was not used");
        claims.observe(&HashSet::new(), late);
        assert!(claims.refused.is_empty());
    }
}
