//! The logs of the process at the source of a move.

use crate::lab::{EPOCH, Stay, eventually};
use serde_json::Value;

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_a_lost_epoch_has_the_operation_of_the_destination() {
    let mut stay = Stay::begin().await;
    let log = stay.lab.path("log");
    stay.start_logged(&log).await;
    stay.serves().await;
    stay.zone.owned_by("seed-b", EPOCH + 1).await;
    stay.is_fenced("Sealed").await;
    let lines = eventually("the seal is logged", async || {
        let text = std::fs::read_to_string(&log).unwrap();
        let lines = text.lines().map(serde_json::from_str::<Value>);
        let lines: Vec<Value> = lines.collect::<Result<_, _>>().ok()?;
        let is_sealed = |line: &Value| line["message"] == "sealed on the volume";
        lines.iter().any(is_sealed).then_some(lines)
    })
    .await;
    let seal = lines
        .iter()
        .find(|line| line["message"] == "sealed on the volume");
    assert_eq!(seal.unwrap()["operationID"], "0841c87f-4");
    assert_eq!(lines[0]["operationID"], "0841c87f-3", "{}", lines[0]);
    assert!(lines.iter().all(|line| line["epoch"] == EPOCH), "{lines:?}");
}
