//! Deletes the chunks that a ShootState lists as no longer needed.
//!
//! The seed that had the shoot before wrote the lists in `spec.chunkAttempt`, and may be compromised. The
//! rights of this seed cover the chunks of further shoots of the project. Therefore a listed chunk is deleted
//! only under three conditions: the name is a chunk name of this shoot, the ShootState does not refer to the
//! chunk, and the InternalSecret is owned by this ShootState. The number of listed chunks that a write
//! carries along, and the number of deletions of a write, are bounded.

use std::collections::BTreeSet;

use api::gardencore::{ChunkAttempt, InternalSecret, ShootState, ShootStateSpec};
use kube::{ResourceExt, core::PartialObjectMeta};
use runtime::Result;

use super::{
    chunk_name::attempt_in_name,
    place::{FoundChunk, StateStore},
};

/// Most names in `leftovers` that a write keeps and deletes: more than the chunks of the largest state
/// (1 GiB in chunks that are half full). Names of 60 bytes make 250 KiB, which fit into a ShootState beside
/// the content.
const MOST_NAMES: usize = 4096;
/// Most numbers in `unfinished` that a write keeps. Each crash of a writer leaves one number.
const MOST_ATTEMPTS: usize = 1024;
/// Most chunks of an attempt, and about the most chunks that a write deletes for attempts: more than the
/// chunks of the largest state.
const MOST_IN_ATTEMPT: usize = 4096;

/// The attempt of a ShootState, without entries that no writer of this shoot writes, and without chunks that
/// the ShootState refers to. An attempt with a later number than the last attempt has not begun, and the
/// chunks may be created while this write runs. Entries above the bounds are dropped, the oldest first: such
/// chunks stay until the ShootState is deleted.
pub(super) fn attempt_of(shoot: &str, spec: &ShootStateSpec) -> ChunkAttempt {
    let listed = spec.chunk_attempt.clone().unwrap_or_default();
    let needed = needed_names(spec);
    let mut seen = BTreeSet::new();
    let leftovers = listed.leftovers.into_iter().filter(|name| {
        let attempt = attempt_in_name(shoot, name);
        attempt.is_some_and(|attempt| attempt <= listed.number)
            && !needed.contains(name.as_str())
            && seen.insert(name.clone())
    });
    let leftovers = last(leftovers.collect(), MOST_NAMES);
    let mut seen = BTreeSet::new();
    let unfinished = listed
        .unfinished
        .into_iter()
        .filter(|number| (1..=listed.number).contains(number) && seen.insert(*number));
    ChunkAttempt {
        number: listed.number.max(0),
        leftovers,
        unfinished: last(unfinished.collect(), MOST_ATTEMPTS),
    }
}

/// Deletes the chunks in the lists, and returns the attempt with the entries that have to stay: chunks that
/// this seed may not read yet, and chunks above the bound of a write.
pub(super) async fn delete(
    place: &StateStore,
    state: &ShootState,
    attempt: ChunkAttempt,
) -> Result<ChunkAttempt> {
    let mut left = ChunkAttempt {
        number: attempt.number,
        ..ChunkAttempt::default()
    };
    for name in attempt.leftovers {
        let is_done = match place.find_chunk(&name, state).await? {
            FoundChunk::Own(chunk) => place.delete_chunk(&chunk).await?,
            FoundChunk::Unreadable => false,
            FoundChunk::Absent | FoundChunk::Foreign => true,
        };
        if !is_done {
            left.leftovers.push(name);
        }
    }
    let needed = needed_names(&state.spec);
    let mut budget = MOST_IN_ATTEMPT;
    for number in attempt.unfinished {
        let chunks = if budget > 0 {
            chunks_of(place, state, number).await?
        } else {
            None
        };
        let Some(chunks) = chunks else {
            left.unfinished.push(number);
            continue;
        };
        budget = budget.saturating_sub(chunks.len());
        // The last chunk first: a crash leaves no gap before a chunk.
        for chunk in chunks.iter().rev() {
            let is_needed = needed.contains(chunk.name_any().as_str());
            if !is_needed && !place.delete_chunk(chunk).await? {
                left.unfinished.push(number);
                break;
            }
        }
    }
    Ok(left)
}

/// The InternalSecrets that an attempt created, or `None` while this seed may not read each of these
/// InternalSecrets. An attempt creates chunks in sequence: after a gap there are no further chunks.
async fn chunks_of(
    place: &StateStore,
    state: &ShootState,
    attempt: i64,
) -> Result<Option<Vec<PartialObjectMeta<InternalSecret>>>> {
    let mut chunks = Vec::new();
    for number in 0..MOST_IN_ATTEMPT {
        match place
            .find_chunk(&place.chunk_name(attempt, number), state)
            .await?
        {
            FoundChunk::Own(chunk) => chunks.push(*chunk),
            FoundChunk::Foreign => {}
            FoundChunk::Absent => break,
            FoundChunk::Unreadable => return Ok(None),
        }
    }
    Ok(Some(chunks))
}

/// The chunks that the content of the ShootState refers to.
fn needed_names(spec: &ShootStateSpec) -> BTreeSet<&str> {
    let chunks = spec.in_chunks.iter().flat_map(|chunks| &chunks.chunks);
    chunks.map(|chunk| chunk.name.as_str()).collect()
}

fn last<T>(mut list: Vec<T>, most: usize) -> Vec<T> {
    list.drain(..list.len().saturating_sub(most));
    list
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use api::gardencore::{StateChunk, StateInChunks};

    use super::*;

    fn spec(leftovers: Vec<String>, unfinished: Vec<i64>, needed: &[&str]) -> ShootStateSpec {
        let chunks = needed.iter().map(|name| StateChunk {
            name: (*name).to_owned(),
            ..StateChunk::default()
        });
        ShootStateSpec {
            in_chunks: Some(StateInChunks {
                chunks: chunks.collect(),
                ..StateInChunks::default()
            }),
            chunk_attempt: Some(ChunkAttempt {
                number: 2000,
                leftovers,
                unfinished,
            }),
            ..ShootStateSpec::default()
        }
    }

    #[test]
    fn a_hostile_list_names_no_chunk_of_another_shoot_and_no_needed_chunk() {
        let listed = [
            "other.state-1-0",
            "web.state-3-0",
            "web.state-2-0",
            "web2.state-1-0",
            "web.state-2-0",
            "web.state-2001-0",
        ];
        let listed = listed.map(str::to_owned).to_vec();
        let attempt = attempt_of(
            "web",
            &spec(listed, vec![4, -1, 4, 0, 2001, 3], &["web.state-3-0"]),
        );
        assert_eq!(attempt.leftovers, ["web.state-2-0"]);
        assert_eq!((attempt.number, attempt.unfinished), (2000, vec![4, 3]));
    }

    #[test]
    fn long_lists_are_cut() {
        let names = (0..=MOST_NAMES).map(|number| format!("web.state-1-{number}"));
        let numbers = 1..=i64::try_from(MOST_ATTEMPTS).unwrap() + 1;
        let attempt = attempt_of("web", &spec(names.collect(), numbers.collect(), &[]));
        assert_eq!(attempt.leftovers.len(), MOST_NAMES);
        assert_eq!(
            attempt.leftovers[0], "web.state-1-1",
            "the oldest name is dropped"
        );
        assert_eq!(attempt.unfinished.len(), MOST_ATTEMPTS);
        assert_eq!(attempt.unfinished[0], 2, "the oldest number is dropped");
    }
}
