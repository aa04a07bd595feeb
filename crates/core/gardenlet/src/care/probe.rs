//! Probes the API of the shoot from inside the seed.

use std::{ops::ControlFlow, time::Duration};

use k8s_openapi::api::core::v1::{Node, Secret};
use kube::{Api, api::ListParams, config::Kubeconfig};
use parts::{Settings, secrets::config::GARDENLET};
use runtime::client::{Cluster, Connection, Seed, Shoot, load_config};

use super::inputs::NodeReadiness;

/// How long an answer is waited for. Shorter than the period of care, longer than a busy API takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// The result of a probe. The text states the cause of a failure.
pub(super) enum Answer {
    /// `/healthz` returned `ok`.
    Ok(Shoot),
    /// The API returned a different text, an error, or no response.
    No(String),
    /// The API was not called: the credentials of the gardenlet do not exist yet.
    NotAsked(String),
}

/// Calls `/healthz` of the shoot's API through the Service in the seed, with the identity of the gardenlet.
pub(super) async fn api_server(seed: &Seed, settings: &Settings, namespace: &str) -> Answer {
    let shoot = match connect(seed, settings, namespace).await {
        Ok(shoot) => shoot,
        Err(why) => return Answer::NotAsked(why),
    };
    let request = match http::Request::get("/healthz").body(Vec::new()) {
        Ok(request) => request,
        Err(error) => return Answer::NotAsked(error.to_string()),
    };
    match tokio::time::timeout(PATIENCE, shoot.client().request_text(request)).await {
        Ok(Ok(text)) if text.trim() == "ok" => Answer::Ok(shoot),
        Ok(Ok(text)) => Answer::No(format!(
            "/healthz answered {:?}",
            text.chars().take(100).collect::<String>()
        )),
        Ok(Err(error)) => Answer::No(format!("/healthz could not be asked: {error}")),
        Err(_) => Answer::No(format!("/healthz did not answer within {PATIENCE:?}")),
    }
}

/// The nodes of the shoot. Users may create any number of nodes: the list must complete within the timeout.
pub(super) async fn nodes(shoot: &Shoot) -> Result<Vec<NodeReadiness>, String> {
    let mut seen = Vec::new();
    let (nodes, all) = (shoot.cluster_wide::<Node>(), ListParams::default());
    let survey = runtime::bounds::survey(&nodes, &all, |node| {
        seen.push(NodeReadiness::from_node(&node));
        ControlFlow::Continue(())
    });
    match tokio::time::timeout(PATIENCE, survey).await {
        Ok(Ok(())) => Ok(seen),
        Ok(Err(error)) => Err(format!("the nodes could not be listed: {error}")),
        Err(_) => Err(format!("the nodes were not listed within {PATIENCE:?}")),
    }
}

async fn connect(seed: &Seed, settings: &Settings, namespace: &str) -> Result<Shoot, String> {
    let secrets: Api<Secret> = seed.namespaced(namespace);
    let secret = secrets
        .get_opt(GARDENLET)
        .await
        .map_err(|e| format!("Secret {GARDENLET} cannot be read: {e}"))?;
    let file = secret
        .and_then(|secret| secret.data)
        .and_then(|mut data| data.remove("kubeconfig"))
        .ok_or_else(|| format!("Secret {GARDENLET} with a kubeconfig does not exist yet"))?;
    // An error of the parser would quote the file with its key.
    let wrong = |_| format!("Secret {GARDENLET} holds no kubeconfig that can be used");
    let text = String::from_utf8(file.0).map_err(|_| format!("Secret {GARDENLET} holds no text"))?;
    let mut kubeconfig = Kubeconfig::from_yaml(&text).map_err(wrong)?;
    for cluster in &mut kubeconfig.clusters {
        if let Some(cluster) = &mut cluster.cluster {
            cluster.server = Some(settings.shoot_api_url.build(namespace));
        }
    }
    let config = load_config(kubeconfig).await.map_err(wrong)?;
    let connection = Connection::to_users_cluster(config)
        .map_err(|e| format!("no client for the shoot can be made: {e}"))?;
    Ok(Shoot::new(connection, seed.permit()))
}
