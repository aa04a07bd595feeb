//! `kubectl repot check`: whether the garden and the seeds have the state that an installation needs, as
//! far as the caller may read. Each line is `ok`, `warn` or `fail`, and names a remedy. The command changes
//! no object.

mod etcd;
mod garden;
mod report;
mod rights;
mod seeds;
mod shoots;

pub use report::{CheckGroup, CheckLevel, CheckLine};

use serde_json::json;

use crate::{answer::Answer, failure::Failure, session::Session};

/// Checks the garden before an installation, or the garden, the seeds and the shoots after an installation.
///
/// # Errors
/// The garden does not answer at all.
pub async fn check(session: &Session, before_install: bool) -> Result<Answer, Failure> {
    let (kubernetes, mut lines) = Box::pin(garden::reach(session)).await?;
    lines.push(garden::judge_version(&kubernetes));
    let mut groups = Vec::new();
    if before_install {
        lines.extend(Box::pin(garden::kinds(session, true)).await);
        lines.extend(Box::pin(etcd::flags(session)).await);
        groups.push(CheckGroup::new("garden", lines));
        let rights = Box::pin(rights::to_install(session)).await;
        groups.push(CheckGroup::new("your rights to install", rights));
    } else {
        lines.extend(Box::pin(garden::kinds(session, false)).await);
        lines.push(Box::pin(garden::policies(session)).await);
        lines.extend(Box::pin(etcd::flags(session)).await);
        groups.push(CheckGroup::new("garden", lines));
        let rights = Box::pin(rights::to_operate(session)).await;
        groups.push(CheckGroup::new("your rights", rights));
        groups.extend(Box::pin(seeds::check(session)).await);
        groups.push(CheckGroup::new("shoots", Box::pin(shoots::check(session)).await));
    }
    let has_failed = groups.iter().any(|group| group.worst() == CheckLevel::Fail);
    let json = json!({"groups": groups, "failed": has_failed});
    Ok(Answer::new(report::render(&groups), &json).with_obstacles(has_failed))
}
