//! Isolated zones (GEP-21): the requests and records, the orders to the cloud, and the conditions.
//!
//! The hosts of the cloud are fakes: each host confirms an order at once. Every version of an order is
//! observed, so that a zone that a disturbance opens and closes again does not go unnoticed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use api::constants::SHOOT_ISOLATED_ZONE;
use api::extensions::{SubnetIsolation, Worker};
use api::gardencore::shoot::{ZoneIsolationPhase as Phase, ZoneIsolationStatus as Status};
use api::machine::{Machine, labels};
use cloud_local::{isolation, zones};
use flow::Undisturbed;
use futures::StreamExt;
use gardenlet::{
    shoot::operation::status::{OperationStart, Trigger, Writer, started, with_content},
    zone_isolation::content_at_start,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client, ResourceExt};
use local_cloud_fixture::{closed_zone, run_hosts};
use placement::Operation;
use placement::isolation::{asked_zone, is_due, recorded};
use runtime::client::apply::FieldManager;
use runtime::{Error, Result, clock};
use serde_json::{Map, Value, json};
use testkit::eventually;
use tokio::task::JoinSet;

use crate::evidence::require;
use crate::garden::CLOUD;
use crate::scenario::{Drilled, ShootScenario};
use crate::seed::RunningSeed;
use crate::subject::{ANSWER_WITHIN, Subject, transient};

/// The account of the hosts.
const ACCOUNT: &str = CLOUD;
const MANAGER_OF_TEST: FieldManager = FieldManager("drill");
/// The isolated zone, and the zone that takes the machines.
pub const SICK: &str = "a";
pub const OTHER: &str = "b";

/// The orders to the cloud, by cluster and in order: `a closed`, `a open`, and `a gone` after the removal of
/// the order.
#[derive(Clone, Default)]
pub struct Wishes(Arc<Mutex<BTreeMap<String, Vec<String>>>>);

impl Wishes {
    /// Runs the fake hosts, and records the orders, until `tasks` is dropped.
    pub async fn watch(tasks: &mut JoinSet<()>, cloud: Client) -> anyhow::Result<Self> {
        let mut playing = run_hosts(&cloud, ACCOUNT, MANAGER_OF_TEST, ["host-1", "host-2"]).await?;
        tasks.spawn(async move { while playing.join_next().await.is_some() {} });
        let wishes = Self::default();
        let (seen, marked) = (
            wishes.clone(),
            watcher::Config::default().labels(isolation::LABEL),
        );
        let objects: Api<ConfigMap> = Api::namespaced(cloud, ACCOUNT);
        let mut events = watch(objects, marked).default_backoff().boxed();
        tasks.spawn(async move {
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::Apply(object) | Event::InitApply(object)) => seen.note(&object, None),
                    Ok(Event::Delete(object)) => seen.note(&object, Some("gone")),
                    Ok(Event::Init | Event::InitDone) | Err(_) => {}
                }
            }
        });
        Ok(wishes)
    }

    fn note(&self, object: &ConfigMap, end: Option<&str>) {
        let field = |key| {
            let data = object.data.as_ref();
            data.and_then(|data| data.get(key)).map_or("", String::as_str)
        };
        let wish = format!("{} {}", field("zone"), end.unwrap_or(field("wanted")));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.entry(object.name_any()).or_default();
        // Hosts write into the same object.
        if own.last() != Some(&wish) {
            own.push(wish);
        }
    }

    fn list(&self, cluster: &str) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&isolation::name_of(cluster)).cloned().unwrap_or_default()
    }
}

/// The objects of a shoot for an isolated zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    /// The closed zone in the cloud, with the begin.
    pub closed: Value,
    /// The provider's recorded state in this seed.
    pub remembered: Option<Value>,
}

impl Subject<'_> {
    /// The present objects. `seed`: the seed with the recorded state.
    pub async fn zone(&self, seed: &RunningSeed) -> Result<Zone> {
        let objects: Api<SubnetIsolation> = Api::namespaced(seed.client(), &self.namespace());
        let object = objects.get_opt(&self.name).await?;
        Ok(Zone {
            closed: self.closed().await?,
            remembered: object.and_then(|object| Some(object.status?.state?.0)),
        })
    }

    /// The closed zone in the cloud; an empty list without a closed zone.
    pub async fn closed(&self) -> Result<Value> {
        let closed = closed_zone(&self.world.garden(), ACCOUNT, &self.namespace()).await;
        closed.map_err(transient)
    }

    /// The number of machines in each zone, according to this seed.
    async fn machines_in(&self, seed: &RunningSeed) -> Result<BTreeMap<String, usize>> {
        let machines: Api<Machine> = Api::namespaced(seed.client(), &self.namespace());
        let mut counted = BTreeMap::new();
        for machine in machines.list(&ListParams::default()).await? {
            let zone = machine.labels().get(labels::ZONE).cloned();
            *counted.entry(zone.unwrap_or_default()).or_default() += 1;
        }
        Ok(counted)
    }
}

