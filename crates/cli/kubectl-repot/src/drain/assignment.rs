//! The destination of each shoot, within the room of the destinations: pure.

use api::gardencore::Seed;
use kube::ResourceExt;

/// Resource of `status.allocatable` of a Seed: the shoots that the seed may have.
const SHOOTS: &str = "shoots";

/// A destination of a drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    /// Name of the Seed.
    pub(super) name: String,
    /// The shoots that the seed can take besides the present shoots. `None`: the Seed names no number.
    room: Option<usize>,
    given: usize,
}

impl Destination {
    /// `taken`: shoots on the seed and on the way to the seed.
    pub(super) fn new(seed: &Seed, taken: usize) -> Self {
        let status = seed.status.as_ref();
        let bound = status.and_then(|status| status.allocatable.get(SHOOTS)?.0.parse::<usize>().ok());
        Self {
            name: seed.name_any(),
            room: bound.map(|bound| bound.saturating_sub(taken)),
            given: 0,
        }
    }

    fn has_room(&self) -> bool {
        self.room.is_none_or(|room| self.given < room)
    }
}

/// The names of the destinations to try for the next shoot: first the destination with the fewest new shoots.
/// Empty where no destination has room.
pub(super) fn assign(destinations: &mut [Destination]) -> Vec<String> {
    let with_room = destinations
        .iter()
        .enumerate()
        .filter(|(_, seed)| seed.has_room());
    let Some((first, _)) = with_room.min_by_key(|(index, seed)| (seed.given, *index)) else {
        return Vec::new();
    };
    let mut names = vec![destinations[first].name.clone()];
    let others = destinations.iter().enumerate();
    let others = others.filter(|(index, seed)| *index != first && seed.has_room());
    names.extend(others.map(|(_, seed)| seed.name.clone()));
    destinations[first].given += 1;
    names
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn seed(name: &str, status: &str) -> Seed {
        serde_yaml_ng::from_str(&format!(
            "metadata: {{name: {name}}}\nspec: {{dns: {{}}, networks: {{pods: p, services: s}}, provider: {{type: t, region: r}}}}\n\
             status: {status}\n"
        ))
        .unwrap()
    }

    #[test]
    fn shoots_are_spread_within_the_room_of_the_destinations() {
        let small = Destination::new(&seed("b", "{allocatable: {shoots: '3'}}"), 1);
        let large = Destination::new(&seed("c", "{}"), 7);
        let mut both = [small.clone(), large];
        let first: Vec<String> = (0..5).map(|_| assign(&mut both).swap_remove(0)).collect();
        assert_eq!(first, ["b", "c", "b", "c", "c"]);
        let mut one = [small];
        let names: Vec<Vec<String>> = (0..3).map(|_| assign(&mut one)).collect();
        assert_eq!(names, [vec!["b"], vec!["b"], vec![]]);
    }

    #[test]
    fn a_second_destination_is_tried_after_the_first() {
        let mut both = ["b", "c"].map(|name| Destination::new(&seed(name, "{}"), 0));
        assert_eq!(assign(&mut both), ["b", "c"]);
        assert_eq!(assign(&mut both), ["c", "b"]);
    }
}
