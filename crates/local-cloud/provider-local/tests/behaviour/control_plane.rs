//! ControlPlane: the cloud-controller-manager. The real controllers create Deployments and pods; the running
//! of a pod is simulated.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context, Result, ensure};
use api::{constants::CONFIRMATION_FORCE_DELETION, extensions::ControlPlane, meta::LastOperationState};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Pod},
    events::v1::Event,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use runtime::Error;
use serde_json::{Value, json};
use testkit::{Fate, PlayedKubelet, WaitBound, eventually};
use tokio::time::Instant;

use super::{
    World, run,
    world::{self, MANAGER_OF_TEST, SOON, create},
};

const STUCK: &str = "shoot--dev--stuck";
const MIGRATION: &str = "cloud-controller-manager-leader-migration";

/// A ControlPlane in a separate namespace.
struct Subject<'w> {
    /// Reports on the pods of the namespace.
    _kubelet: PlayedKubelet,
    world: &'w World,
    object: ControlPlane,
    api: Api<ControlPlane>,
    pods: Api<Pod>,
    maps: Api<ConfigMap>,
}

impl<'w> Subject<'w> {
    async fn create(world: &'w World, namespace: &'static str) -> Result<Self> {
        Self::with_pods(world, namespace, PlayedKubelet::usual).await
    }

    /// The pods of the namespace have this fate.
    async fn with_pods(
        world: &'w World,
        namespace: &'static str,
        fate: impl Fn(&Pod) -> Fate + Send + Sync + 'static,
    ) -> Result<Self> {
        world::namespace(&world.seed, namespace, &BTreeMap::new()).await?;
        let subject = Self {
            _kubelet: PlayedKubelet::with(&world.seed, move |pod| {
                if pod.namespace().as_deref() == Some(namespace) {
                    fate(pod)
                } else {
                    Fate::StaysPending
                }
            }),
            world,
            object: world::control_plane_of(namespace)?,
            api: Api::namespaced(world.seed.clone(), namespace),
            pods: Api::namespaced(world.seed.clone(), namespace),
            maps: Api::namespaced(world.seed.clone(), namespace),
        };
        create(&subject.api, &subject.object).await?;
        Ok(subject)
    }

    async fn created_with_secrets(world: &'w World, namespace: &'static str) -> Result<Self> {
        let subject = Self::create(world, namespace).await?;
        world::secrets_of_control_plane(&world.seed, namespace).await?;
        Ok(subject)
    }

    async fn run(&self) -> runtime::Result<()> {
        let reconciler = world::control_plane(&self.world.seed);
        run(&reconciler, &self.object).await.map(|_| ())
    }

    /// Runs like a controller, until no event is awaited: on a slow machine, a single run ends before the
    /// event.
    async fn succeeds(&self) -> runtime::Result<()> {
        let end = Instant::now() + SOON;
        let ready = async {
            loop {
                match self.run().await {
                    Err(Error::NotReady { .. }) if Instant::now() < end => {}
                    outcome => return outcome,
                }
            }
        };
        WaitBound::new("the ControlPlane is ready", SOON)
            .measure(ready)
            .await
    }

    async fn ask(&self, operation: &str) -> runtime::Result<()> {
        MANAGER_OF_TEST
            .annotate(&self.api, "cp", "gardener.cloud/operation", Some(operation))
            .await
            .map(drop)
    }

    async fn succeeds_again(&self) -> runtime::Result<()> {
        self.ask("reconcile").await?;
        self.succeeds().await
    }

    /// Checks for an awaited event and returns the reason.
    async fn is_awaited(&self, outcome: runtime::Result<()>) -> Result<String> {
        let Err(Error::NotReady { why, .. }) = outcome else {
            anyhow::bail!("nothing was awaited: {outcome:?}");
        };
        let status = self.api.get("cp").await?.status.context("no status")?;
        let last = status.last_operation.context("no operation")?;
        ensure!(
            last.state == LastOperationState::Processing && last.description.contains(&*why),
            "{last:?}, and {why} is awaited"
        );
        Ok(why.to_string())
    }

    /// The only pod.
    async fn pod(&self) -> Result<Pod> {
        let mut pods = self.pods.list(&ListParams::default()).await?.items;
        ensure!(pods.len() == 1, "{} pods", pods.len());
        pods.pop().context("no pod")
    }

    async fn flags(&self) -> Result<String> {
        let spec = self.pod().await?.spec.context("no spec")?;
        Ok(spec.containers[0].args.clone().unwrap_or_default().join(" "))
    }

    /// Whether the pod cannot end from now on, as on a node that does not answer.
    async fn holds(&self, holds: bool) -> Result<()> {
        let finalizers = if holds { json!(["test/holds"]) } else { Value::Null };
        let pod = self.pod().await?.name_any();
        let body = json!({"metadata": {"finalizers": finalizers}});
        MANAGER_OF_TEST.merge(&self.pods, &pod, &body).await?;
        Ok(())
    }

    async fn parts(&self) -> Result<Vec<String>> {
        let namespace = self.object.namespace().context("no namespace")?;
        world::parts_of_control_plane(&self.world.seed, &namespace).await
    }
}

