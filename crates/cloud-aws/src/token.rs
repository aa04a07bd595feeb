//! Client tokens: EC2 makes a thing once, however often it is asked by the same token.

use std::fmt::Write as _;

use jiff::Timestamp;
use runtime::clock;
use sha2::{Digest, Sha256};

/// For how long a call that is repeated is known as the same one. Longer than what was made needs to be found
/// by its tags, short enough that what somebody has removed by hand can be made anew soon: EC2 gives the
/// first answer again, also of what is gone.
const SAME_CALL_FOR: i64 = 60;

/// The token of what has a name of its own for ever, as a machine has: however late a call is repeated, it
/// makes no second one.
#[must_use]
pub fn token_for_ever(parent: &str, name: &str) -> String {
    hex(&format!("{parent}/{name}"))
}

/// The token of what is called so, of this parent. It is the same for a minute ([`SAME_CALL_FOR`]), so that
/// an answer that was lost makes no second one; what is made anew later is another one.
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
