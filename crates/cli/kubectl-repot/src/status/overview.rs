//! `kubectl repot status --seeds`: the garden as a tree of seeds, with the shoots that are not at rest.

use api::{
    constants::condition::GARDENLET_READY,
    gardencore::Seed,
    meta::{Condition, ConditionStatus, LastOperationState as State, find_condition},
};
use jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;

use super::{report::ShootReport, text::describe_condition};
use crate::table::Branch;

/// Shoots that are named in a group, so that the tree fits a screen.
const NAMES: usize = 20;

/// The state of the garden.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GardenReport {
    /// All Seeds.
    pub seeds: Vec<SeedReport>,
    /// Number of all shoots.
    pub shoots: usize,
    /// Namespace and name of each shoot that no seed has begun.
    pub without_seed: Vec<String>,
    /// Sentences about shoots with an acting seed that is no Seed of the garden.
    pub on_unknown_seeds: Vec<String>,
}

/// The state of a seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedReport {
    /// Name of the Seed.
    pub name: String,
    /// Version of the gardenlet, as the seed reports.
    pub gardenlet_version: Option<String>,
    /// Whether the gardenlet has ever reported.
    pub has_reported: bool,
    /// Whether the seed is closed to new shoots.
    pub is_cordoned: bool,
    /// Number of shoots with the seed as the acting seed.
    pub shoots: usize,
    /// Conditions that do not hold.
    pub failing_conditions: Vec<Condition>,
    /// Sentences about shoots with a running operation, an error or a wanted move.
    pub busy_shoots: Vec<String>,
}

impl GardenReport {
    /// The report of all Seeds and Shoots.
    #[must_use]
    pub fn new(seeds: &[Seed], shoots: &[ShootReport]) -> Self {
        let names: Vec<String> = seeds.iter().map(ResourceExt::name_any).collect();
        let is_unknown = |report: &&ShootReport| {
            let acting = report.acting_seed.as_ref();
            acting.is_some_and(|seed| !names.contains(seed))
        };
        let no_seed = shoots.iter().filter(|report| report.acting_seed.is_none());
        let unknown = shoots.iter().filter(is_unknown);
        Self {
            seeds: seeds.iter().map(|seed| SeedReport::new(seed, shoots)).collect(),
            shoots: shoots.len(),
            without_seed: no_seed.map(full_name).collect(),
            on_unknown_seeds: unknown.map(describe_shoot).collect(),
        }
    }

    /// The report as a tree.
    #[must_use]
    pub fn tree(&self, now: Timestamp) -> String {
        let mut tree = Branch::new(format!(
            "Garden: {} seeds, {} shoots",
            self.seeds.len(),
            self.shoots
        ));
        for seed in &self.seeds {
            tree.attach(seed.branch(now));
        }
        tree.add_group("shoots without a seed", bounded(&self.without_seed));
        tree.add_group(
            "shoots on seeds that the garden does not have",
            bounded(&self.on_unknown_seeds),
        );
        tree.render()
    }
}

impl SeedReport {
    fn new(seed: &Seed, shoots: &[ShootReport]) -> Self {
        let name = seed.name_any();
        let status = seed.status.clone().unwrap_or_default();
        let own = shoots
            .iter()
            .filter(|report| report.acting_seed.as_deref() == Some(name.as_str()));
        let busy = own.clone().filter(|report| is_busy(report));
        let fails = |condition: &Condition| condition.status != ConditionStatus::True;
        Self {
            gardenlet_version: status.gardener.map(|gardener| gardener.version),
            has_reported: find_condition(&status.conditions, GARDENLET_READY).is_some(),
            is_cordoned: seed.spec.is_cordoned(),
            shoots: own.count(),
            busy_shoots: busy.map(describe_shoot).collect(),
            failing_conditions: status.conditions.into_iter().filter(fails).collect(),
            name,
        }
    }

    fn branch(&self, now: Timestamp) -> Branch {
        let cordoned = if self.is_cordoned { ", cordoned" } else { "" };
        let mut branch = Branch::new(format!(
            "seed {}: {} shoots, gardenlet {}{cordoned}",
            self.name,
            self.shoots,
            self.gardenlet_version.as_deref().unwrap_or("without a version")
        ));
        if !self.has_reported {
            branch.add(format!("condition {GARDENLET_READY} was never reported"));
        }
        let failing = self.failing_conditions.iter();
        let failing = failing.map(|condition| describe_condition(condition, now));
        branch.add_group("conditions that do not hold", failing.collect());
        branch.add_group(
            "shoots with an operation, an error or a wanted move",
            bounded(&self.busy_shoots),
        );
        branch
    }
}

/// At most [`NAMES`] sentences, and the number of the rest.
fn bounded(sentences: &[String]) -> Vec<String> {
    let mut shown: Vec<String> = sentences.iter().take(NAMES).cloned().collect();
    if sentences.len() > NAMES {
        shown.push(format!("and {} more", sentences.len() - NAMES));
    }
    shown
}

