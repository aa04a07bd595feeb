//! Looks at every state that can be reached, nearest first, so that what is reported is a shortest story.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write;

use super::world::{Action, Rules, World};

/// What was found.
pub(super) struct Found {
    pub states: usize,
    /// What does not hold, and the actions that led there.
    pub broken: Option<String>,
    /// Whether a lock passed from one manager to the other in any run.
    pub changes_of_holder: bool,
}

pub(super) fn explore(rules: &Rules) -> Found {
    let start = World::new(rules);
    let mut reached: HashMap<World, Option<(World, Action)>> = HashMap::from([(start.clone(), None)]);
    let mut queue = VecDeque::from([start]);
    let mut found = Found {
        states: 0,
        broken: None,
        changes_of_holder: false,
    };
    while let Some(world) = queue.pop_front() {
        found.states += 1;
        if let Some(breach) = world.breach(rules) {
            found.broken = Some(format!("{breach}, after:{}", story(&world, &reached)));
            break;
        }
        for action in world.actions(rules) {
            let next = world.after(action, rules);
            found.changes_of_holder |= world.hands_over_to(&next);
            if !reached.contains_key(&next) {
                reached.insert(next.clone(), Some((world.clone(), action)));
                queue.push_back(next);
            }
        }
    }
    found
}

fn story(end: &World, reached: &HashMap<World, Option<(World, Action)>>) -> String {
    let mut actions = Vec::new();
    let mut world = end;
    while let Some(Some((before, action))) = reached.get(world) {
        actions.push(*action);
        world = before;
    }
    actions.iter().rev().fold(String::new(), |mut text, action| {
        let _ = write!(text, "\n  {action:?}");
        text
    })
}
