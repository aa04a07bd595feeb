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

fn begin(lanes: &mut Lanes) -> Option<String> {
    lanes.begin_next().map(|(_, work)| work.shoot.name_any())
}

/// Security: otherwise the shoots of one project hold all lanes.
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

/// Security: otherwise each slow move of a project holds the single lane, one after the other.
#[test]
fn a_delayed_move_releases_the_lane_for_further_projects_alone() {
    let mut lanes = lanes(1, &["evil a", "evil b", "good c"]);
    assert_eq!(begin(&mut lanes).as_deref(), Some("a"));
    assert_eq!(begin(&mut lanes), None);
    lanes.delay("evil", true);
    assert_eq!(begin(&mut lanes).as_deref(), Some("c"));
    lanes.end("good");
    assert_eq!(begin(&mut lanes), None, "the first move of the project goes on");
    lanes.end_delayed("evil");
    assert_eq!(begin(&mut lanes).as_deref(), Some("b"));
}

#[test]
fn a_delayed_move_of_an_earlier_command_delays_no_shoot() {
    let mut lanes = lanes(1, &["dev a", "dev b"]);
    assert_eq!(begin(&mut lanes).as_deref(), Some("a"));
    lanes.delay("dev", false);
    assert_eq!(begin(&mut lanes).as_deref(), Some("b"));
}
