//! `--print-leader-migration`: shows the controllers that a manager would run, before a start (RK-34).

use std::{ffi::OsString, process::ExitCode};

use clap::{Args, Command, FromArgMatches};

use super::{
    error::{ConfigError, FlagsError},
    flags::Flags,
    locks::Locks,
    table::{Manager, ManagerTable},
};

/// For the first line of a manager's `main`: the text to print, if `--print-leader-migration` is among the
/// arguments. Only the flags of [`Flags`] are parsed, so that the manager's own required flags may be
/// missing.
///
/// ```
/// use leader_migration::{Manager, ManagerTable, print_if_asked};
/// const LIBRARIAN: Manager = Manager {
///     component: "librarian",
///     controllers: &["shelf", "loan"],
///     guests: &[],
/// };
/// const TABLE: ManagerTable = ManagerTable {
///     managers: &[LIBRARIAN],
///     ..ManagerTable::EMPTY
/// };
/// let args = ["librarian", "--town=a", "--print-leader-migration"].map(Into::into);
/// let text = print_if_asked(args, &LIBRARIAN, &TABLE).unwrap().unwrap();
/// assert_eq!(text, "shelf main\nloan main\n");
/// ```
///
/// # Errors
/// As [`Locks::assign`], and for an invalid value of a flag.
pub fn print_if_asked(
    args: impl IntoIterator<Item = OsString>,
    manager: &Manager,
    table: &ManagerTable,
) -> Option<Result<String, ConfigError>> {
    let command = Flags::augment_args(Command::new(manager.component).no_binary_name(true));
    let args = own_args(&command, args.into_iter().skip(1));
    let flags = command
        .try_get_matches_from(&args)
        .and_then(|matches| Flags::from_arg_matches(&matches));
    match flags {
        Ok(flags) if !flags.print_leader_migration => None,
        Ok(flags) => Some(Locks::assign(&flags, manager, table).map(|locks| locks.to_string())),
        // Without `--print-leader-migration`, the manager's own parser reports the mistake.
        Err(_) if !args.iter().any(|arg| arg == "--print-leader-migration") => None,
        Err(error) => Some(Err(FlagsError::InvalidValue(error).into())),
    }
}

/// Prints the text of [`print_if_asked`] for this process. `main` returns the code, if any, before any other
/// work.
#[must_use]
pub fn answer_if_asked(manager: &Manager, table: &ManagerTable) -> Option<ExitCode> {
    match print_if_asked(std::env::args_os(), manager, table)? {
        Ok(text) => {
            print!("{text}");
            Some(ExitCode::SUCCESS)
        }
        Err(why) => {
            eprintln!("{why}");
            Some(ExitCode::FAILURE)
        }
    }
}

/// The arguments that belong to the flags of `command`.
fn own_args(command: &Command, mut args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut own = Vec::new();
    while let Some(arg) = args.next() {
        let Some(text) = arg.to_str().and_then(|text| text.strip_prefix("--")) else {
            continue;
        };
        if text.is_empty() {
            break; // `--`: no flags follow.
        }
        let (name, value) = text.split_once('=').map_or((text, None), |(n, v)| (n, Some(v)));
        let Some(flag) = command.get_arguments().find(|flag| flag.get_long() == Some(name)) else {
            continue;
        };
        let takes_next = value.is_none() && flag.get_action().takes_values() && !flag.is_require_equals_set();
        own.push(arg.clone());
        if takes_next {
            own.extend(args.next());
        }
    }
    own
}
