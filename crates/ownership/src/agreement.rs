//! Combines the answers of all authorities of a zone: a pure function of the answer of each authority.

use std::net::SocketAddr;

use crate::saying::{Loss, Saying};

/// The first witness: the owner record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dns {
    /// Every authority that answers shows my identity and my epoch.
    Owned,
    /// At least one authority proves the loss of this epoch, and every other authority that answers proves a
    /// loss, too, or shows my epoch without an identity.
    Lost(Loss),
    /// Every authority that answers shows my epoch without an identity. The text is the reason to ask the
    /// second witness.
    Deleted(String),
    /// All other cases, with the reason.
    Silent(String),
}

/// An answer of a single authority is enough, because a destination waits for all authorities before the
/// fence begins. But the authorities that answer must agree: a difference means an update under way or a
/// broken authority.
pub(crate) fn combine(said: &[(SocketAddr, Saying)]) -> Dns {
    let spoken: Vec<&Saying> = said
        .iter()
        .map(|(_, saying)| saying)
        .filter(|saying| !matches!(saying, Saying::Silent(_)))
        .collect();
    let Some(first) = spoken.first() else {
        return Dns::Silent(listed("no authority answers", said));
    };
    if !spoken.iter().all(|saying| agree(first, saying)) {
        return Dns::Silent(listed("the authorities disagree", said));
    }
    match first {
        Saying::Mine => Dns::Owned,
        Saying::NotMine(_) | Saying::Deleted => match most_final(&spoken) {
            Some(loss) => Dns::Lost(loss.clone()),
            None => Dns::Deleted(listed("the owner record names no seed", said)),
        },
        Saying::Nothing(_) | Saying::Silent(_) => Dns::Silent(listed("the record decides nothing", said)),
    }
}

/// Two answers agree where neither contradicts the other. A hand-over reaches servers at different times: the
/// identity is deleted at the first server, and the second server names the next owner already.
fn agree(left: &Saying, right: &Saying) -> bool {
    let is_over = |saying: &Saying| matches!(saying, Saying::Deleted | Saying::NotMine(_));
    std::mem::discriminant(left) == std::mem::discriminant(right) || (is_over(left) && is_over(right))
}

/// The loss that a later epoch proves, where a server shows a later epoch. A foreign identity beside my epoch
/// is weaker: the value may be the identity of the epoch before.
fn most_final<'a>(spoken: &[&'a Saying]) -> Option<&'a Loss> {
    let losses = || {
        spoken.iter().filter_map(|saying| match saying {
            Saying::NotMine(loss) => Some(loss),
            _ => None,
        })
    };
    losses()
        .find(|loss| matches!(loss, Loss::LaterEpoch(_)))
        .or_else(|| losses().next())
}

/// Whether a server has shown my epoch, with any identity or without an identity.
pub(crate) fn shows_own_epoch(said: &[(SocketAddr, Saying)]) -> bool {
    said.iter().any(|(_, saying)| {
        matches!(
            saying,
            Saying::Mine | Saying::Deleted | Saying::NotMine(Loss::AnotherIdentity(_))
        )
    })
}

/// Whether every authority, without exception, shows my identity and my epoch. The error lists the
/// authorities' answers.
pub(crate) fn is_shown_everywhere(said: &[(SocketAddr, Saying)]) -> Result<(), String> {
    if !said.is_empty() && said.iter().all(|(_, saying)| *saying == Saying::Mine) {
        return Ok(());
    }
    Err(listed("not every authority shows it", said))
}

/// Whether a planned move may stop the API: no authority that answers contradicts the record of my epoch.
/// Also, no authority may still have a record that was deleted at another authority. Such an authority would
/// hold up the end of the epoch after the API has stopped. A silent authority does not: a move needs no
/// secondary that is down.
pub(crate) fn lets_an_epoch_end(said: &[(SocketAddr, Saying)]) -> Result<(), String> {
    let all_are_silent = said.iter().all(|(_, saying)| matches!(saying, Saying::Silent(_)));
    match combine(said) {
        Dns::Owned | Dns::Deleted(_) => Ok(()),
        Dns::Silent(_) if all_are_silent => Ok(()),
        Dns::Silent(_) | Dns::Lost(_) => Err(listed(
            "a DNS server contradicts the owner record of this seed",
            said,
        )),
    }
}

fn listed(what: &str, said: &[(SocketAddr, Saying)]) -> String {
    let mut text = what.to_owned();
    for (number, (server, saying)) in said.iter().enumerate() {
        text.push_str(if number == 0 { ": " } else { "; " });
        let says = match saying {
            Saying::Mine => "mine".to_owned(),
            Saying::Deleted => "no identity beside my epoch".to_owned(),
            Saying::NotMine(loss) => loss.to_string(),
            Saying::Nothing(why) | Saying::Silent(why) => why.clone(),
        };
        text.push_str(&server.to_string());
        text.push_str(": ");
        text.push_str(&says);
    }
    text
}
