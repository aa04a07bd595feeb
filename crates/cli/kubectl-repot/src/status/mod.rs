//! `kubectl repot status`: where shoots are, and the progress of operations.

mod report;
mod text;

pub use report::ShootReport;

use api::gardencore::Shoot;
use kube::{Api, api::ListParams};
use runtime::{client::Cluster, clock};
use serde_json::json;

use crate::{answer::Answer, failure::Failure, session::Session};

/// Shoots in an answer of the garden: a command reads thousands of Shoots, and a Shoot may have 1.5 MB.
const PAGE: u32 = 25;

/// The report of a single shoot, as a tree.
pub async fn of_shoot(session: &Session, name: &str) -> Result<Answer, Failure> {
    let shoot = Box::pin(session.shoot(session.namespace(), name)).await?;
    let report = ShootReport::new(&shoot);
    Ok(Answer::new(text::tree(&report, clock::now()), &report))
}

/// A line for each shoot of the namespace, or of all namespaces.
pub async fn of_shoots(session: &Session, all_namespaces: bool) -> Result<Answer, Failure> {
    let shoots: Api<Shoot> = if all_namespaces {
        session.garden().all()
    } else {
        session.shoots(session.namespace())
    };
    let mut reports = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let request = read_page(&shoots, &page);
        let (read, next) = Box::pin(session.request("Shoots cannot be listed", request)).await?;
        reports.extend(read);
        page.continue_token = next.filter(|token| !token.is_empty());
        if page.continue_token.is_none() {
            break;
        }
    }
    let text = if reports.is_empty() && !all_namespaces {
        format!(
            "no shoot exists in namespace {}; -n names a different namespace, -A shows all\n",
            session.namespace()
        )
    } else {
        text::lines(&reports, all_namespaces, clock::now())
    };
    Ok(Answer::new(text, &json!({"shoots": reports})))
}

/// The reports of a page, and the token of the next page.
async fn read_page(
    shoots: &Api<Shoot>,
    page: &ListParams,
) -> kube::Result<(Vec<ShootReport>, Option<String>)> {
    let list = shoots.list(page).await?;
    let reports = list.items.iter().map(ShootReport::new).collect();
    Ok((reports, list.metadata.continue_))
}
