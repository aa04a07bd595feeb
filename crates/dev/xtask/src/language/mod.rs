//! `xtask language`: the language of comments, names, field descriptions, pages and commits, held by numbers
//! that may only fall.
//!
//! `crates/dev/xtask/language.yaml` records how many breaches each crate, CRD and page may still have. The
//! check fails where a crate, a CRD or a page has more, and where a change of the baseline raised a number.

mod baseline;
mod commits;
mod descriptions;
mod names;
mod pages;
mod vague_words;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use self::baseline::{BASELINE, Baseline};
use crate::sources;

/// Counts the breaches of this checkout and compares the numbers with the baseline. `lower` writes the
/// baseline where numbers fell.
pub fn run(lower: bool) -> Result<()> {
    let root = Path::new(".");
    let counted = count(root)?;
    let path = root.join(BASELINE);
    let recorded = match fs::read_to_string(&path) {
        Ok(text) => Baseline::parse(&text)?,
        Err(error) if lower && error.kind() == std::io::ErrorKind::NotFound => counted.clone(),
        Err(error) => return Err(error).with_context(|| format!("{BASELINE} cannot be read")),
    };
    if lower {
        fs::write(&path, recorded.lowered(&counted).render()?)
            .with_context(|| format!("{BASELINE} cannot be written"))?;
        println!("language: {BASELINE} is written");
        return Ok(());
    }
    let mut breaches = recorded.exceeded_by(&counted);
    if let Some(former) = commits::former_version(BASELINE)? {
        breaches.extend(Baseline::parse(&former)?.raised_in(&recorded));
    }
    breaches.extend(commits::breaches(BASELINE)?);
    for breach in &breaches {
        eprintln!("language: {breach}");
    }
    if !breaches.is_empty() {
        bail!(
            "{} breach(es) of the language; docs/understand/language.md has the rules",
            breaches.len()
        );
    }
    println!("language: ok ({counted})");
    Ok(())
}

/// All numbers of the checkout at `root`.
fn count(root: &Path) -> Result<Baseline> {
    let mut comments: BTreeMap<String, vague_words::Share> = BTreeMap::new();
    let mut counted = Baseline::default();
    for file in sources::rust_files(root)? {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let package = package_of(file.strip_prefix(root).unwrap_or(&file));
        comments.entry(package.clone()).or_default().add(&text);
        *counted.wide_comments.entry(package.clone()).or_default() += vague_words::wide_comments(&text);
        *counted.stopped_names.entry(package).or_default() += names::stopped(&text);
    }
    counted.vague_words = comments
        .into_iter()
        .map(|(package, share)| (package, share.tenths_per_hundred()))
        .collect();
    for (path, text) in texts_below(root, "crds", "yaml")? {
        counted.weak_descriptions.insert(path, descriptions::weak(&text)?);
    }
    for (path, text) in texts_below(root, "docs", "md")? {
        counted.long_sentences.insert(path, pages::long_sentences(&text));
    }
    let readme = fs::read_to_string(root.join("README.md")).context("README.md cannot be read")?;
    counted
        .long_sentences
        .insert("README.md".to_owned(), pages::long_sentences(&readme));
    Ok(counted)
}

/// The crate of a source file, or `tests` for the test crates of the workspace.
fn package_of(path: &Path) -> String {
    if let Some((name, _)) = path.to_str().and_then(sources::crate_of) {
        return name.to_owned();
    }
    let first = path.iter().next().unwrap_or_default();
    first.to_string_lossy().into_owned()
}

/// Paths relative to `root` and texts of all files below `folder` with this extension, in the order of the
/// paths.
fn texts_below(root: &Path, folder: &str, extension: &str) -> Result<Vec<(String, String)>> {
    let files = sources::files_below(vec![root.join(folder)], extension)?;
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        Ok((shown, text))
    };
    files.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::package_of;

    #[test]
    fn a_file_belongs_to_its_crate_and_all_test_crates_count_together() {
        assert_eq!(package_of(Path::new("crates/core/api/src/lib.rs")), "api");
        assert_eq!(package_of(Path::new("tests/drill/main.rs")), "tests");
    }
}
