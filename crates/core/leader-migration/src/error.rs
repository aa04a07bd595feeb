//! Errors of flags, of a configuration and of a run, written for the administrator who has to fix the error.

use lease::{Lost, TimingError};

/// The reason why a process must not start (RK-17, RK-18). The text names the flag, or the file with line and
/// field, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Flags that contradict each other, or a flag without a valid value.
    #[error(transparent)]
    Flags(#[from] FlagsError),
    /// The file of `--leader-migration-config` cannot be read.
    #[error(
        "{path}: cannot be read ({error}): correct --leader-migration-config, or remove it to use the default configuration"
    )]
    Unreadable {
        /// The path of the file.
        path: String,
        /// The error of the system.
        error: std::io::Error,
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

/// Flags with which the process must not start (RK-17, RK-19).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlagsError {
    /// A file would be ignored.
    #[error(
        "--leader-migration-config is given, but leader migration is not enabled: add --enable-leader-migration, \
         or remove --leader-migration-config"
    )]
    FileWithoutMigration,
    /// The feature gate forbids leader migration.
    #[error(
        "--enable-leader-migration is given, but its feature gate is off: remove \
         --feature-gates=ControllerManagerLeaderMigration=false, or remove --enable-leader-migration"
    )]
    GateIsOff,
    /// Without leader election there are no locks.
    #[error(
        "--enable-leader-migration needs leader election: remove --leader-elect=false, or remove \
         --enable-leader-migration"
    )]
    NoLeaderElection,
    /// The durations of the flags do not make a safe lock.
    #[error(
        "--leader-elect-lease-duration, --leader-elect-renew-deadline and --leader-elect-retry-period: {0}"
    )]
    UnsafeTiming(TimingError),
    /// The lock of the default configuration is also the main lock of the manager.
    #[error(
        "default configuration: leaderName: {lock:?} is also this manager's main lock \
         (--leader-elect-resource-name): give the two different names"
    )]
    DefaultLockIsMainLock {
        /// The name of both locks.
        lock: String,
    },
    /// The program cannot read a file.
    #[error(
        "{path}: this program is built without the feature yaml of leader-migration and cannot read the file: \
         remove --leader-migration-config, or build the program with that feature"
    )]
    BuiltWithoutYaml {
        /// The path of the file.
        path: String,
    },
    /// A flag has no valid value.
    #[cfg(feature = "clap")]
    #[error("{}", .0.to_string().trim_end())]
    InvalidValue(clap::Error),
}

/// A value of `--feature-gates` that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeatureGateError {
    /// There is no such gate.
    #[error("there is no feature gate {0:?}; known: ControllerManagerLeaderMigration")]
    Unknown(String),
    /// The value of the gate is neither true nor false.
    #[error("write ControllerManagerLeaderMigration=true or ControllerManagerLeaderMigration=false")]
    NoBoolean,
}

/// The reason why the controllers of a process ended; the process must exit (RK-33). `E` is the error of the
/// author's controllers.
#[derive(Debug, thiserror::Error)]
pub enum RunError<E> {
    /// The flags do not make safe locks.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A lock was lost, or is held for a different list of controllers.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The controllers could not be started.
    #[error("{0}")]
    Controllers(E),
}

/// The cause of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The text is not a single YAML or JSON document.
    Syntax,
    /// The document is of a different kind or version.
    Format,
    /// A field that the version does not have.
    UnknownField,
    /// A field is missing or empty, or has a value of a wrong type.
    Value,
    /// `leaderName` or `resourceLock` names no possible migration lock.
    Lock,
    /// A controller is listed twice.
    Duplicate,
    /// A warning: an entry by which a controller runs nowhere or rests.
    Loss,
}

/// A single problem of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The cause.
    pub kind: ProblemKind,
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
