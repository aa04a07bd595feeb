//! Documented sentences: sentences in tables whose first column is "it says" must be sentences of the code. A
//! runbook that explains an obsolete sentence fails here.

use std::collections::BTreeMap;
use std::fs;

use testkit::files_below;

use crate::documents;
use crate::programs::root;

/// Head of the column.
const IT_SAYS: &str = "it says";
/// Shorter parts of a sentence would match anywhere.
const SHORTEST: usize = 8;

#[test]
fn what_is_explained_is_said() {
    let (code, mut found, mut missing) = (code(), 0, Vec::new());
    for (page, text) in documents::pages() {
        for part in explained(&text) {
            found += 1;
            if !code.contains(&part) {
                missing.push(format!("{page}: {part:?}"));
            }
        }
    }
    assert!(found > 35, "only {found} parts of sentences were found");
    assert!(missing.is_empty(), "nobody says: {missing:#?}");
}

/// The constant parts of the page's sentences.
fn explained(text: &str) -> Vec<String> {
    let (mut parts, mut is_told) = (Vec::new(), false);
    for line in text.lines().map(str::trim) {
        let Some(row) = line.strip_prefix('|') else {
            is_told = false;
            continue;
        };
        let cell = row.split('|').next().unwrap_or_default().trim();
        is_told |= cell == IT_SAYS;
        if is_told {
            // Each second part between back quotes is code.
            parts.extend(cell.split('`').skip(1).step_by(2).flat_map(fixed));
        }
    }
    parts
}

/// The text between the variable parts: an ellipsis, or a single capital letter.
fn fixed(sentence: &str) -> Vec<String> {
    let is_place = |word: &str| {
        let bare = word.trim_end_matches([':', ',', ';', '.']);
        bare.len() == 1 && bare.starts_with(|letter: char| letter.is_ascii_uppercase())
    };
    let words = sentence
        .split(' ')
        .map(|word| if is_place(word) { "…" } else { word });
    let marked = words.collect::<Vec<_>>().join(" ");
    let parts = marked.split('…').map(|part| part.trim().to_owned());
    parts.filter(|part| part.len() >= SHORTEST).collect()
}

/// The whole code; texts that continue in the next line are joined.
fn code() -> String {
    let mut all = String::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        if folder.join("Cargo.toml").exists() {
            for file in files_below(&folder.join("src"), "rs").unwrap() {
                all.push_str(&fs::read_to_string(file).unwrap());
            }
        } else {
            folders.extend(fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    let mut lines = all.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    with_constants(&lines.fold(first, |text, line| text + line.trim_start()))
}

/// The same text with the values of string constants that a sentence names in braces.
fn with_constants(text: &str) -> String {
    let constants: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.split_once("const ")?.1.split_once(": &str = \""))
        .filter_map(|(name, rest)| Some((name, rest.split_once('"')?.0)))
        .collect();
    let mut parts = text.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        let named = part.split_once('}');
        match named.and_then(|(name, rest)| Some((constants.get(name)?, rest))) {
            Some((value, rest)) => all + value + rest,
            None => all + "{" + part,
        }
    })
}

#[test]
fn parts_of_sentences_are_found_in_the_first_column() {
    let text = "| `not this one` | `x` |\n\n| it says | do |\n|---|---|\n| `epoch M: the record names X` | `nor this one` |\n\n| `nor this` |";
    assert_eq!(explained(text), ["the record names"]);
    assert_eq!(
        fixed("seed … has never told whether it asks …"),
        ["has never told whether it asks"]
    );
}

#[test]
fn sentences_have_the_values_of_constants() {
    let text = "pub const READY: &str = \"Ready\";\nformat!(\"condition {READY} is {state} ({})\")";
    let expected = "pub const READY: &str = \"Ready\";\nformat!(\"condition Ready is {state} ({})\")";
    assert_eq!(with_constants(text), expected);
}
