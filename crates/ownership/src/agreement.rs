//! What the authorities of a zone say together: a pure function of what each one says.

use std::net::SocketAddr;

use crate::saying::{Loss, Saying};

/// The first witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dns {
    /// Every authority that answers shows my identity and my epoch.
    Owned,
    /// Every authority that answers says that it is not mine.
    Lost(Loss),
    /// Anything else, and why.
    Silent(String),
}

/// One authority is enough, since a destination waits for all of them before its fence begins. But those that answer must
/// agree: while they do not, an update is under way, or one of them is broken.
pub(crate) fn of(said: &[(SocketAddr, Saying)]) -> Dns {
    let spoken: Vec<&Saying> = said
        .iter()
        .map(|(_, saying)| saying)
        .filter(|saying| !matches!(saying, Saying::Silent(_)))
        .collect();
    let Some(first) = spoken.first() else {
        return Dns::Silent(listed("no authority answers", said));
    };
    let alike = |saying: &&Saying| std::mem::discriminant(*saying) == std::mem::discriminant(*first);
    if !spoken.iter().all(alike) {
        return Dns::Silent(listed("the authorities disagree", said));
    }
    match first {
        Saying::Mine => Dns::Owned,
        // They may differ in how far they are: deleted at one, named after another at the next.
        Saying::NotMine(loss) => Dns::Lost(loss.clone()),
        Saying::Nothing(_) | Saying::Silent(_) => Dns::Silent(listed("the record decides nothing", said)),
    }
}

/// Whether every authority, and not one less, shows my identity and my epoch; if not, who does not.
pub(crate) fn is_shown_everywhere(said: &[(SocketAddr, Saying)]) -> Result<(), String> {
    if !said.is_empty() && said.iter().all(|(_, saying)| *saying == Saying::Mine) {
        return Ok(());
    }
    Err(listed("not every authority shows it", said))
}

fn listed(what: &str, said: &[(SocketAddr, Saying)]) -> String {
    let mut text = what.to_owned();
    for (number, (server, saying)) in said.iter().enumerate() {
        text.push_str(if number == 0 { ": " } else { "; " });
        let says = match saying {
            Saying::Mine => "mine".to_owned(),
            Saying::NotMine(loss) => loss.to_string(),
            Saying::Nothing(why) | Saying::Silent(why) => why.clone(),
        };
        text.push_str(&server.to_string());
        text.push_str(": ");
        text.push_str(&says);
    }
    text
}
