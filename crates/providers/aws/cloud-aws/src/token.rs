//! Client tokens: EC2 makes a single object for a token, for any number of calls.

use std::fmt::Write as _;

use jiff::Timestamp;
use runtime::clock;
use sha2::{Digest, Sha256};

/// How long calls count as the same call, in seconds. The bound is longer than EC2 needs until a new object
/// is found by tags. The bound is short enough that an object that a user removed can soon be made again. EC2
/// repeats the first answer, also for an object that is gone.
const SAME_CALL_FOR: i64 = 60;

/// The token of an object with a name that is never reused, such as a machine. A repeated call makes no
/// second object, after any time.
#[must_use]
pub fn token_for_ever(parent: &str, name: &str) -> String {
    hex(&format!("{parent}/{name}"))
}

/// The token of an object with this name and this parent. The token stays the same for a minute
/// ([`SAME_CALL_FOR`]), so that a lost answer leads to no second object. A later object gets a new token.
#[must_use]
pub fn token(parent: &str, name: &str) -> String {
    let time = clock::now().as_second() / SAME_CALL_FOR;
    hex(&format!("{parent}/{name}/{time}"))
}

/// The token of a thing that was begun at this time: the same however often the call is repeated.
#[must_use]
pub fn token_since(parent: &str, name: &str, since: Timestamp) -> String {
    hex(&format!("{parent}/{name}/{since}"))
}

fn hex(text: &str) -> String {
    let digest = Sha256::digest(text);
    // EC2 takes 64 characters.
    digest.iter().take(16).fold(String::new(), |mut hex, byte| {
        // Writing into a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::{token, token_for_ever};

    #[test]
    fn a_token_is_of_one_thing() {
        let one = token("vpc-1", "acl");
        assert!(one.len() == 32 && one.is_ascii(), "{one}");
        assert_ne!(one, token("vpc-2", "acl"));
        assert_ne!(one, token("vpc-1", "nat"));
        let machine = token_for_ever("shoot--dev--one", "a-x7");
        assert_eq!(machine, token_for_ever("shoot--dev--one", "a-x7"));
        assert_ne!(machine, token_for_ever("shoot--dev--one", "a-x8"));
    }
}
