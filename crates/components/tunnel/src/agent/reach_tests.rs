#![allow(clippy::unwrap_used)]
use super::*;

fn usual() -> Reach {
    Reach {
        refused: REFUSED.split(',').map(|range| range.parse().unwrap()).collect(),
    }
}

#[tokio::test]
async fn what_is_the_machines_own_is_refused() {
    for (host, port) in [
        ("127.0.0.1", Some(8134)),
        ("[::1]", Some(8134)),
        ("[::ffff:127.0.0.1]", Some(8134)),
        ("169.254.169.254", Some(80)),
        ("0.0.0.0", Some(8134)),
        ("localhost", Some(8134)),
        ("10.1.2.3", None),
    ] {
        let refused = usual().dial(host, port).await.unwrap_err();
        assert_eq!(refused.status, 403, "{host}: {}", refused.why);
    }
}

#[test]
fn what_is_of_the_shoot_is_not() {
    for address in [
        "10.1.2.3:10250",
        "100.64.0.1:443",
        "192.168.3.4:80",
        "[fd00::1]:443",
    ] {
        assert!(!usual().refuses(&address.parse().unwrap()), "{address}");
    }
}

#[tokio::test]
async fn a_target_that_refuses_is_named() {
    let nobody = testkit::free_port().unwrap();
    let reach = Reach { refused: Vec::new() };
    let error = reach.dial("127.0.0.1", Some(nobody)).await.unwrap_err();
    assert_eq!(error.status, 502);
    assert!(
        error
            .why
            .starts_with(&format!("127.0.0.1:{nobody} cannot be reached")),
        "{}",
        error.why
    );
}