/// The steps of a hand-over, there and back. After each step no pod of the step before is left.
pub async fn flags_follow_the_spec(world: &World) -> Result<()> {
    let subject = Subject::created_with_secrets(world, "shoot--dev--walk").await?;
    let any = json!(subject.object.spec.cloud_controller_manager);
    let main = json!({"nodeIPAM": any["nodeIPAM"], "leaderMigration": null});
    for (told, ipam, migrates) in [
        (Value::Null, false, false),
        (any.clone(), true, true),
        (main, true, false),
        (any, true, true),
        (Value::Null, false, false),
    ] {
        let body = json!({"spec": {"cloudControllerManager": told}});
        MANAGER_OF_TEST.merge(&subject.api, "cp", &body).await?;
        subject.succeeds_again().await?;
        let flags = subject.flags().await?;
        ensure!(
            flags.contains("--cluster-name=shoot--dev--walk")
                && flags.contains("--allocate-node-cidrs --cluster-cidr=100.96.0.0/11") == ipam
                && flags.contains("--enable-leader-migration") == migrates,
            "{told}: {flags}"
        );
        let file = subject.maps.get_opt(MIGRATION).await?;
        ensure!(file.is_some() == migrates, "{told}: {file:?}");
    }
    Ok(())
}

pub async fn pods_follow_secrets(world: &World) -> Result<()> {
    let subject = Subject::create(world, "shoot--dev--secrets").await?;
    let why = subject.is_awaited(subject.run().await).await?;
    ensure!(why.contains("Secret cloud-controller-manager"), "{why}");
    world::secrets_of_control_plane(&world.seed, "shoot--dev--secrets").await?;
    subject.succeeds().await?;
    let before = subject.pod().await?.uid();
    subject.succeeds_again().await?;
    ensure!(
        subject.pod().await?.uid() == before,
        "the pod was replaced for nothing"
    );
    let renewed = BTreeMap::from([("kubeconfig".to_owned(), b"two".to_vec())]);
    world::secret(&world.seed, "shoot--dev--secrets", "cloudprovider", &renewed).await?;
    subject.succeeds_again().await?;
    ensure!(
        subject.pod().await?.uid() != before,
        "the pod works with old credentials"
    );
    Ok(())
}

pub async fn ready_means_rolled_out(world: &World) -> Result<()> {
    let is_stuck = Arc::new(AtomicBool::new(true));
    let stuck = Arc::clone(&is_stuck);
    let fate = move |pod: &Pod| {
        if stuck.load(Ordering::SeqCst) {
            Fate::StaysPending
        } else {
            PlayedKubelet::usual(pod)
        }
    };
    let subject = Subject::with_pods(world, STUCK, fate).await?;
    world::secrets_of_control_plane(&world.seed, STUCK).await?;
    // In the first run, unless the Deployment controller takes longer to create the pod than a run waits.
    eventually("the pod is awaited", SOON, || async {
        let why = subject.is_awaited(subject.run().await).await?;
        ensure!(why.contains("1 are as wanted, 0 are available"), "{why}");
        Ok(())
    })
    .await?;
    is_stuck.store(false, Ordering::SeqCst);
    let pod = subject.pod().await?.name_any();
    MANAGER_OF_TEST
        .annotate(&subject.pods, &pod, "test/changed", Some(""))
        .await?;
    subject.succeeds().await?;
    Ok(())
}

/// I3.
pub async fn migrated_means_that_no_pod_is_left(world: &World) -> Result<()> {
    let subject = Subject::created_with_secrets(world, "shoot--dev--going").await?;
    subject.succeeds().await?;
    subject.holds(true).await?;
    subject.ask("migrate").await?;
    let why = subject.is_awaited(subject.run().await).await?;
    ensure!(why.contains("it is being deleted"), "{why}");
    ensure!(
        !subject.api.get("cp").await?.finalizers().is_empty(),
        "it was let go"
    );
    ensure!(
        subject.parts().await? == ["cloud-controller-manager", "1 pods"],
        "{:?}",
        subject.parts().await?
    );
    subject.holds(false).await?;
    subject.succeeds().await?;
    ensure!(subject.parts().await?.is_empty(), "{:?}", subject.parts().await?);
    ensure!(
        subject.api.get("cp").await?.finalizers().is_empty(),
        "it holds on"
    );
    Ok(())
}

pub async fn force_does_not_wait_for_ever(world: &World) -> Result<()> {
    let subject = Subject::created_with_secrets(world, "shoot--dev--held").await?;
    subject.succeeds().await?;
    subject.holds(true).await?;
    MANAGER_OF_TEST
        .annotate(&subject.api, "cp", CONFIRMATION_FORCE_DELETION, Some("true"))
        .await?;
    subject.api.delete("cp", &DeleteParams::default()).await?;
    subject.run().await?;
    ensure!(subject.api.get_opt("cp").await?.is_none(), "it is still there");
    let events: Api<Event> = Api::namespaced(world.seed.clone(), "shoot--dev--held");
    let events = events.list(&ListParams::default()).await?;
    let told = events
        .iter()
        .filter(|event| event.reason.as_deref() == Some("LeftBehind"))
        .filter_map(|event| event.note.as_deref())
        .any(|note| note.contains("it is being deleted"));
    ensure!(told, "nobody tells what is left");
    subject.holds(false).await
}
