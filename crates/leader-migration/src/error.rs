//! Errors of flags or of a configuration, written for the administrator who has to fix the error.

/// The reason why a process must not start (RK-17, RK-18). The text names the flag, or the file with line and
/// field, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Flags that contradict each other.
    #[error("{0}")]
    Flags(String),
    /// The file of `--leader-migration-config` cannot be read.
    #[error(
        "{path}: cannot be read ({why}): correct --leader-migration-config, or remove it to use the default configuration"
    )]
    Unreadable {
        /// The path of the file.
        path: String,
        /// The error of the system.
        why: String,
    },
    /// The file was read, but is not a valid configuration. Never empty.
    #[error("{}", lines(origin, problems))]
    Invalid {
        /// The name of the text in messages, usually its path.
        origin: String,
        /// All problems, in the order of the checks.
        problems: Vec<Problem>,
    },
}

/// A single problem of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line, counted from 1; `None` if the line is unknown.
    pub line: Option<usize>,
    /// The field, such as `controllerLeaders[2].name`; empty for the document as a whole.
    pub field: String,
    /// The problem, and the remedy.
    pub what: String,
}

impl Problem {
    /// `FILE:LINE: FIELD: WHAT`, the form that editors and people can follow.
    pub(super) fn in_file(&self, origin: &str) -> String {
        let place = match self.line {
            Some(line) => format!("{origin}:{line}"),
            None => origin.to_owned(),
        };
        if self.field.is_empty() {
            format!("{place}: {}", self.what)
        } else {
            format!("{place}: {}: {}", self.field, self.what)
        }
    }
}

fn lines(origin: &str, problems: &[Problem]) -> String {
    let all: Vec<_> = problems.iter().map(|problem| problem.in_file(origin)).collect();
    all.join("\n")
}
