//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::exclusion::ALL_NAMES;

/// Exit codes, at the end of the help.
const EXIT_CODES: &str = "\
Exit codes:
  0  the command is done
  1  the command could not be carried out
  2  the garden refuses the request, the right is missing, there are obstacles, or the command line is wrong";

/// Longest name of an object.
const LONGEST_NAME: usize = 253;

/// Shows, plans, moves and takes over shoots with the rights of the caller.
#[derive(Clone, Debug, Parser)]
#[command(name = "kubectl-repot", bin_name = "kubectl repot", version, after_help = EXIT_CODES)]
pub struct Flags {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
    /// Flags of all commands.
    #[command(flatten)]
    pub common: Common,
}

/// Flags of all commands.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// Kubeconfig of the garden. Default: the files of variable KUBECONFIG, or ~/.kube/config.
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Default: the current context.
    #[arg(long, global = true)]
    pub context: Option<String>,
    /// Namespace of the Shoots. Default: the namespace of the context.
    #[arg(short, long, global = true, value_parser = object_name)]
    pub namespace: Option<String>,
    /// Form of the answer.
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// Bound of each request to the garden in seconds.
    #[arg(long, global = true, default_value_t = 30, value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub request_timeout: u64,
}

impl Common {
    /// The bound of each request.
    #[must_use]
    pub fn request_within(&self) -> Duration {
        Duration::from_secs(self.request_timeout)
    }
}

/// Form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Text for people.
    Text,
    /// JSON for scripts.
    Json,
}

