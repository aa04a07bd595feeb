//! Each known complaint and bug of earlier projects has a test (docs/understand/lessons.md). Each requirement
//! of the bad case (docs/understand/gep-17.md) has a test that names the requirement's number. Each test that
//! a page names exists.

use std::{collections::BTreeSet, fs};

use crate::programs::root;

/// A word of each row's source, in order. A row must not vanish unnoticed.
const ROWS: [&str; 37] = [
    "gardener#11222",
    "gardener#12579",
    "shoot-dns-service#413",
    "etcd-backup-restore#263",
    "gardener#5423",
    "gardener#5471",
    "gardener#8742",
    "machine-controller-manager#718",
    "gardener#3520",
    "gardener#5993",
    "etcd-backup-restore#1001",
    "etcd-backup-restore#907",
    "gardener#11813",
    "control_plane_migration.md",
    "gardener#7139",
    "etcd-backup-restore#749",
    "gardener#4484",
    "gardener#4584",
    "gardener#9651",
    "gardener#4773",
    "gardener#15442",
    "gardener#15654",
    "gardener#14268",
    "shoot-dns-service#408",
    "shoot-dns-service#438",
    "gardener#4220",
    "gardener#4859",
    "provider-aws#425",
    "gardener#5132",
    "gardener#5587",
    "dashboard#2032",
    "dashboard#1256",
    "gardener#13996",
    "GEP-39",
    "gardener#2885",
    "gardener#5533",
    "Terraform",
];
const NOT_APPLICABLE: &str = "not applicable: ";

/// The faults of a table row.
fn lacks(row: &str) -> Option<String> {
    let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
    let [number, told, prevents, test] = cells[..] else {
        return Some(format!("{row}: {} cells", cells.len()));
    };
    let named = tests_in(test);
    let why = test.strip_prefix(NOT_APPLICABLE).unwrap_or_default();
    if told.is_empty() || prevents.is_empty() {
        return Some(format!(
            "row {number} does not say what broke and what prevents it"
        ));
    }
    if named.is_empty() && why.len() < 10 {
        return Some(format!("row {number} names no test and does not say why"));
    }
    named.iter().find_map(|(file, function)| missing(file, function))
}

/// `file::function` in code spans.
fn tests_in(cell: &str) -> Vec<(String, String)> {
    let spans = cell.split('`').skip(1).step_by(2);
    spans
        .filter_map(|span| span.split_once(".rs::"))
        .map(|(file, function)| (format!("{file}.rs"), function.to_owned()))
        .collect()
}

fn missing(file: &str, function: &str) -> Option<String> {
    let Ok(text) = fs::read_to_string(root().join(file)) else {
        return Some(format!("there is no file {file}"));
    };
    let there = text.contains(&format!("fn {function}("));
    (!there).then(|| format!("there is no function {function} in {file}"))
}

/// The fault in the file of a requirement's test: no comment has the number of the requirement.
fn uncited(file: &str, number: u32) -> Option<String> {
    let text = fs::read_to_string(root().join(file)).unwrap_or_default();
    (!cites(&text, number)).then(|| format!("no comment in {file} cites R17-{number:02}"))
}

/// Whether a comment names R17-`number`, alone or in a range like R17-40..44.
fn cites(text: &str, number: u32) -> bool {
    let digits = |text: &str| text.get(..2)?.parse::<u32>().ok();
    let covers = |said: &str| {
        let first = digits(said);
        let last = said.get(2..).and_then(|rest| digits(rest.strip_prefix("..")?));
        first.is_some_and(|first| (first..=last.unwrap_or(first)).contains(&number))
    };
    let comments = text.lines().filter_map(|line| line.split_once("//"));
    comments
        .flat_map(|(_, comment)| comment.split("R17-").skip(1))
        .any(covers)
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join("docs/understand").join(name)).unwrap()
}

fn rows(text: &str) -> Vec<&str> {
    let numbered = |line: &&str| {
        let number = line.strip_prefix("| ").and_then(|line| line.split(' ').next());
        number.is_some_and(|number| number.parse::<usize>().is_ok())
    };
    text.lines().filter(numbered).collect()
}

#[test]
fn each_lesson_has_its_test() {
    let text = page("lessons.md");
    let rows = rows(&text);
    let sources: Vec<&str> = rows.iter().filter_map(|row| row.split(" | ").nth(1)).collect();
    assert_eq!(
        sources.len(),
        ROWS.len(),
        "rows are missing, or new ones are not listed here"
    );
    for (number, (told, source)) in sources.iter().zip(ROWS).enumerate() {
        assert!(
            told.contains(source),
            "row {} is not that of {source}: {told}",
            number + 1
        );
    }
    let lack: Vec<String> = rows.iter().filter_map(|row| lacks(row)).collect();
    assert!(
        lack.is_empty(),
        "docs/understand/lessons.md:\n{}",
        lack.join("\n")
    );
}

