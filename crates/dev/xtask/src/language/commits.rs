//! Subjects of commits, and former versions of a file.

use std::process::Command;

use anyhow::{Context, Result};

/// Characters that a subject may have.
const LONGEST: usize = 72;

/// The version of `file` before the last commit that changed the file. `None` if the history of this checkout
/// has no earlier version.
pub fn former_version(file: &str) -> Result<Option<String>> {
    let Some(commit) = git(&["log", "-1", "--format=%H", "--", file])?.filter(|commit| !commit.is_empty())
    else {
        return Ok(None);
    };
    git(&["show", &format!("{commit}^:{file}")])
}

/// Commits since the commit that added `file`, the baseline of the gate, with a subject that breaks the
/// rules.
pub fn breaches(file: &str) -> Result<Vec<String>> {
    let first = git(&["log", "--format=%H", "--diff-filter=A", "--", file])?.unwrap_or_default();
    let Some(first) = first.lines().last() else {
        return Ok(Vec::new());
    };
    let subjects =
        git(&["log", "--no-merges", "--format=%s", &format!("{first}..HEAD")])?.unwrap_or_default();
    Ok(subjects.lines().filter_map(fault_of_subject).collect())
}

/// The fault of a subject, if any.
fn fault_of_subject(subject: &str) -> Option<String> {
    let count = subject.chars().count();
    if count > LONGEST {
        return Some(format!(
            "the subject of a commit has {count} characters; {LONGEST} is the most: {subject}"
        ));
    }
    let is_area = |area: &str| {
        !area.is_empty()
            && area
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    let is_well_formed = subject
        .split_once(": ")
        .is_some_and(|(area, rest)| is_area(area) && rest.starts_with(|c: char| c.is_ascii_lowercase()));
    (!is_well_formed)
        .then(|| format!("the subject of a commit has not the form `area: verb object`: {subject}"))
}

/// The output of git, without the line end. `None` where git fails: the history may be shallow.
fn git(arguments: &[&str]) -> Result<Option<String>> {
    let output = Command::new("git")
        .args(arguments)
        .output()
        .context("git could not be started")?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(output.status.success().then(|| text.trim_end().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::fault_of_subject;

    #[test]
    fn a_subject_has_an_area_a_verb_and_72_characters() {
        assert_eq!(fault_of_subject("gardenlet: report the zone's budget"), None);
        assert!(fault_of_subject("Report the budget").is_some());
        assert!(fault_of_subject("gardenlet: Report the budget").is_some());
        assert!(fault_of_subject("two words: report").is_some());
        assert!(fault_of_subject(&format!("gardenlet: {}", "x".repeat(72))).is_some());
    }
}
