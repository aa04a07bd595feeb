//! Client tokens: EC2 makes a thing once, however often it is asked by the same token.

use runtime::clock;
use sha2::{Digest, Sha256};

/// For how long a call that is repeated is known as the same one. Longer than a process needs to come back after a crash, short
/// enough that what somebody has removed by hand can be made anew soon.
const SAME_CALL_FOR: i64 = 600;

/// The token of what is called so in this VPC. It is the same for some minutes ([`SAME_CALL_FOR`]), so that an answer that was lost makes
/// no second one; what is made anew later is another one.
#[must_use]
pub fn token(parent: &str, name: &str) -> String {
    let time = clock::now().as_second() / SAME_CALL_FOR;
    let digest = Sha256::digest(format!("{parent}/{name}/{time}"));
    // EC2 takes 64 characters.
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::token;

    #[test]
    fn a_token_is_of_one_thing() {
        let one = token("vpc-1", "acl");
        assert!(one.len() == 32 && one.is_ascii(), "{one}");
        assert_ne!(one, token("vpc-2", "acl"));
        assert_ne!(one, token("vpc-1", "nat"));
    }
}
