//! The results of checks, as text and as JSON.

use serde::Serialize;

use crate::{failure::Failure, terminal::one_line};

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckLevel {
    /// As needed.
    Ok,
    /// The suite works with limits, or the caller may not read the state.
    Warn,
    /// The suite does not work as promised.
    Fail,
}

/// A check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckLine {
    /// The result.
    pub level: CheckLevel,
    /// The state as a sentence.
    pub message: String,
    /// The remedy, if there is a problem.
    pub remedy: Option<String>,
}

impl CheckLine {
    pub(super) fn ok(message: impl Into<String>) -> Self {
        Self {
            level: CheckLevel::Ok,
            message: message.into(),
            remedy: None,
        }
    }

    pub(super) fn warn(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            level: CheckLevel::Warn,
            message: message.into(),
            remedy: Some(remedy.into()),
        }
    }

    pub(super) fn fail(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            level: CheckLevel::Fail,
            ..Self::warn(message, remedy)
        }
    }

    /// A state that the caller cannot read.
    pub(super) fn unreadable(failure: &Failure) -> Self {
        let remedy = "not checked; repeat the command as a user with the right to read the state";
        Self::warn(failure.to_string(), remedy)
    }
}

/// Checks of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckGroup {
    /// The object.
    pub title: String,
    /// The checks, in order.
    pub lines: Vec<CheckLine>,
}

impl CheckGroup {
    pub(super) fn new(title: impl Into<String>, lines: Vec<CheckLine>) -> Self {
        Self {
            title: title.into(),
            lines,
        }
    }

    /// The worst result.
    #[must_use]
    pub fn worst(&self) -> CheckLevel {
        let levels = self.lines.iter().map(|line| line.level);
        levels.max().unwrap_or(CheckLevel::Ok)
    }
}

/// The checks as text, with a summary at the end.
pub(super) fn render(groups: &[CheckGroup]) -> String {
    let mut lines = Vec::new();
    let mut counts = [0_usize; 3];
    for group in groups {
        lines.push(group.title.clone());
        for line in &group.lines {
            let (label, index) = match line.level {
                CheckLevel::Ok => ("ok  ", 0),
                CheckLevel::Warn => ("warn", 1),
                CheckLevel::Fail => ("fail", 2),
            };
            counts[index] += 1;
            lines.push(format!("  {label}  {}", one_line(&line.message)));
            let remedy = line.remedy.iter();
            lines.extend(remedy.map(|remedy| format!("        remedy: {remedy}")));
        }
    }
    let [ok, warn, fail] = counts;
    lines.push(format!("{ok} ok, {warn} warn, {fail} fail\n"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_has_a_remedy() {
        let lines = vec![
            CheckLine::ok("the API server answers"),
            CheckLine::fail("no kind is served", "install chart garden"),
        ];
        let groups = [
            CheckGroup::new("garden", lines),
            CheckGroup::new("shoots", Vec::new()),
        ];
        assert_eq!(
            render(&groups),
            "garden\n  ok    the API server answers\n  fail  no kind is served\n        remedy: install chart garden\nshoots\n\
             1 ok, 0 warn, 1 fail\n"
        );
        assert_eq!(groups[0].worst(), CheckLevel::Fail);
        assert_eq!(groups[1].worst(), CheckLevel::Ok);
    }
}
