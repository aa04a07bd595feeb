//! Zones with a closed network (RZ-30..35), in a cloud of subnets and access lists without marks of the
//! author of a change. Only the state holds the former network. The generic actuator keeps the contract
//! there. Actuators with violations of the new rules for this kind fail with a sentence. The tests also check
//! the bounded wait for machines across a restart.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use api::{
    extensions::{Cluster, SubnetIsolation},
    machine::{Machine, labels},
    meta::{ErrorCode, RawExtension},
};
use async_trait::async_trait;
use extension::{
    Actuator, Context, ExtensionReconciler, Outcome,
    reconciler::namespaced,
    subnet_isolation::{CLOSE_WITHIN, SubnetIsolationActuator, ZoneNetwork},
};
use extension_contract::{Contract, Proof, run_until_ready};
use futures::FutureExt;
use kube::{Api, Client, api::DeleteParams};
use runtime::{Error, clock};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::{sync::watch, task::yield_now};

use crate::world::{Seeds, TEST, create, object, proven, reconciler, text};

/// Far longer than each step takes.
const SOON: Duration = Duration::from_secs(60);
/// Awaits between a change and the answer: more than the test skips at a time, so that work is dropped
/// between any two changes.
const SLOWNESS: usize = 16;
/// The default access list of a subnet.
const DEFAULT: &str = "acl-default";

/// The violation of an actuator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// The former state is recorded only at the end.
    RemembersTooLate,
    /// All zones are opened, regardless of the owner.
    OpensForOthers,
    OpensOnMigrate,
    ClosesOnMigrate,
    /// Packets pass for a moment.
    OpensOnRestore,
}

/// The required text of the sentence.
const SENTENCES: &[(Wrong, &str)] = &[
    (Wrong::RemembersTooLate, "delete: the world outside was"),
    (Wrong::OpensForOthers, "delete: the world outside was"),
    (Wrong::OpensOnMigrate, "migrate: the world outside was"),
    (Wrong::ClosesOnMigrate, "migrate: the world outside was"),
    (Wrong::OpensOnRestore, "restore: the world outside was"),
];

/// The access list of each subnet, and the owner of each list. A subnet's name contains owner and zone.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Account {
    subnets: BTreeMap<String, String>,
    lists: BTreeMap<String, String>,
    #[serde(skip)]
    made: usize,
}

impl Account {
    fn list_of(&self, owner: &str) -> Option<String> {
        let mut lists = self.lists.iter();
        lists.find(|(_, of)| *of == owner).map(|(list, _)| list.clone())
    }
}

struct Cloud {
    account: watch::Sender<Account>,
    refuses: AtomicBool,
}

impl Cloud {
    /// An owner has two subnets in zone x, of which one has a manual list, and one subnet in zone y. The zone
    /// of a second owner is closed.
    fn with_owner(owner: &str) -> Arc<Self> {
        let subnets = [
            (format!("{owner}/x/1"), DEFAULT),
            (format!("{owner}/x/2"), "acl-by-hand"),
            (format!("{owner}/y/1"), DEFAULT),
            ("other/x/1".to_owned(), "acl-of-other"),
        ];
        let account = Account {
            subnets: subnets.map(|(subnet, list)| (subnet, list.to_owned())).into(),
            lists: [("acl-of-other".to_owned(), "other".to_owned())].into(),
            made: 0,
        };
        Arc::new(Self {
            account: watch::Sender::new(account),
            refuses: AtomicBool::new(false),
        })
    }

    async fn call<T>(&self, change: impl FnOnce(&mut Account) -> T) -> runtime::Result<T> {
        yield_now().await;
        if self.refuses.load(Ordering::SeqCst) {
            let code = ErrorCode::ErrInfraUnauthenticated;
            return Err(Error::config(
                code,
                "the cloud refuses the credentials: renew them",
            ));
        }
        let mut answer = None;
        self.account.send_modify(|account| answer = Some(change(account)));
        for _ in 0..SLOWNESS {
            yield_now().await;
        }
        answer.ok_or_else(|| Error::bug("the cloud did nothing"))
    }

    fn read_account(&self) -> Account {
        self.account.borrow().clone()
    }

    fn is_closed(account: &Account, owner: &str) -> bool {
        let ours = account.list_of(owner);
        let mut of_x = account
            .subnets
            .iter()
            .filter(|(subnet, _)| subnet.starts_with(&format!("{owner}/x/")));
        ours.is_some() && of_x.all(|(_, list)| Some(list) == ours.as_ref())
    }
}

