#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn hashes_block_the_source_for_a_small_part_of_the_time() {
    assert_eq!(pause(Duration::ZERO), SHORTEST_PAUSE);
    assert_eq!(pause(Duration::from_secs(3)), Duration::from_secs(60));
}

/// `call` of the client of etcd puts the status into this sentence.
#[test]
fn after_a_refusal_of_the_gate_the_local_etcd_is_hashed_once_a_minute() {
    let message = format!(
        "etcd failed while hashing its history: {}",
        PreparedRefusal::HASH_MESSAGE
    );
    assert!(is_refused_by_gate(&Error::new(Class::Etcd, message)));
    assert!(!is_refused_by_gate(&Error::new(
        Class::Etcd,
        "etcd failed while hashing its history: no"
    )));
    assert_eq!(refusal_pause(HASH_REFUSED), PreparedRefusal::HASH_INTERVAL);
    assert_eq!(
        refusal_pause("the source was compacted in between"),
        Duration::ZERO
    );
}

#[test]
fn a_large_source_is_not_hashed() {
    check_size(10, 10).unwrap();
    let error = check_size(11, 10).unwrap_err();
    assert_eq!(error.class, Class::Configuration);
    assert!(error.message.contains("--max-hashed-bytes"), "{error}");
}
