//! Combines the answers of all authorities of a zone: a pure function of the answer of each authority.

use std::net::SocketAddr;

use crate::record_verdict::{OwnershipLoss, RecordVerdict};

/// The first witness: the owner record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DnsVerdict {
    /// Every authority that answers shows my identity and my epoch.
    Owned,
    /// At least one authority proves the loss of this epoch, and every other authority that answers proves a
    /// loss, too, or shows my epoch without an identity.
    Lost(OwnershipLoss),
    /// Every authority that answers shows my epoch without an identity. The text is the reason to ask the
    /// second witness.
    Deleted(String),
    /// All other cases, with the reason.
    Silent(String),
}

/// An answer of a single authority is enough, because a destination waits for all authorities before the
/// fence begins. But the authorities that answer must agree: a difference means an update under way or a
/// broken authority.
pub(crate) fn combine(verdicts: &[(SocketAddr, RecordVerdict)]) -> DnsVerdict {
    let spoken: Vec<&RecordVerdict> = verdicts
        .iter()
        .map(|(_, verdict)| verdict)
        .filter(|verdict| !matches!(verdict, RecordVerdict::Silent(_)))
        .collect();
    let Some(first) = spoken.first() else {
        return DnsVerdict::Silent(listed("no authority answers", verdicts));
    };
    if !spoken.iter().all(|verdict| agree(first, verdict)) {
        return DnsVerdict::Silent(listed("the authorities disagree", verdicts));
    }
    match first {
        RecordVerdict::Mine => DnsVerdict::Owned,
        RecordVerdict::NotMine(_) | RecordVerdict::Deleted => match most_final(&spoken) {
            Some(loss) => DnsVerdict::Lost(loss.clone()),
            None => DnsVerdict::Deleted(listed("the owner record names no seed", verdicts)),
        },
        RecordVerdict::Undecided(_) | RecordVerdict::EarlierOwner(_) | RecordVerdict::Silent(_) => {
            DnsVerdict::Silent(listed("the record decides nothing", verdicts))
        }
    }
}

/// Two answers agree where neither contradicts the other. A hand-over reaches servers at different times: the
/// identity is deleted at the first server, and the second server names the next owner already.
fn agree(left: &RecordVerdict, right: &RecordVerdict) -> bool {
    let is_over =
        |verdict: &RecordVerdict| matches!(verdict, RecordVerdict::Deleted | RecordVerdict::NotMine(_));
    std::mem::discriminant(left) == std::mem::discriminant(right) || (is_over(left) && is_over(right))
}

/// The loss that a later epoch proves, where a server shows a later epoch. A foreign identity beside my epoch
/// is weaker: the value may be the identity of the epoch before.
fn most_final<'a>(spoken: &[&'a RecordVerdict]) -> Option<&'a OwnershipLoss> {
    let losses = || {
        spoken.iter().filter_map(|verdict| match verdict {
            RecordVerdict::NotMine(loss) => Some(loss),
            _ => None,
        })
    };
    losses()
        .find(|loss| matches!(loss, OwnershipLoss::LaterEpoch(_)))
        .or_else(|| losses().next())
}

/// Whether a server has shown my epoch, with any identity or without an identity.
pub(crate) fn shows_own_epoch(verdicts: &[(SocketAddr, RecordVerdict)]) -> bool {
    verdicts.iter().any(|(_, verdict)| {
        matches!(
            verdict,
            RecordVerdict::Mine
                | RecordVerdict::Deleted
                | RecordVerdict::NotMine(OwnershipLoss::AnotherIdentity(_))
        )
    })
}

/// Whether every authority, without exception, shows my identity and my epoch. The error lists the
/// authorities' answers.
pub(crate) fn is_shown_everywhere(verdicts: &[(SocketAddr, RecordVerdict)]) -> Result<(), String> {
    if !verdicts.is_empty()
        && verdicts
            .iter()
            .all(|(_, verdict)| *verdict == RecordVerdict::Mine)
    {
        return Ok(());
    }
    Err(listed("not every authority shows it", verdicts))
}