#[test]
fn each_requirement_of_the_bad_case_has_its_test() {
    let table = page("gep-17.md");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| R17-")).collect();
    let told: Vec<&str> = rows.iter().filter_map(|row| row.split(' ').nth(1)).collect();
    let numbers = (1..=6)
        .chain(10..=14)
        .chain(20..=31)
        .chain(40..=54)
        .chain(60..=64);
    let all: Vec<String> = numbers.clone().map(|number| format!("R17-{number:02}")).collect();
    assert_eq!(told, all, "docs/understand/gep-17.md");
    let mut lack = Vec::new();
    for (row, number) in rows.into_iter().zip(numbers) {
        let test = row
            .trim_matches('|')
            .rsplit(" | ")
            .next()
            .unwrap_or_default()
            .trim();
        let named = tests_in(test);
        if named.is_empty() && !test.starts_with(NOT_APPLICABLE) {
            lack.push(format!("{row} names no test"));
        }
        let short =
            |(file, function): &(String, String)| missing(file, function).or_else(|| uncited(file, number));
        lack.extend(named.iter().filter_map(short));
    }
    assert!(lack.is_empty(), "docs/understand/gep-17.md:\n{}", lack.join("\n"));
}

/// GEP-17 does not repeat the weaknesses that GEP-7 names.
#[test]
fn each_requirement_of_gep_7_on_the_page_has_its_test() {
    let table = page("gep-17.md");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| R7-")).collect();
    assert!(!rows.is_empty(), "docs/understand/gep-17.md");
    for row in rows {
        let named = tests_in(row);
        assert!(!named.is_empty(), "{row} names no test");
        let gone = named.iter().find_map(|(file, function)| missing(file, function));
        assert_eq!(gone, None, "{row}");
    }
}

/// A span that begins with `::` continues the file before; a span of a table with a folder in the head begins
/// in that folder.
#[test]
fn each_test_that_prevents_something_is_there() {
    let text = page("prevented.md");
    let (mut folder, mut lack, mut seen) = (String::new(), Vec::new(), BTreeSet::new());
    for line in text.lines().filter(|line| line.starts_with('|')) {
        if let Some(head) = line.strip_prefix("| prevented | test") {
            folder = tests_folder(head);
            continue;
        }
        for (file, function) in tests_in(line) {
            let places = [file.clone(), format!("{folder}/{file}")];
            let found = places.iter().any(|place| missing(place, &function).is_none());
            if !found && !in_tree(&file, &function) {
                lack.push(format!("there is no {function} in {file} ({line})"));
            }
            seen.insert(function);
        }
    }
    assert!(
        seen.len() > 80,
        "only {} tests were found on the page",
        seen.len()
    );
    assert!(
        lack.is_empty(),
        "docs/understand/prevented.md:\n{}",
        lack.join("\n")
    );
}

fn tests_folder(head: &str) -> String {
    head.split('`').nth(1).unwrap_or_default().to_owned()
}

/// Some rows name a file only by the last part, after an earlier row has named the folder.
fn in_tree(file: &str, function: &str) -> bool {
    let mut folders = vec![root().join("crates"), root().join("tests")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.ends_with(file) {
                let text = fs::read_to_string(&path).unwrap();
                if text.contains(&format!("fn {function}(")) {
                    return true;
                }
            }
        }
    }
    false
}

#[test]
fn a_row_without_a_test_is_found() {
    let named = "| 1 | it broke | a rule | `tests/operations/lessons.rs::a_row_without_a_test_is_found` |";
    assert_eq!(lacks(named), None);
    let excused = "| 1 | it broke | a rule | not applicable: there is no such thing |";
    assert_eq!(lacks(excused), None);
    let empty = "| 1 | it broke | a rule | later |";
    assert!(lacks(empty).unwrap().contains("names no test"));
    let gone = "| 1 | it broke | a rule | `tests/operations/lessons.rs::nobody_wrote_this` |";
    assert!(lacks(gone).unwrap().contains("nobody_wrote_this"));
    let elsewhere = "| 1 | it broke | a rule | `tests/nowhere.rs::a` |";
    assert!(lacks(elsewhere).unwrap().contains("no file"));
}

#[test]
fn a_requirement_is_cited_alone_or_in_a_range() {
    for (text, cited) in [
        ("/// R17-43: it stops.", true),
        ("//! It stops (R17-01, R17-43).", true),
        ("    stops(); // R17-40..44", true),
        ("/// R17-43..44", true),
        ("/// R17-44..47, R17-40..42", false),
        ("/// R17-4", false),
        ("/// R7-43", false),
        ("let said = \"R17-43\";", false),
        ("", false),
    ] {
        assert_eq!(cites(text, 43), cited, "{text}");
    }
}
