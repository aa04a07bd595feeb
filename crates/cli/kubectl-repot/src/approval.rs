//! The approval of a person before a command acts: the person types the name of the object that is concerned,
//! at the terminal or in a flag. A drain and a takeover need an approval.

use std::io::IsTerminal;

use crate::{failure::Failure, terminal::visible};

/// Asks a person to type the given name. `None` where no person can be asked.
pub type Prompt<'a> = &'a dyn Fn(&str, &str) -> Option<String>;

/// Whether a person has typed the name of the object that is concerned.
pub(crate) fn is_approved(
    text: &str,
    name: &str,
    given: Option<&str>,
    prompt: Prompt<'_>,
) -> Result<bool, Failure> {
    let typed = match given {
        Some(given) => Some(given.to_owned()),
        None => prompt(text, name),
    };
    match typed.as_deref().map(str::trim) {
        Some(typed) if typed == name => Ok(true),
        Some(typed) => Err(Failure::refused(format!(
            "the approval names {typed:?}, and not {name}: nothing was changed"
        ))),
        None => Ok(false),
    }
}

/// Asks the person at the terminal to type a name. `None` where no person is at the terminal.
pub(crate) fn type_name(question: &str) -> Option<String> {
    if !std::io::stdin().is_terminal() {
        return None;
    }
    eprint!("{}", visible(question));
    let mut typed = String::new();
    std::io::stdin().read_line(&mut typed).ok()?;
    Some(typed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_typed_name_approves_a_loss() {
        let typed = |answer: Option<&'static str>| move |_: &str, _: &str| answer.map(str::to_owned);
        assert_eq!(is_approved("", "demo", Some("demo"), &typed(None)), Ok(true));
        assert_eq!(is_approved("", "demo", None, &typed(Some("demo\n"))), Ok(true));
        assert_eq!(is_approved("", "demo", None, &typed(None)), Ok(false));
        for wrong in ["y", "yes", "", "demo2"] {
            assert!(
                is_approved("", "demo", Some(wrong), &typed(Some("demo"))).is_err(),
                "{wrong}"
            );
        }
    }
}