struct ToyZones {
    cloud: Arc<Cloud>,
    wrong: Wrong,
}

type Before = BTreeMap<String, String>;

#[async_trait]
impl ZoneNetwork for ToyZones {
    const API_VERSION: &'static str = "toy/v1";

    type Before = Before;

    async fn zone_code(&self, context: &Context<SubnetIsolation>) -> runtime::Result<String> {
        let id = &context.object.spec.isolated_zone_id;
        let name = id.strip_prefix("id-").map(str::to_owned);
        name.ok_or_else(|| {
            let message = format!("no zone has the ID {id:?}");
            Error::config(ErrorCode::ErrConfigurationProblem, message)
        })
    }

    async fn read_former_state(
        &self,
        context: &Context<SubnetIsolation>,
        zone: &str,
        known: Option<&Before>,
    ) -> runtime::Result<Before> {
        let of_zone = format!("{}/{zone}/", context.namespace()?);
        let there = self.cloud.call(|account| account.subnets.clone()).await?;
        let mut before: Before = there
            .into_iter()
            .filter(|(subnet, _)| subnet.starts_with(&of_zone))
            .collect();
        before.extend(known.cloned().unwrap_or_default());
        Ok(before)
    }

    async fn close(
        &self,
        context: &Context<SubnetIsolation>,
        _: &str,
        before: &Before,
    ) -> runtime::Result<Map<String, Value>> {
        let owner = context.namespace()?;
        let make = |account: &mut Account| {
            if let Some(list) = account.list_of(&owner) {
                return list;
            }
            let list = format!("acl-{}", account.made);
            account.made += 1;
            account.lists.insert(list.clone(), owner.clone());
            list
        };
        let list = self.cloud.call(make).await?;
        for subnet in before.keys() {
            let swap = |account: &mut Account| account.subnets.insert(subnet.clone(), list.clone());
            self.cloud.call(swap).await?;
        }
        Ok(Map::from_iter([("aclID".to_owned(), json!(list))]))
    }

    async fn open(
        &self,
        context: &Context<SubnetIsolation>,
        before: Option<&Before>,
        _: bool,
    ) -> runtime::Result<()> {
        let owner = context.namespace()?;
        let list = self.cloud.call(|account| account.list_of(&owner)).await?;
        for (subnet, former) in before.into_iter().flatten() {
            let swap = |account: &mut Account| {
                // A change since then is kept.
                if account.subnets.get(subnet) == list.as_ref() {
                    account.subnets.insert(subnet.clone(), former.clone());
                }
            };
            self.cloud.call(swap).await?;
        }
        let all = self.wrong == Wrong::OpensForOthers;
        let clear = |account: &mut Account| {
            account.lists.retain(|_, of| *of != owner && !all);
            for (subnet, list) in &mut account.subnets {
                if all && subnet.starts_with("other/") {
                    DEFAULT.clone_into(list);
                }
            }
        };
        self.cloud.call(clear).await
    }
}

/// The generic actuator with the violation.
struct Wrongly {
    right: SubnetIsolationActuator<ToyZones>,
    wrong: Wrong,
}

#[async_trait]
impl Actuator<SubnetIsolation> for Wrongly {
    const NAME: &'static str = "subnetisolation";

    async fn reconcile(&self, context: &Context<SubnetIsolation>) -> runtime::Result<Outcome> {
        if self.wrong != Wrong::RemembersTooLate {
            return self.right.reconcile(context).await;
        }
        let told: Option<Value> = context.state()?;
        let known = told.and_then(|state| serde_json::from_value(state["before"].clone()).ok());
        let zones = &self.right.0;
        let before = zones.read_former_state(context, "x", known.as_ref()).await?;
        zones.close(context, "x", &before).await?;
        let state = json!({"zone": "x", "since": "2026-01-01T00:00:00Z", "before": before});
        Ok(Outcome {
            state: Some(RawExtension(state)),
            ..Outcome::none()
        })
    }

    async fn restore(&self, context: &Context<SubnetIsolation>) -> runtime::Result<Outcome> {
        if self.wrong == Wrong::OpensOnRestore {
            self.right.delete(context).await?;
        }
        self.right.restore(context).await
    }

    async fn migrate(&self, context: &Context<SubnetIsolation>) -> runtime::Result<Outcome> {
        if self.wrong == Wrong::OpensOnMigrate {
            self.right.delete(context).await?;
        }
        if self.wrong == Wrong::ClosesOnMigrate {
            let before = BTreeMap::from([(format!("{}/y/1", context.namespace()?), DEFAULT.to_owned())]);
            self.right.0.close(context, "y", &before).await?;
        }
        self.right.migrate(context).await
    }

