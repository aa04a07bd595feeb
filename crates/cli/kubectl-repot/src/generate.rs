//! `kubectl repot completion` and `kubectl repot man`: files for shells and for man, made from the
//! definition of the command line. kubectl asks for words by `kubectl_complete-repot`. No command here needs
//! a garden.

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

/// The last line for kubectl: the shell offers no files.
const NO_FILES: &str = ":4\n";

/// The words that kubectl offers for the last of the given words, in the format of kubectl: a word in a line,
/// and a directive in the last line. Names of objects are not offered, as these need a request.
#[must_use]
pub fn offered_words(given: &[String]) -> String {
    let program = Flags::command();
    let (last, before) = match given.split_last() {
        Some((last, before)) => (last.as_str(), before),
        None => ("", given),
    };
    let command = before.iter().find_map(|word| program.find_subcommand(word));
    let words: Vec<String> = match command {
        None => {
            let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
            commands.map(|command| command.get_name().to_owned()).collect()
        }
        Some(command) if last.starts_with('-') => {
            let flags = command.get_arguments().chain(program.get_arguments());
            let flags = flags.filter(|flag| !flag.is_hide_set());
            flags
                .filter_map(|flag| Some(format!("--{}", flag.get_long()?)))
                .collect()
        }
        Some(_) => Vec::new(),
    };
    let mut text = String::new();
    for word in words.iter().filter(|word| word.starts_with(last)) {
        text.push_str(word);
        text.push('\n');
    }
    text.push_str(NO_FILES);
    text
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
    fn kubectl_gets_words_for_the_last_word() {
        let offered = |line: &str| {
            let given: Vec<String> = line.split(' ').map(str::to_owned).collect();
            offered_words(&given)
        };
        assert_eq!(offered("dr"), "drain\n:4\n");
        assert_eq!(offered("drain seed-a --pa"), "--parallel\n:4\n");
        assert_eq!(offered("-n garden-dev unc"), "uncordon\n:4\n");
        assert_eq!(offered("status --req"), "--request-timeout\n:4\n");
        // Names of objects are not offered.
        assert_eq!(offered("status "), ":4\n");
        let all = offered("");
        assert!(
            all.contains("takeover\n") && !all.contains("offer-words"),
            "{all}"
        );
        assert_eq!(all, offered_words(&[]));
    }

    #[test]
    fn the_page_for_man_names_the_commands_and_the_exit_codes() {
        let page = man().unwrap();
        for word in ["takeover", "uncordon", "Exit codes"] {
            assert!(page.contains(word), "{word}");
        }
    }
}
