//! Sentences about content of a ShootState that is left out. A hostile source chooses names of any length and
//! any number of pieces, and the status of a Shoot is bounded.

use runtime::Error;

use crate::configuration_problem;

/// Most pieces of a ShootState that are left out piece by piece.
pub(super) const MOST_LEFT_OUT: usize = 1000;
/// Most characters of a sentence.
const MOST_LETTERS: usize = 600;

/// The sentence, without the end of a long sentence.
pub(super) fn cut(sentence: &str) -> String {
    sentence.chars().take(MOST_LETTERS).collect()
}

/// The error, without the end of a long message.
pub(super) fn cut_error(error: Error) -> Error {
    match error {
        Error::Config { .. } => configuration_problem(cut(&error.to_string())),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_source_does_not_choose_the_length_of_a_message() {
        let name = "x".repeat(100_000);
        let error = cut_error(configuration_problem(format!("InternalSecret {name} is gone")));
        assert_eq!(error.class(), "Config");
        assert_eq!(error.to_string().chars().count(), MOST_LETTERS);
        let waiting = Error::not_ready(std::time::Duration::from_secs(1), "not yet");
        assert_eq!(cut_error(waiting).class(), "NotReady");
    }
}