fn is_busy(report: &ShootReport) -> bool {
    let operation = report.operation.as_ref();
    report.is_to_move()
        || !report.errors.is_empty()
        || operation.is_none_or(|operation| operation.state != State::Succeeded)
}

fn full_name(report: &ShootReport) -> String {
    format!("{}/{}", report.namespace, report.name)
}

fn describe_shoot(report: &ShootReport) -> String {
    let operation = report.operation.as_ref();
    let operation = operation.map_or_else(
        || "no operation yet".to_owned(),
        |last| format!("{} {} {}%", last.type_, last.state, last.progress),
    );
    let wanted = report.wanted_seed.as_ref().filter(|_| report.is_to_move());
    let wanted = wanted.map(|seed| format!(", to seed {seed}"));
    let errors = match report.errors.len() {
        0 => String::new(),
        count => format!(", {count} errors"),
    };
    format!(
        "{}: {operation}{}{errors}",
        full_name(report),
        wanted.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::gardencore::Shoot;

    use super::*;

    const SPEC: &str = "{dns: {}, networks: {pods: p, services: s}, provider: {type: t, region: r}";

    fn seed(name: &str, more: &str, status: &str) -> Seed {
        let yaml = format!("metadata: {{name: {name}}}\nspec: {SPEC}{more}}}\nstatus: {status}\n");
        serde_yaml_ng::from_str(&yaml).unwrap()
    }

    fn shoot(name: &str, wanted: &str, status: &str) -> ShootReport {
        let yaml = format!(
            "metadata: {{name: {name}, namespace: garden-dev}}\n\
             spec: {{region: r, provider: {{type: t}}, seedName: {wanted}}}\nstatus: {status}\n"
        );
        ShootReport::new(&serde_yaml_ng::from_str::<Shoot>(&yaml).unwrap())
    }

    fn operation(state: &str) -> String {
        format!(
            "lastOperation: {{type: Reconcile, state: {state}, progress: 30, description: d, lastUpdateTime: 2026-01-01T00:00:00Z}}"
        )
    }

    #[test]
    fn the_tree_shows_seeds_with_faults_and_shoots_that_are_not_at_rest() {
        let silent = "{type: GardenletReady, status: Unknown, reason: Silent, message: No renewal., \
                      lastTransitionTime: 2026-01-01T00:00:00Z, lastUpdateTime: 2026-01-01T00:00:00Z}";
        let cordoned = ", taints: [{key: migration.gardener.cloud/cordoned}]";
        let seeds = [
            seed(
                "seed-a",
                cordoned,
                &format!("{{conditions: [{silent}], gardener: {{id: i, name: n, version: 0.1.0}}}}"),
            ),
            seed("seed-b", "", "{}"),
        ];
        let at_rest = format!("{{seedName: seed-a, {}}}", operation("Succeeded"));
        let failing = format!(
            "{{seedName: seed-a, {}, lastErrors: [{{description: e}}]}}",
            operation("Error")
        );
        let gone = format!("{{seedName: seed-x, {}}}", operation("Succeeded"));
        let shoots = [
            shoot("quiet", "seed-a", &at_rest),
            shoot("leaves", "seed-b", &at_rest),
            shoot("fails", "seed-a", &failing),
            shoot("new", "seed-b", "{}"),
            shoot("lost", "seed-x", &gone),
        ];
        let report = GardenReport::new(&seeds, &shoots);
        let expected = "\
Garden: 2 seeds, 5 shoots
├─ seed seed-a: 3 shoots, gardenlet 0.1.0, cordoned
│  ├─ conditions that do not hold
│  │  └─ GardenletReady is Unknown for 60s: No renewal. (Silent)
│  └─ shoots with an operation, an error or a wanted move
│     ├─ garden-dev/leaves: Reconcile Succeeded 30%, to seed seed-b
│     └─ garden-dev/fails: Reconcile Error 30%, 1 errors
├─ seed seed-b: 0 shoots, gardenlet without a version
│  └─ condition GardenletReady was never reported
├─ shoots without a seed
│  └─ garden-dev/new
└─ shoots on seeds that the garden does not have
   └─ garden-dev/lost: Reconcile Succeeded 30%
";
        assert_eq!(report.tree("2026-01-01T00:01:00Z".parse().unwrap()), expected);
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["seeds"][0]["isCordoned"], true);
    }

    #[test]
    fn a_group_names_a_bounded_number_of_shoots() {
        let names: Vec<String> = (0..NAMES + 3).map(|number| number.to_string()).collect();
        let shown = bounded(&names);
        assert_eq!((shown.len(), shown[NAMES].as_str()), (NAMES + 1, "and 3 more"));
    }
}
