use super::*;

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_asked_less_and_less() {
    let gate = Gate::default();
    assert_eq!(gate.check(), GateState::Ask);
    gate.answered();
    assert_eq!(gate.check(), GateState::Open);
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
        gate.failed("refused".to_owned());
        gate.failed("another request at the same time".to_owned());
        let (after, why) = (Duration::from_secs(seconds), "refused".to_owned());
        assert_eq!(gate.check(), GateState::Closed { after, why });
        tokio::time::advance(after).await;
        assert_eq!(gate.check(), GateState::Ask);
    }
    gate.answered();
    gate.doubt();
    assert_eq!(gate.check(), GateState::Ask);
    gate.failed("refused".to_owned());
    gate.doubt();
    assert!(
        matches!(gate.check(), GateState::Closed { .. }),
        "a doubt opens nothing"
    );
}
