//! What is wrong with flags or with a configuration, in words for the one who has to mend it.

/// Why a process must not start (RK-17, RK-18). Its text names the flag, or the file with line and field, and
/// what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Flags that do not go together.
    #[error("{0}")]
    Flags(String),
    /// The file of `--leader-migration-config` cannot be read.
    #[error(
        "{path}: cannot be read ({why}): correct --leader-migration-config, or remove it to use the default configuration"
    )]
    Unreadable {
        /// The path that was given.
        path: String,
        /// What the system said.
        why: String,
    },
    /// The file was read, but it is no valid configuration. Never empty.
    #[error("{}", lines(origin, problems))]
    Invalid {
        /// How the text is called, usually its path.
        origin: String,
        /// Everything that is wrong, in the order of the checks.
        problems: Vec<Problem>,
    },
}

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line, counted from 1; none if the place is not known.
    pub line: Option<usize>,
    /// The field, such as `controllerLeaders[2].name`; empty for the document as a whole.
    pub field: String,
    /// What is wrong there and what to write instead.
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
