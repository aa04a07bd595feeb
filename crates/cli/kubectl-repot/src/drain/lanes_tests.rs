//! The order of moves, with slow moves of a hostile project.

#![allow(clippy::unwrap_used)]

use super::*;

/// Lanes with shoots `NAMESPACE NAME`.
fn lanes(parallel: usize, names: &[&str]) -> Lanes {
    let work = names.iter().map(|shoot| {
        let (namespace, name) = shoot.split_once(' ').unwrap();
        let yaml = format!(
            "metadata: {{name: {name}, namespace: {namespace}}}\nspec: {{region: r, provider: {{type: t}}}}\n"
        );
        Work {
            shoot: serde_yaml_ng::from_str(&yaml).unwrap(),
            to: "b".to_owned(),
            is_under_way: false,
        }
    });
    Lanes::new(work.collect(), parallel)
}

/// The same after moves of an earlier command.
fn lanes_after_interruption(parallel: usize, under_way: &[&str], names: &[&str]) -> Lanes {
    let all = [under_way, names].concat();
    let mut lanes = lanes(parallel, &all);
    for (index, work) in &mut lanes.waiting {
        work.is_under_way = *index < under_way.len();
    }
    lanes
}

fn begin(lanes: &mut Lanes) -> Option<String> {
    lanes.begin_next().map(|(_, work)| work.shoot.name_any())
}

/// Security: otherwise the shoots of a single project hold all lanes.
#[test]
fn a_project_holds_half_of_the_lanes_while_a_second_project_waits() {
    let mut lanes = lanes(2, &["evil a", "evil b", "good c", "evil d"]);
    assert_eq!(begin(&mut lanes).as_deref(), Some("a"));
    assert_eq!(begin(&mut lanes).as_deref(), Some("c"));
    assert_eq!(begin(&mut lanes), None);
    lanes.end("good");
    // No second project waits.
    assert_eq!(begin(&mut lanes).as_deref(), Some("b"));
    lanes.end("evil");
    assert_eq!(begin(&mut lanes).as_deref(), Some("d"));
    lanes.end("evil");
    assert_eq!(begin(&mut lanes), None);
}

/// Security: otherwise the slow moves of a project hold the single lane in turn.
#[test]
fn a_delayed_move_releases_the_lane_for_further_projects_alone() {
    let mut lanes = lanes(1, &["evil a", "evil b", "good c"]);
    assert_eq!(begin(&mut lanes).as_deref(), Some("a"));
    assert_eq!(begin(&mut lanes), None);
    lanes.delay("evil", true);
    assert_eq!(begin(&mut lanes).as_deref(), Some("c"));
    lanes.end("good");
    assert_eq!(begin(&mut lanes), None, "the first move of the project goes on");
    lanes.end_delayed("evil", true);
    assert_eq!(begin(&mut lanes).as_deref(), Some("b"));
}

/// Security: otherwise a free lane stays empty beside a slow project.
#[test]
fn a_free_lane_is_for_a_further_project_with_a_move_under_way() {
    let mut lanes = lanes(2, &["evil a", "evil b", "good c", "good d"]);
    assert_eq!(begin(&mut lanes).as_deref(), Some("a"));
    assert_eq!(begin(&mut lanes).as_deref(), Some("c"));
    lanes.delay("evil", true);
    assert_eq!(begin(&mut lanes).as_deref(), Some("d"));
    assert_eq!(begin(&mut lanes), None);
}

/// Otherwise the moves of large shoots queue for the slots of the destination, and end by the bound.
#[test]
fn delayed_moves_have_a_bound() {
    let mut lanes = lanes(2, &["u a", "v b", "w c", "x d", "y e", "z f"]);
    for (name, namespace) in [("a", "u"), ("b", "v"), ("c", "w")] {
        assert_eq!(begin(&mut lanes).as_deref(), Some(name));
        lanes.delay(namespace, true);
    }
    assert_eq!(begin(&mut lanes).as_deref(), Some("d"));
    assert_eq!(begin(&mut lanes), None, "twice the lanes are under way");
    lanes.delay("x", true);
    assert_eq!(begin(&mut lanes), None, "no lane is held");
    lanes.end_delayed("v", true);
    assert_eq!(begin(&mut lanes).as_deref(), Some("e"));
    assert_eq!(begin(&mut lanes), None);
}

#[test]
fn a_delayed_move_of_an_earlier_command_delays_no_shoot() {
    let mut lanes = lanes(1, &["dev a", "dev b"]);
    assert_eq!(begin(&mut lanes).as_deref(), Some("a"));
    lanes.delay("dev", false);
    assert_eq!(begin(&mut lanes).as_deref(), Some("b"));
}

/// Security: otherwise a hostile project holds up a repeated drain by each of the own moves in turn.
#[test]
fn moves_of_an_earlier_command_are_watched_at_once_and_fill_the_bound() {
    let mut lanes = lanes_after_interruption(1, &["evil a", "evil b", "evil c"], &["good d"]);
    for name in ["a", "b", "c"] {
        assert_eq!(begin(&mut lanes).as_deref(), Some(name));
    }
    assert_eq!(begin(&mut lanes), None);
    assert_eq!(lanes.count_held_up(), 0, "the moves hold lanes");
    lanes.delay("evil", false);
    lanes.delay("evil", false);
    assert_eq!(begin(&mut lanes), None);
    lanes.delay("evil", false);
    assert_eq!(begin(&mut lanes).as_deref(), Some("d"));
}

/// Security: otherwise two hostile projects hold up all further projects until both moves end.
#[test]
fn a_delayed_move_without_a_slot_holds_up_no_further_project() {
    let mut lanes = lanes(1, &["evil a", "foul b", "good c", "evil d"]);
    for (name, namespace) in [("a", "evil"), ("b", "foul")] {
        assert_eq!(begin(&mut lanes).as_deref(), Some(name));
        lanes.delay(namespace, true);
    }
    assert_eq!(begin(&mut lanes), None);
    assert_eq!(lanes.count_held_up(), 2);
    lanes.free_slot("evil");
    assert_eq!(begin(&mut lanes).as_deref(), Some("c"));
    assert_eq!(lanes.count_held_up(), 0);
    lanes.end("good");
    assert_eq!(begin(&mut lanes), None, "the first move of the project goes on");
    lanes.end_delayed("evil", false);
    lanes.end_delayed("foul", true);
    assert_eq!(begin(&mut lanes).as_deref(), Some("d"));
}

/// Security: otherwise two hostile projects hold many lanes until the first delay.
#[test]
fn a_project_holds_a_single_lane_until_the_first_arrival() {
    let mut lanes = lanes(10, &["evil a", "evil b", "good c", "good d", "good e"]);
    assert_eq!(begin(&mut lanes).as_deref(), Some("a"));
    assert_eq!(begin(&mut lanes).as_deref(), Some("c"));
    lanes.end("good");
    lanes.note_arrival("good");
    assert_eq!(begin(&mut lanes).as_deref(), Some("d"));
    assert_eq!(begin(&mut lanes).as_deref(), Some("e"));
    // A free lane stays empty for no project.
    assert_eq!(begin(&mut lanes).as_deref(), Some("b"));
}
