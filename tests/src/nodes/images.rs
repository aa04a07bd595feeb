//! Images: a machine has all images from the start, and pulls from no registry.

use anyhow::{Result, ensure};
use k8s_openapi::api::events::v1::Event;
use kube::{Api, Client, api::ListParams};

/// The kubelets' reports of pulled images, in the time that Events are kept (an hour).
///
/// # Errors
/// No report of a started container exists: then the absence of pulls proves nothing.
pub async fn pulled(shoot: &Client) -> Result<Vec<String>> {
    let events: Api<Event> = Api::all(shoot.clone());
    let events = events.list(&ListParams::default()).await?.items;
    let of = |reason: &'static str| {
        let all = events.iter();
        all.filter(move |event| event.reason.as_deref() == Some(reason))
    };
    ensure!(
        of("Started").next().is_some(),
        "no kubelet tells of a container among {} Events",
        events.len()
    );
    Ok(of("Pulling").map(sentence).collect())
}

fn sentence(event: &Event) -> String {
    let about = event.regarding.clone().unwrap_or_default();
    let [namespace, name] = [about.namespace, about.name].map(Option::unwrap_or_default);
    format!("{namespace}/{name}: {}", event.note.clone().unwrap_or_default())
}