impl ShootScenario<'_> {
    /// Requests the isolation of a zone, or of no zone, like a user (RZ-01, RZ-02).
    pub async fn asks_for(&self, zone: Option<&str>) -> Result<()> {
        let id = zone.map(zones::id_of);
        MANAGER_OF_TEST
            .annotate(&self.shoots(), &self.name, SHOOT_ISOLATED_ZONE, id.as_deref())
            .await
            .map(drop)
    }

    /// Writes the records on zones at the begin of an operation.
    pub async fn zone_begins(&self, operation: Operation) -> Result<()> {
        let shoot = self.shoots().get(&self.name).await?;
        let writer = Writer {
            id: "drill".into(),
            name: "gardenlet",
            version: "",
            seed: self.drilled_seed().name.into(),
        };
        let (start, now) = (
            OperationStart::new(&shoot, operation, Trigger::Due),
            clock::now_k8s(),
        );
        let told = started(&shoot, "dev", &writer, operation, &now);
        let told = with_content(told, content_at_start(&shoot, start, &now));
        let fields = ["zoneIsolation", "conditions"];
        let told = fields.map(|field| Some((field.to_owned(), told.get(field)?.clone())));
        let told: Map<_, _> = told.into_iter().flatten().collect();
        if told.is_empty() {
            return Ok(());
        }
        self.status(Value::Object(told)).await
    }

    /// Writes the gardenlet's records on zones after a successful operation.
    pub async fn zone_ends(&self, seed: &RunningSeed, operation: Operation) -> Result<()> {
        let shoot = self.shoots().get(&self.name).await?;
        let reconciled = matches!(operation, Operation::Create | Operation::Reconcile);
        if !reconciled || recorded(&shoot).is_none() {
            return Ok(());
        }
        let isolated = asked_zone(&shoot).is_some();
        let phase = if isolated {
            Phase::Failover
        } else {
            Phase::Failback
        };
        let mut ended = json!({"phase": phase, "status": Status::Done});
        if isolated {
            // RZ-20: the account's name of the zone.
            let workers: Api<Worker> = Api::namespaced(seed.client(), &self.namespace());
            let told = workers.get(&self.name).await?.status;
            let name = told.and_then(|status| status.isolated_zone_code);
            require(name.is_some(), "RZ-20: the Worker does not tell the zone's name")?;
            ended["isolatedZoneCode"] = json!(name);
        }
        self.status(json!({"zoneIsolation": ended})).await
    }

    /// The conditions at any moment.
    pub async fn check_zones(&self) -> Result<()> {
        if !self.drilled.is_of_zones() {
            return Ok(());
        }
        self.check_one_zone().await?;
        match self.drilled {
            Drilled::DeleteIsolated => self.check_order_of_deletion().await,
            // An Infrastructure without changes triggers no write.
            Drilled::Failover | Drilled::Failback | Drilled::AnotherZone => require(
                Some(self.network().await?) == self.evidence.as_ref().map(|e| e.network.clone()),
                "the network in the cloud changed",
            ),
            _ => Ok(()),
        }
    }

    /// Never two closed zones, in any seed; and RZ-35: a closed zone has no machine.
    async fn check_one_zone(&self) -> Result<()> {
        let mut ids = BTreeSet::new();
        let before = self.closed().await?;
        let mut left = Vec::new();
        for seed in &self.world.seeds {
            let objects: Api<SubnetIsolation> = Api::namespaced(seed.client(), &self.namespace());
            let all = objects.list(&ListParams::default()).await?;
            ids.extend(all.into_iter().map(|object| object.spec.isolated_zone_id));
            left.extend(self.machines_in(seed).await?.into_keys());
        }
        require(
            ids.len() <= 1,
            format!("several zones are closed at a time: {ids:?}"),
        )?;
        let is_closed = |zone: &String| {
            let entry = json!(["zone", zone]);
            before.as_array().is_some_and(|all| all.contains(&entry))
        };
        if before != self.closed().await? {
            // The count in between is ambiguous.
            return Ok(());
        }
        let inside: Vec<_> = left.iter().filter(|zone| is_closed(zone)).collect();
        require(
            inside.is_empty(),
            format!("RZ-35: zone {inside:?} is closed with machines in it"),
        )
    }

    /// RZ-14: the zone is opened after the Worker is gone, and the network is deleted after the zone is open.
    /// Between two runs, only requests of a run have an effect.
    async fn check_order_of_deletion(&self) -> Result<()> {
        let workers: Api<Worker> = Api::namespaced(self.drilled_seed().client(), &self.namespace());
        let has_worker = workers.get_opt(&self.name).await?.is_some();
        let is_closed = self.closed().await? != json!([]);
        let has_network = !self.network().await?.is_empty();
        require(
            is_closed || !has_worker,
            "RZ-14: the zone was opened before the Worker had gone",
        )?;
        require(
            has_network || !is_closed,
            "RZ-14: the Infrastructure went while a zone was closed",
        )
    }

    /// The conditions after the drilled flow has ended: as after an undisturbed run.
    pub async fn check_zones_at_end(&self) -> Result<()> {
        let (a, b) = (SICK, OTHER);
        // The orders, the machines by zone, and the number of original machines that still exist.
        let (wishes, machines, kept) = match self.drilled {
            Drilled::Failover => (vec![format!("{a} closed")], vec![(b, 2)], 1),
            Drilled::Failback => (opened(a), vec![(a, 1), (b, 1)], 1),
            Drilled::AnotherZone => {
                let wishes = opened(a).into_iter().chain([format!("{b} closed")]);
                (wishes.collect(), vec![(a, 2)], 0)
            }
            Drilled::RestoreIsolated | Drilled::TakeOverIsolated => {
                (vec![format!("{a} closed")], vec![(b, 2)], 2)
            }
            Drilled::DeleteIsolated => (opened(a), vec![], 0),
            _ => return Ok(()),
        };
        self.check_outcome(&wishes, &machines, kept).await?;
        let zone = self.zone(self.drilled_seed()).await?;
        let is_closed = wishes.last().is_some_and(|wish| wish.ends_with("closed"));
        let remembers = zone
            .remembered
            .as_ref()
            .is_some_and(|state| state["before"].is_object());
        require(
            remembers == is_closed && (zone.closed != json!([])) == is_closed,
            format!("RZ-30, RZ-33: {zone:?} is left of a zone of which this was wanted: {wishes:?}"),
        )
    }

    async fn check_outcome(&self, wishes: &[String], machines: &[(&str, usize)], kept: usize) -> Result<()> {
        let seen = eventually("what the cloud was asked for", ANSWER_WITHIN, || async {
            let seen = self.world.wishes.list(&self.namespace());
            require(
                seen == wishes,
                format!("the cloud is to be asked for {wishes:?}, and was for {seen:?}"),
            )
        });
        seen.await.map_err(transient)?;
        let wanted: BTreeMap<_, _> = machines
            .iter()
            .map(|(zone, count)| ((*zone).to_owned(), *count))
            .collect();
        // A flow does not await the drains of a failback: the other zones shrink after the flow.
        let shrunk = eventually("the machines of each zone", ANSWER_WITHIN, || async {
            let found = self.machines_in(self.drilled_seed()).await?;
            require(
                found == wanted,
                format!("RZ-21, RZ-22: machines are to be {wanted:?} by zone, and are {found:?}"),
            )?;
            let (before, now) = (self.evidence.as_ref().map(|e| &e.machines), self.machines());
            let stayed = now
                .keys()
                .filter(|id| before.is_some_and(|all| all.contains_key(*id)));
            let stayed = stayed.count();
            require(
                stayed == kept,
                format!("{kept} machines of {before:?} are to stay: {now:?}"),
            )
        });
        shrunk.await.map_err(transient)
    }

    /// After a move: the user's present request was not executed, waits if the request differs, and is
    /// executed next.
    pub async fn next_obeys(&self) -> Result<()> {
        let shoot = self.shoots().get(&self.name).await?;
        let told = recorded(&shoot).map(|recorded| (recorded.phase, recorded.status));
        let (wanted, waits) = if self.asks_no_more {
            ((Phase::Failback, Status::Pending), true)
        } else {
            ((Phase::Failover, Status::Done), false)
        };
        require(
            told == Some(wanted) && is_due(&shoot) == waits,
            format!("{wanted:?} is to be recorded, and {told:?} is"),
        )?;
        self.flow_on(self.drilled_seed(), Operation::Reconcile, &Undisturbed)
            .await
            .map_err(|error| Error::transient(error.to_string()))?;
        if !self.asks_no_more {
            self.check_zones_at_end().await?;
            return self.check_same().await;
        }
        self.check_outcome(&opened(SICK), &[(SICK, 1), (OTHER, 1)], 1)
            .await?;
        let zone = self.zone(self.drilled_seed()).await?;
        require(
            zone.closed == json!([]) && zone.remembered.is_none(),
            format!("RZ-33: {zone:?} is left"),
        )
    }
}

/// The orders to the cloud for a zone that is closed and opened once.
fn opened(zone: &str) -> Vec<String> {
    ["closed", "open", "gone"]
        .map(|word| format!("{zone} {word}"))
        .into()
}
