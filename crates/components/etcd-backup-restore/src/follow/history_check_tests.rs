#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn hashes_block_the_source_for_a_small_part_of_the_time() {
    assert_eq!(pause(Duration::ZERO), SHORTEST_PAUSE);
    assert_eq!(pause(Duration::from_secs(3)), Duration::from_secs(60));
}

#[test]
fn a_large_source_is_not_hashed() {
    check_size(10, 10).unwrap();
    let error = check_size(11, 10).unwrap_err();
    assert_eq!(error.class, Class::Configuration);
    assert!(error.message.contains("--max-hashed-bytes"), "{error}");
}