    async fn delete(&self, context: &Context<SubnetIsolation>) -> runtime::Result<()> {
        self.right.delete(context).await
    }

    async fn force_delete(&self, context: &Context<SubnetIsolation>) -> runtime::Result<extension::Released> {
        self.right.force_delete(context).await
    }
}

fn isolation(namespace: &str) -> Result<SubnetIsolation> {
    object(json!({
        "metadata": {"name": "one", "namespace": namespace},
        "spec": {
            "type": "toy", "region": "r", "secretRef": {"name": "cloudprovider", "namespace": namespace}, "isolatedZoneID": "id-x",
        },
    }))
}

/// A shoot with pools in two zones, on both seeds.
async fn shoot(seeds: &Seeds, namespace: &str) -> Result<()> {
    seeds.shoot(namespace, ("cloudprovider", &[])).await?;
    let pools =
        json!({"spec": {"shoot": {"spec": {"provider": {"workers": [{"name": "a", "zones": ["x", "y"]}]}}}}});
    for seed in [&seeds.a, &seeds.b] {
        TEST.merge(&Api::<Cluster>::all(seed.clone()), namespace, &pools)
            .await?;
    }
    Ok(())
}

fn make(seed: &Client, cloud: &Arc<Cloud>, wrong: Wrong) -> ExtensionReconciler<SubnetIsolation, Wrongly> {
    let zones = ToyZones {
        cloud: Arc::clone(cloud),
        wrong,
    };
    let right = SubnetIsolationActuator(zones);
    reconciler(seed, namespaced, Wrongly { right, wrong })
}

async fn prove(seeds: &Seeds, namespace: &str, wrong: Wrong) -> Result<Proof, String> {
    shoot(seeds, namespace).await.map_err(text)?;
    let cloud = Cloud::with_owner(namespace);
    let wanted = isolation(namespace).map_err(text)?;
    let contract = Contract::new(
        || make(&seeds.a, &cloud, wrong),
        || make(&seeds.b, &cloud, wrong),
        [wanted.clone(), wanted],
    )
    .outside(Box::new(|| {
        let seen = json!(cloud.read_account());
        async move { Ok(seen) }.boxed()
    }))
    .refuse(Box::new(|| {
        cloud.refuses.store(true, Ordering::SeqCst);
        async { Ok(()) }.boxed()
    }));
    contract.prove().await
}

/// RZ-31..33: a correct actuator passes, and each violation fails with a sentence.
pub async fn are_closed_by_the_contract(seeds: &Seeds) -> Result<()> {
    proven(prove(seeds, "shoot--toy--zones", Wrong::Nothing).await)?;
    for (wrong, expected) in SENTENCES {
        let namespace = format!("shoot--toy--{}", format!("{wrong:?}").to_lowercase());
        let said = match prove(seeds, &namespace, *wrong).await {
            Ok(proof) => format!("nothing: it passes ({proof:?})"),
            Err(said) => said,
        };
        ensure!(
            said.contains(expected),
            "{wrong:?}: expected {expected:?}, the suite says {said:.600}"
        );
    }
    Ok(())
}

/// RZ-32: a machine is awaited, but not for ever; and a zone that the shoot does not use is refused.
pub async fn wait_for_their_machines(seeds: &Seeds) -> Result<()> {
    let namespace = "shoot--toy--zone-machines";
    shoot(seeds, namespace).await?;
    let (seed, cloud) = (&seeds.a, Cloud::with_owner(namespace));
    let before = cloud.read_account();
    let objects: Api<SubnetIsolation> = Api::namespaced(seed.clone(), namespace);
    let machines: Api<Machine> = Api::namespaced(seed.clone(), namespace);

    let mut unused = isolation(namespace)?;
    unused.metadata.name = Some("unused".into());
    unused.spec.isolated_zone_id = "id-z".into();
    create(&objects, &unused).await?;
    let refused = make(seed, &cloud, Wrong::Nothing).run(&unused).await;
    let said = refused.err().map(|error| error.to_string()).unwrap_or_default();
    ensure!(said.contains("zones x, y"), "a zone that is not used: {said}");

    create(&machines, &machine(namespace)?).await?;
    let made = create(&objects, &isolation(namespace)?).await?;
    let by = make(seed, &cloud, Wrong::Nothing);
    let leaves = async {
        remembered(&objects, |state| state["since"].is_string()).await?;
        ensure!(cloud.read_account() == before, "it did not wait for the machine");
        machines.delete("m", &DeleteParams::default()).await?;
        anyhow::Ok(())
    };
    let (done, left) = tokio::join!(testkit::timeout(SOON, run_until_ready(&by, &made)), leaves);
    left?;
    done??;
    ensure!(
        Cloud::is_closed(&cloud.read_account(), namespace),
        "{:?}",
        cloud.read_account()
    );
    let told = objects.get("one").await?.status.unwrap_or_default();
    let told = told.provider_status.unwrap_or_default().0;
    let was = json!({format!("{namespace}/x/1"): DEFAULT, format!("{namespace}/x/2"): "acl-by-hand"});
    ensure!(told["isolatedZoneCode"] == "x" && told["before"] == was, "{told}");

    objects.delete("one", &DeleteParams::default()).await?;
    by.run(&made).await?;
    ensure!(
        cloud.read_account().subnets == before.subnets,
        "{:?}",
        cloud.read_account()
    );
    closes_when_it_has_waited(seed, namespace, &cloud).await
}

