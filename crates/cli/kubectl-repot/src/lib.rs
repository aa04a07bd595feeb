//! The plugin of kubectl (`kubectl repot`): shows, plans, moves and takes over shoots with the rights and the
//! kubeconfig of the caller.
//!
//! Promises:
//! - The plugin sends requests only to the garden, and each request has a bound.
//! - A write counts only for the state that the decision was made on (`edit`).
//! - Waits are watches with a bound (`follow`). The end of the plugin ends no move and no takeover.
//! - No command reads a Secret.
//!
//! | file | purpose |
//! |---|---|
//! | `flags` | the command line |
//! | `run` | runs a command |
//! | `connect`, `session` | the connection to the garden, and bounded requests |
//! | `failure`, `answer` | the result of a command: sentence, JSON, exit code |
//! | `approval` | the approval of a person before a drain or a takeover |
//! | `edit`, `follow`, `events` | writes with a precondition, waits, Events of an object |
//! | `status`, `plan`, `moves` | commands for shoots of seeds that live |
//! | `cordon`, `drain` | close a seed, and move all shoots away |
//! | `exclusion` | shoots that a drain or a takeover of a seed leaves out |
//! | `released` | deleted Shoots that no seed has a control plane of |
//! | `takeover` | takeovers from a dead seed |
//! | `watch` | the steps of an operation |
//! | `silence` | reports a seed that hangs while a command waits |
//! | `check` | whether an installation is as needed |
//! | `version`, `diagnose` | versions of the garden, and a bundle for a report |
//! | `hint` | commands that messages name as the next step |
//! | `history` | the duration of former moves |
//! | `generate` | completions of shells and the page for man |
//! | `age`, `table` | times and tables as text |
//! | `terminal` | texts of users without control characters |

pub mod age;
pub mod answer;
pub mod approval;
pub mod check;
pub mod connect;
pub mod cordon;
pub mod diagnose;
pub mod drain;
pub mod edit;
pub mod events;
pub mod exclusion;
pub mod failure;
pub mod flags;
pub mod follow;
pub mod generate;
pub mod hint;
pub mod history;
pub mod moves;
pub mod plan;
pub mod released;
pub mod run;
pub mod session;
pub mod silence;
pub mod status;
pub mod table;
pub mod takeover;
pub mod terminal;
pub mod version;
pub mod watch;
