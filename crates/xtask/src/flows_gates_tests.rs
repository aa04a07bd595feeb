//! What waits for the gates of docs/ownership.md, and in which moves.

use anyhow::{Context, Result, ensure};
use gardenlet::shoot::reconcile_flow;
use parts::{ClaimPlan, OwnerRecordPlan};

use super::{ASLEEP, DESTINATION, Drawn, facts, page};

const HELD: &str = "Recording that the seed holds the shoot";

/// R17-31, I3, gate C: while the source may still act, nothing is touched that it might touch, too.
#[test]
fn nothing_outside_is_touched_before_the_shoot_is_held() -> Result<()> {
    let page = page()?;
    let outside = [
        "infrastructure",
        "dns record",
        "worker",
        "network",
        "extensions",
        "container runtime",
        "operating system",
        "shoot control plane",
    ];
    for (title, at_least) in [(DESTINATION, 20), (ASLEEP, 10)] {
        let flow = Drawn::read(&page, title)?;
        let touches = |name: &&String| {
            let name = name.to_lowercase();
            outside.iter().any(|word| name.contains(word)) && !name.contains("owner domain")
        };
        let tasks: Vec<_> = flow.names.keys().filter(touches).collect();
        ensure!(tasks.len() >= at_least, "{tasks:?}");
        for task in tasks {
            flow.in_order([HELD, task])?;
        }
    }
    Ok(())
}

/// A move whose source has handed the shoot over by itself waits for no fence, and one whose phases nobody records does as before.
#[test]
fn only_a_shoot_that_is_taken_is_fenced() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let _context = runtime.enter();
    let facts = facts()?;
    let skipped = |claim, task: &str| {
        let given = reconcile_flow::Given {
            restoring: true,
            has_backup: true,
            copy_is_required: true,
            sleeps: false,
            owner_record: OwnerRecordPlan::Keep,
            claim,
        };
        let drawing = reconcile_flow::build(&facts, given).to_mermaid();
        let line = drawing.lines().find(|line| line.contains(task));
        line.map(|line| line.ends_with(":::skipped"))
            .context("no such task")
    };
    for (claim, fences, records) in [
        (ClaimPlan::Nothing, false, false),
        (ClaimPlan::Given, false, true),
        (ClaimPlan::Taken, true, true),
    ] {
        for task in ["every witness shows", "former seed cannot act"] {
            ensure!(skipped(claim, task)? != fences, "{claim:?}: {task}");
        }
        for task in ["Recording with which backups", HELD] {
            ensure!(skipped(claim, task)? != records, "{claim:?}: {task}");
        }
    }
    Ok(())
}