/// A command.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Shows a line for each shoot, or a shoot as a tree.
    Status {
        /// Name of the Shoot. Without a name, a line for each Shoot of the namespace.
        #[arg(value_parser = object_name)]
        shoot: Option<String>,
        /// The Shoots of all namespaces.
        #[arg(short = 'A', long, conflicts_with = "shoot")]
        all_namespaces: bool,
        /// The garden as a tree of seeds, with the shoots that are not at rest.
        #[arg(long, conflicts_with_all = ["shoot", "all_namespaces"])]
        seeds: bool,
    },
    /// Asks the garden whether a shoot may move to a seed, without any change.
    Plan {
        /// Name of the Shoot.
        #[arg(value_parser = object_name)]
        shoot: String,
        /// Name of the destination Seed.
        #[arg(value_parser = object_name)]
        seed: String,
        /// Bound of the wait for the answer in seconds.
        #[arg(long, default_value_t = 60, value_name = "SECONDS")]
        timeout: u64,
    },
    /// Moves a shoot to a seed.
    Move {
        /// Name of the Shoot.
        #[arg(value_parser = object_name)]
        shoot: String,
        /// Name of the destination Seed.
        #[arg(value_parser = object_name)]
        seed: String,
        /// Whether and how long to wait.
        #[command(flatten)]
        wait: Wait,
    },
    /// Cancels a move that has not passed the point of no return.
    Cancel {
        /// Name of the Shoot.
        #[arg(value_parser = object_name)]
        shoot: String,
        /// Whether and how long to wait.
        #[command(flatten)]
        wait: Wait,
    },
    /// Closes a seed to new shoots and to moves to the seed. The shoots on the seed stay.
    Cordon {
        /// Name of the Seed.
        #[arg(value_parser = object_name)]
        seed: String,
    },
    /// Opens a cordoned seed again.
    Uncordon {
        /// Name of the Seed.
        #[arg(value_parser = object_name)]
        seed: String,
    },
    /// Moves all shoots of a seed to the named seeds. Shows the plan and asks for an approval first.
    Drain(Drain),
    /// Reports each step of the operation on a shoot, until the operation ends.
    Watch {
        /// Name of the Shoot.
        #[arg(value_parser = object_name)]
        shoot: String,
        /// Bound of the wait in seconds.
        #[arg(long, default_value_t = 1800, value_name = "SECONDS")]
        timeout: u64,
    },
    /// Takes a shoot, or all shoots of a seed, over from a dead seed. Asks for an approval first.
    Takeover(Takeover),
    /// Checks the garden, the seeds and the rights of the caller, without any change.
    Check {
        /// Checks before an installation whether the charts can be installed.
        #[arg(long)]
        pre: bool,
    },
    /// Writes the completion of the commands for a shell. Needs no garden.
    Completion {
        /// The shell.
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Writes the page for man. Needs no garden.
    Man,
    /// Writes the words that kubectl offers for the last word. For the script `kubectl_complete-repot`.
    #[command(hide = true)]
    OfferWords {
        /// The words after `kubectl repot`; the last word may be empty.
        words: Vec<String>,
    },
    /// Shows the versions of the plugin and of the garden.
    Version,
    /// Collects the objects and Events of a shoot for a report, without Secrets.
    Diagnose {
        /// Name of the Shoot.
        #[arg(value_parser = object_name)]
        shoot: String,
        /// New file for the bundle. Default: the standard output.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

/// Whether and how long to wait for the end of the operation.
#[derive(Args, Clone, Copy, Debug)]
pub struct Wait {
    /// Waits until the control plane is complete in the seed, and reports each step.
    #[arg(long)]
    pub wait: bool,
    /// Bound of the wait in seconds.
    #[arg(long, default_value_t = 1800, value_name = "SECONDS")]
    pub timeout: u64,
}

impl Wait {
    /// The bound of the wait, if the caller waits.
    #[must_use]
    pub fn within(&self) -> Option<Duration> {
        self.wait.then(|| Duration::from_secs(self.timeout))
    }
}

/// A drain of a seed.
#[derive(Args, Clone, Debug)]
pub struct Drain {
    /// Name of the Seed that is to lose all shoots.
    #[arg(value_parser = object_name)]
    pub seed: String,
    /// Names of the destination Seeds, separated by commas. The shoots are spread over the destinations.
    #[arg(long, value_parser = object_name, required = true, value_delimiter = ',', value_name = "SEED")]
    pub to: Vec<String>,
    /// Shoots that move at a time. Many moves at once make the downtime of each shoot longer. Beside slow
    /// moves of a project, shoots of further projects move, up to twice this number in all.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub parallel: u8,
    /// A Shoot that is left out; can be repeated. NAMESPACE/* leaves all Shoots of the namespace out.
    #[arg(long, value_parser = shoots_path, value_name = "NAMESPACE/NAME")]
    pub exclude: Vec<String>,
    /// Approves the drain without a question.
    #[arg(long)]
    pub yes: bool,
    /// Bound in seconds of the wait for the approval of each move, and of each move after the approval.
    #[arg(long, default_value_t = 1800, value_name = "SECONDS")]
    pub timeout: u64,
}

/// A takeover of a single shoot, or of all shoots of a dead seed.
#[derive(Args, Clone, Debug)]
pub struct Takeover {
    /// Name of the Shoot.
    #[arg(value_parser = object_name, required_unless_present = "from", requires = "seed")]
    pub shoot: Option<String>,
    /// Name of the Seed that takes the shoot over.
    #[arg(value_parser = object_name)]
    pub seed: Option<String>,
    /// Name of a dead Seed. All shoots of the seed are taken over.
    #[arg(long = "seed", value_parser = object_name, conflicts_with = "shoot", requires = "to")]
    pub from: Option<String>,
    /// Name of the Seed that takes all shoots over.
    #[arg(long, value_parser = object_name, requires = "from")]
    pub to: Option<String>,
    /// Shoots at a time with --seed.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub parallel: u16,
    /// A Shoot that is left out with --seed; can be repeated. NAMESPACE/* leaves all Shoots of the namespace
    /// out.
    #[arg(long, value_parser = shoots_path, requires = "from", value_name = "NAMESPACE/NAME")]
    pub exclude: Vec<String>,
    /// Approves the loss: the name of the Shoot, or of the dead Seed with --seed.
    #[arg(long, value_name = "NAME")]
    pub yes: Option<String>,
    /// States that no process of the old seed runs any more. If this is wrong, two control planes write.
    #[arg(long)]
    pub source_is_off: bool,
    /// Whether and how long to wait. With --seed each shoot is awaited.
    #[command(flatten)]
    pub wait: Wait,
}

/// A name of an object, so that no path leads out of the kind.
fn object_name(text: &str) -> Result<String, String> {
    let is_plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    let starts_plain = text.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit());
    if starts_plain && text.len() <= LONGEST_NAME && text.bytes().all(is_plain) {
        Ok(text.to_owned())
    } else {
        Err("a name has small letters, digits, hyphens and dots".to_owned())
    }
}

/// Namespace and name of a Shoot, or all Shoots of a namespace.
fn shoots_path(text: &str) -> Result<String, String> {
    let (namespace, name) = text
        .split_once('/')
        .ok_or("write NAMESPACE/NAME, or NAMESPACE/* for all Shoots of the namespace")?;
    object_name(namespace)?;
    if name != ALL_NAMES {
        object_name(name)?;
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parse(line: &str) -> Result<Flags, clap::Error> {
        Flags::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Flags::command().debug_assert();
    }

    #[test]
    fn flags_of_all_commands_stand_anywhere() {
        let flags = parse("kubectl-repot move demo seed-b --wait -n garden-dev -o json").unwrap();
        assert_eq!(flags.common.namespace.as_deref(), Some("garden-dev"));
        assert_eq!(flags.common.output, Output::Json);
        let Command::Move { wait, .. } = flags.command else {
            unreachable!("the command is a move");
        };
        assert_eq!(wait.within(), Some(Duration::from_secs(1800)));
    }

    #[test]
    fn a_status_is_of_a_shoot_of_namespaces_or_of_seeds() {
        for line in ["status", "status demo", "status -A", "status --seeds"] {
            assert!(parse(&format!("kubectl-repot {line}")).is_ok(), "{line}");
        }
        for line in ["status demo -A", "status demo --seeds", "status -A --seeds"] {
            assert!(parse(&format!("kubectl-repot {line}")).is_err(), "{line}");
        }
    }

    #[test]
    fn a_takeover_names_a_shoot_or_a_seed() {
        for line in [
            "kubectl-repot takeover demo seed-b --yes demo",
            "kubectl-repot takeover --seed seed-a --to seed-b --parallel 5",
        ] {
            assert!(parse(line).is_ok(), "{line}");
        }
        for line in [
            "kubectl-repot takeover",
            "kubectl-repot takeover demo",
            "kubectl-repot takeover --seed seed-a",
            "kubectl-repot takeover demo seed-b --seed seed-a --to seed-b",
            "kubectl-repot takeover --seed seed-a --to seed-b --parallel 0",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_drain_names_destinations_and_moves_few_shoots_at_a_time() {
        let flags =
            parse("kubectl-repot drain seed-a --to seed-b,seed-c --exclude x/a --exclude y/*").unwrap();
        let Command::Drain(drain) = flags.command else {
            unreachable!("the command is a drain");
        };
        assert_eq!(drain.to, ["seed-b", "seed-c"]);
        assert_eq!(drain.exclude, ["x/a", "y/*"]);
        assert_eq!((drain.parallel, drain.yes), (2, false));
        for line in [
            "kubectl-repot drain seed-a",
            "kubectl-repot drain seed-a --to seed-b/x",
            "kubectl-repot drain seed-a --to seed-b --parallel 0",
            "kubectl-repot drain seed-a --to seed-b --exclude demo",
            "kubectl-repot drain seed-a --to seed-b --exclude */demo",
            "kubectl-repot drain seed-a --to seed-b --exclude x/a*",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_name_is_no_path() {
        for name in ["demo/status", "../x", "", "Demo", "-x"] {
            assert!(object_name(name).is_err(), "{name}");
        }
        assert_eq!(object_name("seed-a.example"), Ok("seed-a.example".to_owned()));
    }
}
