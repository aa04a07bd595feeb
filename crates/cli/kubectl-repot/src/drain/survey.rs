//! Reads the Seeds of a drain, and the Shoots that the drain concerns.

use api::{
    constants::condition::GARDENLET_READY,
    gardencore::{Seed, Shoot},
    meta::{ConditionStatus, find_condition},
};
use placement::is_released;

use super::{
    assignment::Destination,
    classification::{Share, classify},
    request::DrainRequest,
};
use crate::{
    exclusion::{UnmatchedEntry, check_unmatched, find_unmatched, is_excluded},
    failure::Failure,
    released::describe_released,
    session::{SeedReading, Session},
    terminal::one_line,
};

/// The state of the garden before a drain.
#[derive(Debug)]
pub(super) struct Survey {
    /// The Shoots that the drain concerns.
    pub(super) shoots: Vec<(Shoot, Share)>,
    /// The destinations with the room.
    pub(super) destinations: Vec<Destination>,
    /// Whether the source is closed to new shoots.
    pub(super) is_cordoned: bool,
    /// Shoots that do not count, and warnings about names that leave no shoot out.
    pub(super) notes: Vec<String>,
}

/// Reads the state of the garden.
///
/// # Errors
/// A refusal where the source cannot hand shoots over, where a destination takes no shoots, or where the
/// caller has approved in advance and may have mistyped the name of a shoot that is left out.
pub(super) async fn survey(session: &Session, request: DrainRequest<'_>) -> Result<Survey, Failure> {
    let source = Box::pin(read(session, request.from)).await?;
    check_source(&source, request.from)?;
    let mut seeds = Vec::new();
    for name in request.to {
        if name == request.from {
            return Err(Failure::refused(format!(
                "seed {name} cannot be a destination of the own shoots"
            )));
        }
        let seed = Box::pin(read(session, name)).await?;
        check_destination(&seed, name)?;
        seeds.push(seed);
    }
    let mut read = Box::pin(session.shoots_on(request.from)).await?;
    let mut notes = describe_released(&read, request.from);
    let mut present = Vec::new();
    for name in request.to {
        let on_destination = Box::pin(session.shoots_on(name)).await?;
        present.push(on_destination.iter().filter(|shoot| !is_released(*shoot)).count());
        read.extend(on_destination);
    }
    // A shoot that is left out may have arrived before a repeated command.
    let unmatched = Box::pin(find_unmatched(session, request.excluded, &read, request.from)).await;
    let mut shoots: Vec<_> = with_share(read, request.from).collect();
    let destinations = seeds
        .iter()
        .zip(request.to)
        .zip(present)
        .map(|((seed, name), present)| {
            let comes = |(shoot, share): &&(Shoot, Share)| {
                matches!(share, Share::Moving(to) if to == name) && is_on(shoot, request.from)
            };
            Destination::new(seed, present + shoots.iter().filter(comes).count())
        });
    let destinations = destinations.collect();
    // After the count: a shoot on the way arrives, whether or not the drain waits for the shoot.
    for (shoot, share) in &mut shoots {
        if is_excluded(shoot, request.excluded) {
            *share = Share::Excluded;
        }
    }
    if shoots.iter().any(|(_, share)| *share == Share::ToMove) {
        check_unmatched(&unmatched, request.approval)?;
    }
    notes.extend(unmatched.iter().map(UnmatchedEntry::warning));
    Ok(Survey {
        shoots,
        destinations,
        is_cordoned: source.spec.is_cordoned(),
        notes,
    })
}

fn with_share(shoots: Vec<Shoot>, from: &str) -> impl Iterator<Item = (Shoot, Share)> {
    shoots.into_iter().filter_map(move |shoot| {
        let share = classify(&shoot, from)?;
        Some((shoot, share))
    })
}

fn is_on(shoot: &Shoot, seed: &str) -> bool {
    shoot
        .status
        .as_ref()
        .and_then(|status| status.seed_name.as_deref())
        == Some(seed)
}

async fn read(session: &Session, name: &str) -> Result<Seed, Failure> {
    match Box::pin(session.seed(name)).await? {
        SeedReading::Read(seed) => Ok(*seed),
        SeedReading::Missing => Err(Failure::refused(format!("no Seed has the name {name}"))),
        SeedReading::Unreadable(why) => Err(Failure::refused(why)),
    }
}

/// The source hands each shoot over. A source that is silent cannot do so.
fn check_source(seed: &Seed, name: &str) -> Result<(), Failure> {
    let status = seed.status.as_ref();
    let ready = status.and_then(|status| find_condition(&status.conditions, GARDENLET_READY));
    match ready {
        Some(ready) if ready.status == ConditionStatus::Unknown => Err(Failure::refused(format!(
            "seed {name} is silent (condition {GARDENLET_READY}: {}), and hands no shoot over: wait until the gardenlet reports again, or take \
             the shoots over with `kubectl repot takeover --seed {name} --to SEED`",
            one_line(&ready.message)
        ))),
        _ => Ok(()),
    }
}

fn check_destination(seed: &Seed, name: &str) -> Result<(), Failure> {
    if seed.metadata.deletion_timestamp.is_some() {
        return Err(Failure::refused(format!(
            "destination seed {name} is being deleted: name a different seed"
        )));
    }
    if seed.spec.is_cordoned() {
        return Err(Failure::refused(format!(
            "destination seed {name} is cordoned: name a different seed, or open the seed with `kubectl repot uncordon {name}`"
        )));
    }
    Ok(())
}

#[cfg(test)]
#[path = "survey_tests.rs"]
mod tests;
