//! Flags without a command line.

use clap::{Args, Command, FromArgMatches};

use crate::Flags;

#[test]
fn flags_without_a_command_line_have_the_defaults_of_the_command_line() {
    let command = Flags::augment_args(Command::new("librarian").no_binary_name(true));
    let parsed = Flags::from_arg_matches(&command.get_matches_from([""; 0])).unwrap();
    assert_eq!(parsed, Flags::default());
}
