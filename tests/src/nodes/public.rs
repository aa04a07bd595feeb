//! The page from outside: a Service of type LoadBalancer, and a client on this machine that requests the page
//! all the time.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client, Config};
use serde_json::json;
use testkit::WaitBound;
use tokio::{task::JoinSet, time};

use super::web::apply;
use crate::watched;

/// Longer than a cloud takes to give an address on a busy machine.
const SHOWN_WITHIN: Duration = Duration::from_secs(120);
/// Between two requests.
const EVERY: Duration = Duration::from_millis(200);
/// A later answer counts as a failure.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
const NAME: &str = "public";

/// The page under the address of a load balancer.
pub struct Public {
    /// The address.
    pub address: String,
    answered: Arc<AtomicU64>,
    failed: Arc<Mutex<Vec<String>>>,
    asking: JoinSet<()>,
}

impl Public {
    /// Creates the load balancer, waits until the page answers, and requests the page from then on.
    pub async fn ask(shoot: &Client) -> Result<Self> {
        let services: Api<Service> = Api::default_namespaced(shoot.clone());
        let service = json!({"metadata": {"name": NAME},
            "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}});
        apply::<Service>(shoot, service).await?;
        let is_shown = |service: Option<&Service>| service.and_then(address_of).is_some();
        let shown = watched::until(&services, NAME, SHOWN_WITHIN, is_shown)
            .await
            .context("the load balancer gets no address")?;
        let address = shown.as_ref().and_then(address_of).context("an address")?;
        let page = Client::try_from(Config::new(format!("http://{address}").parse()?))?;
        let bound = WaitBound::new("the page answers at the address", SHOWN_WITHIN);
        let begun = time::Instant::now();
        while let Err(why) = fetch_page(&page).await {
            ensure!(
                begun.elapsed() < SHOWN_WITHIN,
                "nothing answers at {address}: {why}"
            );
            time::sleep(EVERY).await;
        }
        bound.report(begun.elapsed());
        let (answered, failed) = (Arc::default(), Arc::default());
        let mut asking = JoinSet::new();
        asking.spawn(ask(page, Arc::clone(&answered), Arc::clone(&failed)));
        Ok(Self {
            address,
            answered,
            failed,
            asking,
        })
    }

    /// Stops the requests; returns the number of answers, and fails after a missing answer.
    pub async fn nothing_lost(mut self) -> Result<u64> {
        self.asking.shutdown().await;
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(failed.is_empty(), "not answered from outside: {failed:?}");
        Ok(self.answered.load(Ordering::Relaxed))
    }
}

async fn ask(page: Client, answered: Arc<AtomicU64>, failed: Arc<Mutex<Vec<String>>>) {
    let mut every = time::interval(EVERY);
    loop {
        every.tick().await;
        match fetch_page(&page).await {
            Ok(()) => {
                answered.fetch_add(1, Ordering::Relaxed);
            }
            Err(why) => failed
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(format!("{why:#}")),
        }
    }
}

async fn fetch_page(page: &Client) -> Result<()> {
    // A new connection per request, because a kept connection would not test new connections.
    let request = http::Request::get("/page")
        .header("connection", "close")
        .body(Vec::new())?;
    let text = time::timeout(ANSWERED_WITHIN, page.request_text(request)).await;
    let text = text.context("no answer in time")??;
    ensure!(text.contains("this page stays"), "another page: {text}");
    Ok(())
}

fn address_of(service: &Service) -> Option<String> {
    let balancer = service.status.as_ref()?.load_balancer.as_ref()?;
    balancer.ingress.as_ref()?.first()?.ip.clone()
}
