//! The start of a destination's fence, and the end of a source's epoch.

use tokio::time::timeout;

use crate::authorities::Authorities;
use crate::claim::OwnershipClaim;
use crate::dns_verdict::{self, HandOverTestimony};
use crate::judgement;
use crate::lookup::Lookup;
use crate::settings::Terms;
use crate::watch::Witnesses;
use crate::wire::Wire;

/// Checks once whether every witness that could extend a permit of an earlier owner shows this claim: each
/// authority of the zone, without exception, and the second witness. The destination's fence
/// ([`Terms::fence`]) runs from the moment at which this function has returned `Ok`; a restarted destination
/// begins anew. The error names the witnesses that do not show the claim.
///
/// `witnesses.second` is the second witness of the *former* owner. The function takes no longer than a check.
pub async fn shown_by_all(
    claim: &OwnershipClaim,
    terms: &Terms,
    witnesses: &Witnesses,
) -> Result<(), String> {
    let settings = terms.settings();
    let lookup = lookup(claim, terms, &witnesses.authorities, &*witnesses.wire);
    dns_verdict::is_shown_everywhere(&lookup.ask_all().await?)?;
    let testimony = timeout(settings.store_timeout, witnesses.second.ask())
        .await
        .map_err(|_| {
            format!(
                "the second witness did not answer within {:?}",
                settings.store_timeout
            )
        })?;
    judgement::is_shown_by_second_witness(claim, &testimony)
}

/// Checks once whether an authority contradicts the owner record, before a planned move stops the API. The
/// error lists the answer of each authority. Silent authorities, and a zone without known servers, are no
/// obstacle.
pub async fn check_before_sealing(
    claim: &OwnershipClaim,
    terms: &Terms,
    authorities: &Authorities,
    wire: &dyn Wire,
) -> Result<(), String> {
    match lookup(claim, terms, authorities, wire).ask_all().await {
        Ok(said) => dns_verdict::lets_an_epoch_end(&said),
        Err(_) => Ok(()),
    }
}

/// Checks once whether the owner record names a different seed in exactly the epoch of this claim, before a
/// former claimant deletes the objects of an unopened claim. The error lists the answer of each authority.
pub async fn check_owned_elsewhere(
    claim: &OwnershipClaim,
    terms: &Terms,
    authorities: &Authorities,
    wire: &dyn Wire,
) -> Result<(), String> {
    let said = lookup(claim, terms, authorities, wire).ask_all().await?;
    dns_verdict::names_another_owner(&said)
}

/// Asks once whether the owner record confirms a hand-over in the epoch of this claim. A zone without known
/// servers is silent.
pub async fn ask_hand_over(
    claim: &OwnershipClaim,
    terms: &Terms,
    authorities: &Authorities,
    wire: &dyn Wire,
) -> HandOverTestimony {
    let lookup = Lookup {
        asks_earlier_owner: true,
        ..lookup(claim, terms, authorities, wire)
    };
    match lookup.ask_all().await {
        Ok(said) => dns_verdict::judge_hand_over(&said),
        Err(_) => HandOverTestimony::Unknown,
    }
}

fn lookup<'a>(
    claim: &'a OwnershipClaim,
    terms: &Terms,
    authorities: &'a Authorities,
    wire: &'a dyn Wire,
) -> Lookup<'a> {
    Lookup {
        wire,
        authorities,
        claim,
        attempt: terms.settings().timeout,
        compares_epochs: true,
        asks_earlier_owner: false,
    }
}
