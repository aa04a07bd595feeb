//! `kubectl repot completion` and `kubectl repot man`: files for shells and for man, made from the
//! definition of the command line. Both commands need no garden.

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::{failure::Failure, flags::Flags};

/// Name of the program that kubectl starts for `kubectl repot`.
const PROGRAM: &str = "kubectl-repot";

/// The completion of the program `kubectl-repot` for a shell.
#[must_use]
pub fn completion(shell: Shell) -> String {
    let mut script = Vec::new();
    // The name with a space is the name in usage lines. A shell completes the program.
    let mut command = Flags::command().bin_name(PROGRAM);
    generate(shell, &mut command, PROGRAM, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The page for man, with all commands.
///
/// # Errors
/// The page cannot be written.
pub fn man() -> Result<String, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Flags::command())
        .render(&mut page)
        .map_err(|error| Failure::failed(format!("the page for man cannot be made: {error}")))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_shell_completes_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = completion(shell);
            for word in ["kubectl-repot", "takeover", "drain", "request-timeout"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }

    #[test]
    fn the_page_for_man_names_the_commands_and_the_exit_codes() {
        let page = man().unwrap();
        for word in ["takeover", "uncordon", "Exit codes"] {
            assert!(page.contains(word), "{word}");
        }
    }
}