/// Whether a planned move may stop the API: no authority that answers contradicts the record of my epoch.
/// Also, no authority may still have a record that was deleted at another authority. Such an authority would
/// hold up the end of the epoch after the API has stopped. A silent authority does not: a move needs no
/// secondary that is down.
pub(crate) fn lets_an_epoch_end(verdicts: &[(SocketAddr, RecordVerdict)]) -> Result<(), String> {
    let all_are_silent = verdicts
        .iter()
        .all(|(_, verdict)| matches!(verdict, RecordVerdict::Silent(_)));
    match combine(verdicts) {
        DnsVerdict::Owned | DnsVerdict::Deleted(_) => Ok(()),
        DnsVerdict::Silent(_) if all_are_silent => Ok(()),
        DnsVerdict::Silent(_) | DnsVerdict::Lost(_) => Err(listed(
            "a DNS server contradicts the owner record of this seed",
            verdicts,
        )),
    }
}

/// Whether the authorities prove that a different seed has the shoot in the epoch of the claim. A later epoch
/// in the record is no proof: the garden, from which the epoch of the claim was read, is behind the record.
/// The error lists the authorities' answers.
pub(crate) fn names_another_owner(verdicts: &[(SocketAddr, RecordVerdict)]) -> Result<(), String> {
    match combine(verdicts) {
        DnsVerdict::Lost(OwnershipLoss::AnotherIdentity(_)) => Ok(()),
        DnsVerdict::Owned | DnsVerdict::Lost(_) | DnsVerdict::Deleted(_) | DnsVerdict::Silent(_) => {
            Err(listed(
                "the owner record does not prove that another seed has the shoot in this epoch",
                verdicts,
            ))
        }
    }
}

/// The testimony of the owner record about a hand-over by the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOverTestimony {
    /// A server shows the epoch of the source without an identity, or a later epoch.
    Confirmed,
    /// No server confirms the hand-over. A server shows an identity beside the epoch of the source, or each
    /// server that answers shows an identity beside an earlier epoch.
    Contradicted,
    /// All other cases, among them the silence of all servers.
    Unknown,
}

/// The testimony of the authorities about a hand-over in the epoch of the claim. A single authority without
/// an identity is enough: only the source, or a process with the DNS key of the source, deletes the identity.
/// An authority that still shows the identity is behind, and may be a server that only the destination asks.
///
/// Without such an authority, each identity contradicts the hand-over. A second authority that is behind the
/// source must not hide that, because the source chooses the zone. The identity of the claim counts, too:
/// the claim has the identity of the destination, which never owned the shoot in the epoch of the source.
///
/// A source with owner checks that hands over has published its epoch in each authority that answers. So an
/// identity beside an earlier epoch in each of them contradicts the hand-over, too: the owner of that epoch
/// was never fenced. An authority without an epoch, or with an earlier epoch without an identity, decides
/// nothing. The source may have no owner checks, and then writes no record.
pub(crate) fn judge_hand_over(verdicts: &[(SocketAddr, RecordVerdict)]) -> HandOverTestimony {
    let confirms = |(_, verdict): &(SocketAddr, RecordVerdict)| {
        matches!(
            verdict,
            RecordVerdict::Deleted | RecordVerdict::NotMine(OwnershipLoss::LaterEpoch(_))
        )
    };
    if verdicts.iter().any(confirms) {
        HandOverTestimony::Confirmed
    } else if shows_own_epoch(verdicts) || all_show_an_earlier_owner(verdicts) {
        HandOverTestimony::Contradicted
    } else {
        HandOverTestimony::Unknown
    }
}

/// Whether an authority answers, and each authority that answers shows an identity beside an earlier epoch.
fn all_show_an_earlier_owner(verdicts: &[(SocketAddr, RecordVerdict)]) -> bool {
    let mut spoken = verdicts
        .iter()
        .map(|(_, verdict)| verdict)
        .filter(|verdict| !matches!(verdict, RecordVerdict::Silent(_)))
        .peekable();
    spoken.peek().is_some() && spoken.all(|verdict| matches!(verdict, RecordVerdict::EarlierOwner(_)))
}

fn listed(what: &str, verdicts: &[(SocketAddr, RecordVerdict)]) -> String {
    let mut text = what.to_owned();
    for (number, (server, verdict)) in verdicts.iter().enumerate() {
        text.push_str(if number == 0 { ": " } else { "; " });
        let says = match verdict {
            RecordVerdict::Mine => "mine".to_owned(),
            RecordVerdict::Deleted => "no identity beside my epoch".to_owned(),
            RecordVerdict::NotMine(loss) => loss.to_string(),
            RecordVerdict::EarlierOwner(identity) => format!("{identity} beside an earlier epoch"),
            RecordVerdict::Undecided(why) | RecordVerdict::Silent(why) => why.clone(),
        };
        text.push_str(&server.to_string());
        text.push_str(": ");
        text.push_str(&says);
    }
    text
}
