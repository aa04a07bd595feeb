#![allow(clippy::unwrap_used)]
use super::*;

fn account(key_id: &str) -> Credentials {
    // As a process does at its start. A different test may have installed the provider before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let keys = [("accessKeyID", key_id), ("secretAccessKey", "s3cret")];
    let data = keys.map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec()));
    Credentials::new("garden/aws", data.into())
}

#[test]
fn clients_of_an_account_share_its_pace_and_other_accounts_have_their_own() {
    let (access, permit) = (Ec2Access::default(), Permit::sole("a test"));
    let open = |key, region| access.open(&account(key), region, &permit).unwrap();
    let one = open("AKIA-ONE", "eu-west-1");
    assert!(Arc::ptr_eq(&one.pace, &open("AKIA-ONE", "eu-west-1").pace));
    assert!(!Arc::ptr_eq(&one.pace, &open("AKIA-TWO", "eu-west-1").pace));
    assert!(!Arc::ptr_eq(&one.pace, &open("AKIA-ONE", "eu-west-2").pace));

    one.pace.slow_down();
    drop(one);
    let again = open("AKIA-ONE", "eu-west-1");
    assert!(!again.pace.is_at_rest(Instant::now()), "the pace is forgotten");
    assert_eq!(access.0.paces.lock().unwrap().len(), 1, "rotated keys are kept");
}
