use super::*;

const PAGE_WITH_DRAWING: &str = "\
# Architecture

```
core/
  api ──────┐ types only
  permit    │ guard
  lease ── permit             elections; package `repot-lease`
providers/aws/
  cloud-aws ── permit, api     calls
dev/
  testkit      real processes
```
prose
";

fn drawn(crates: &[(&str, &str, &[&str])]) -> BTreeMap<String, DrawnCrate> {
    let crates = crates.iter().map(|(name, group, uses)| {
        let uses = uses.iter().map(|used| (*used).to_owned()).collect();
        let group = (*group).to_owned();
        ((*name).to_owned(), DrawnCrate { group, uses })
    });
    crates.collect()
}

fn expected() -> BTreeMap<String, DrawnCrate> {
    drawn(&[
        ("api", "core", &[]),
        ("permit", "core", &[]),
        ("lease", "core", &["permit"]),
        ("cloud-aws", "providers/aws", &["permit", "api"]),
        ("testkit", "dev", &[]),
    ])
}

#[test]
fn the_drawing_names_groups_crates_and_uses() {
    assert_eq!(read(PAGE_WITH_DRAWING), expected());
    assert!(breaches(&read(PAGE_WITH_DRAWING), &expected()).is_empty());
}

#[test]
fn a_drawing_that_differs_from_the_manifests_is_found() {
    let actual = drawn(&[
        ("api", "core", &[]),
        ("permit", "components", &[]),
        ("lease", "core", &["api"]),
        ("cloud-aws", "providers/aws", &["permit", "api"]),
        ("novelty", "core", &[]),
    ]);
    assert_eq!(
        breaches(&read(PAGE_WITH_DRAWING), &actual),
        [
            "lease uses api: docs/understand/architecture.md lacks api in the line",
            "lease does not use permit: docs/understand/architecture.md has permit in the line",
            "novelty: docs/understand/architecture.md has no line for this crate",
            "permit: docs/understand/architecture.md names group core, and the crate is in crates/components",
            "testkit: docs/understand/architecture.md has a line, and there is no such crate below crates/",
        ]
    );
}

#[test]
fn a_page_without_a_drawing_lacks_every_crate() {
    assert_eq!(
        breaches(&read("# Architecture\n"), &expected()).len(),
        expected().len()
    );
}
