//! `kubectl repot status`: where shoots are, the progress of operations, and the state of seeds.
//!
//! | file | content |
//! |---|---|
//! | `report` | the facts about a Shoot, also the JSON |
//! | `text` | the shown text: the list of shoots, and the tree of a single shoot |
//! | `overview` | `--seeds`: the garden as a tree of seeds |

mod overview;
mod report;
mod text;

pub use overview::{GardenReport, SeedReport};
pub use report::ShootReport;

use api::gardencore::{Seed, Shoot};
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

/// The garden as a tree of seeds.
pub async fn of_seeds(session: &Session) -> Result<Answer, Failure> {
    let seeds: Api<Seed> = session.garden().cluster_wide();
    let params = ListParams::default();
    let seeds = Box::pin(session.request("Seeds cannot be listed", seeds.list(&params))).await?;
    let shoots: Api<Shoot> = session.garden().all();
    let shoots = Box::pin(read_all(session, &shoots)).await?;
    let report = GardenReport::new(&seeds.items, &shoots);
    Ok(Answer::new(report.tree(clock::now()), &report))
}

/// A line for each shoot of the namespace, or of all namespaces.
pub async fn of_shoots(session: &Session, all_namespaces: bool) -> Result<Answer, Failure> {
    let shoots: Api<Shoot> = if all_namespaces {
        session.garden().all()
    } else {
        session.shoots(session.namespace())
    };
    let reports = Box::pin(read_all(session, &shoots)).await?;
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

/// The reports of all Shoots, page by page.
async fn read_all(session: &Session, shoots: &Api<Shoot>) -> Result<Vec<ShootReport>, Failure> {
    let mut reports = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let request = read_page(shoots, &page);
        let (read, next) = Box::pin(session.request("Shoots cannot be listed", request)).await?;
        reports.extend(read);
        page.continue_token = next.filter(|token| !token.is_empty());
        if page.continue_token.is_none() {
            return Ok(reports);
        }
    }
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