/// As after a restart, or in the destination seed: the elapsed time is in the state.
async fn closes_when_it_has_waited(seed: &Client, namespace: &str, cloud: &Arc<Cloud>) -> Result<()> {
    let objects: Api<SubnetIsolation> = Api::namespaced(seed.clone(), namespace);
    let machines: Api<Machine> = Api::namespaced(seed.clone(), namespace);
    create(&machines, &machine(namespace)?).await?;
    let made = create(&objects, &isolation(namespace)?).await?;
    let since = clock::now() - CLOSE_WITHIN;
    let state = json!({"state": {"zone": "x", "since": since.to_string()}});
    TEST.merge_status(&objects, "one", &state).await?;
    let by = make(seed, cloud, Wrong::Nothing);
    let mut closed = cloud.account.subscribe();
    let leaves = async {
        closed
            .wait_for(|account| Cloud::is_closed(account, namespace))
            .await?;
        // The former state is reported, and the operation does not succeed while a machine exists.
        remembered(&objects, |state| state["before"].is_object()).await?;
        reported_closed(&objects).await?;
        let now = objects.get("one").await?.status.unwrap_or_default();
        let last = now.last_operation.map(|last| json!(last.state));
        ensure!(last == Some(json!("Processing")), "{last:?}");
        machines.delete("m", &DeleteParams::default()).await?;
        anyhow::Ok(())
    };
    let (done, left) = tokio::join!(testkit::timeout(SOON, run_until_ready(&by, &made)), leaves);
    left?;
    done??;
    let now = objects.get("one").await?.status.unwrap_or_default();
    let last = now.last_operation.map(|last| json!(last.state));
    ensure!(last == Some(json!("Succeeded")), "{last:?}");
    Ok(())
}

fn machine(namespace: &str) -> Result<Machine> {
    object(json!({
        "metadata": {"name": "m", "namespace": namespace, "labels": {(labels::ZONE): "x"}}, "spec": {},
    }))
}

/// Waits until the status reports the closed network.
async fn reported_closed(objects: &Api<SubnetIsolation>) -> Result<()> {
    let look = |object: Option<&SubnetIsolation>| {
        if object.is_some_and(SubnetIsolation::is_network_closed) {
            runtime::client::wait::WaitState::Done
        } else {
            runtime::client::wait::WaitState::Wait("the status does not report the closed network".into())
        }
    };
    let found = testkit::measured("the closed network is reported", SOON, |bound| {
        runtime::client::wait::until(objects, "one", bound, look)
    });
    found.await.map(drop).context("the report of the closed network")
}

/// Waits until the object's state matches.
async fn remembered(objects: &Api<SubnetIsolation>, is_so: impl Fn(&Value) -> bool + Sync) -> Result<()> {
    let look = |object: Option<&SubnetIsolation>| {
        let status = object.and_then(|object| object.status.as_ref());
        let state = status.and_then(|status| status.state.as_ref());
        if state.is_some_and(|state| is_so(&state.0)) {
            runtime::client::wait::WaitState::Done
        } else {
            runtime::client::wait::WaitState::Wait(format!("its state is {state:?}"))
        }
    };
    let found = testkit::measured("the state of the closed zone is stored", SOON, |bound| {
        runtime::client::wait::until(objects, "one", bound, look)
    });
    found.await.map(drop).context("the state of the closed zone")
}
