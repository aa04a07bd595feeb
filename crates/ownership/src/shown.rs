//! The other side: when a destination's fence may begin.

use tokio::time::timeout;

use crate::agreement;
use crate::claim::Claim;
use crate::judgement;
use crate::lookup::Lookup;
use crate::settings::Terms;
use crate::watch::Witnesses;

/// Looks once whether every witness that could extend a permit of an earlier owner shows this claim: each authority of the
/// zone, none left out, and the second witness. The destination's fence ([`Terms::fence`]) runs from the moment at which this
/// has returned `Ok`; a destination that is started anew begins anew. The error says who does not show it.
///
/// `witnesses.second` is the one that the *former* owner asks. It takes no longer than a check.
pub async fn shown_by_all(claim: &Claim, terms: &Terms, witnesses: &Witnesses) -> Result<(), String> {
    let settings = terms.settings();
    let lookup = Lookup {
        wire: &*witnesses.wire,
        authorities: &witnesses.authorities,
        claim,
        attempt: settings.attempt,
        compares_epochs: true,
    };
    agreement::is_shown_everywhere(&lookup.said().await?)?;
    let testimony = timeout(settings.second_witness, witnesses.second.ask())
        .await
        .map_err(|_| {
            format!(
                "the second witness did not answer within {:?}",
                settings.second_witness
            )
        })?;
    judgement::is_shown_by_second_witness(claim, &testimony)
}
