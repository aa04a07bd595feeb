//! Samples of all flows, for a shoot without any connection. A graph only borrows the facts of the shoot.

use std::{fmt::Display, sync::Arc};

use api::gardencore::{CloudProfile, ControllerRegistration, Project, Seed as SeedObject, Shoot};
use parts::{ClaimPlan, Facts, MoveFindings, OwnerRecordPlan, PreparationFacts, Residency, Settings, tenant};
use placement::{Extensions, Isolation, Names, Operation};
use runtime::{
    Error, Result,
    client::{Connection, Garden, Permit, Seed},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{FlowKind, breaches};
use crate::{
    shoot::flows::{
        ShootFlow,
        delete_flow::{self, DeleteInputs},
        force_delete_flow,
        leave_flow::{self, LeaveInputs},
        migrate_flow::{self, MigrateInputs},
        prepare_flow,
        reconcile_flow::{self, ReconcileInputs},
        sleep_flow::{self, SleepInputs},
    },
    zone_isolation::Zones,
};

/// Title of [`migrate_flow`].
pub const SOURCE: &str = "Move, in the source seed";
/// Title of [`prepare_flow`].
pub const PREPARATION: &str = "Preparation, in the destination seed";
/// Title of [`reconcile_flow`], for a takeover.
pub const DESTINATION: &str = "Move, in the destination seed";
/// Title of [`reconcile_flow`], without a move.
pub const RECONCILIATION: &str = "Creation and reconciliation";
/// Title of [`sleep_flow`], for a takeover.
pub const ASLEEP: &str = "Asleep: kept, or restored by a move";
/// Title of [`leave_flow`].
pub const LEFT: &str = "After a move, in the source seed";
/// Title of [`delete_flow`].
pub const DELETION: &str = "Deletion";
/// Title of [`force_delete_flow`].
pub const FORCED: &str = "Forced deletion";

/// A zone is closed. After a restore, the next reconciliation opens zones.
const RESTORED: Zones = Zones {
    closes: true,
    opens: false,
};
/// A zone is closed, and a second zone is opened before.
const RECONCILED: Zones = Zones {
    closes: true,
    opens: true,
};

/// All steps of a claim.
pub const CLAIMS: [ClaimPlan; 5] = [
    ClaimPlan::Nothing,
    ClaimPlan::DepartureCancelled,
    ClaimPlan::AfterHandOver,
    ClaimPlan::AfterTakeover,
    ClaimPlan::NewEpochSameSeed,
];

/// The restoration of a shoot that is taken over without the help of the source.
pub const RESTORATION: ReconcileInputs<'static> = ReconcileInputs {
    restoring: true,
    has_backup: true,
    copy_is_required: true,
    sleeps: false,
    owner_record: OwnerRecordPlan::Keep,
    claim: ClaimPlan::AfterTakeover,
    hooks: &RESTORED,
};

/// The same for a hibernated shoot.
pub const RESTORATION_ASLEEP: SleepInputs<'static> = SleepInputs {
    restoring: true,
    has_backup: true,
    copy_is_required: true,
    etcd_is_awake: true,
    owner_record: OwnerRecordPlan::Keep,
    claim: ClaimPlan::AfterTakeover,
    hooks: &RESTORED,
};

const MIGRATION: MigrateInputs = MigrateInputs {
    control_plane_is_up: true,
    keeps_phases: true,
};

const DELETION_INPUTS: DeleteInputs<'static> = DeleteInputs {
    namespace_is_active: true,
    control_plane_is_up: true,
    control_plane_may_sleep: true,
    owner_record: true,
    hooks: &RECONCILED,
};

/// A flow under some conditions.
#[derive(Debug)]
pub struct Sample<'a> {
    /// Title of the drawing.
    pub title: &'static str,
    /// Name of the file with the flow, without the extension.
    pub file: &'static str,
    /// The rights of the seed.
    pub kind: FlowKind,
    /// The flow.
    pub flow: ShootFlow<'a>,
}

impl Sample<'_> {
    /// See [`super::breaches`].
    #[must_use]
    pub fn breaches(&self) -> Vec<String> {
        breaches(self.kind, &self.flow)
    }
}

/// The inputs of all samples.
#[derive(Debug)]
pub struct SampleInputs {
    /// The facts of the shoot.
    pub facts: Facts,
    /// The findings, which no task records.
    pub findings: MoveFindings,
    /// The facts of a preparation for the same shoot.
    pub preparation: PreparationFacts,
}

/// A sample of each flow. The conditions enable as many tasks as possible.
#[must_use]
pub fn drawn(inputs: &SampleInputs) -> Vec<Sample<'_>> {
    let creation = ReconcileInputs {
        restoring: false,
        copy_is_required: false,
        claim: ClaimPlan::Nothing,
        hooks: &RECONCILED,
        ..RESTORATION
    };
    vec![
        migration(inputs, MIGRATION),
        reconciliation(inputs, DESTINATION, RESTORATION),
        reconciliation(inputs, RECONCILIATION, creation),
        sleep(inputs, RESTORATION_ASLEEP),
        departure(inputs, false),
        Sample {
            title: PREPARATION,
            file: "prepare_flow",
            kind: FlowKind::Prepares,
            flow: prepare_flow::build(&inputs.preparation, true),
        },
        deletion(inputs, DELETION_INPUTS),
        Sample {
            title: FORCED,
            file: "force_delete_flow",
            kind: FlowKind::Deletes,
            flow: force_delete_flow::build(&inputs.facts),
        },
    ]
}

/// The samples of [`drawn`], and each flow under further conditions.
#[must_use]
pub fn all(inputs: &SampleInputs) -> Vec<Sample<'_>> {
    let mut all = drawn(inputs);
    for claim in CLAIMS {
        for sleeps in [false, true] {
            let given = ReconcileInputs {
                sleeps,
                claim,
                ..RESTORATION
            };
            all.push(reconciliation(inputs, DESTINATION, given));
        }
        let given = SleepInputs {
            claim,
            ..RESTORATION_ASLEEP
        };
        all.push(sleep(inputs, given));
    }
    all.push(departure(inputs, true));
    for keeps_phases in [false, true] {
        let given = MigrateInputs {
            control_plane_is_up: false,
            keeps_phases,
        };
        all.push(migration(inputs, given));
        let given = DeleteInputs {
            owner_record: keeps_phases,
            control_plane_is_up: false,
            ..DELETION_INPUTS
        };
        all.push(deletion(inputs, given));
    }
    all
}

fn migration(inputs: &SampleInputs, given: MigrateInputs) -> Sample<'_> {
    Sample {
        title: SOURCE,
        file: "migrate_flow",
        kind: FlowKind::Migrates,
        flow: migrate_flow::build(&inputs.facts, &inputs.findings.end, given),
    }
}

fn reconciliation<'a>(
    inputs: &'a SampleInputs,
    title: &'static str,
    given: ReconcileInputs<'_>,
) -> Sample<'a> {
    Sample {
        title,
        file: "reconcile_flow",
        kind: FlowKind::Deploys(given.claim),
        flow: reconcile_flow::build(&inputs.facts, &inputs.findings.claim, given),
    }
}

fn sleep<'a>(inputs: &'a SampleInputs, given: SleepInputs<'_>) -> Sample<'a> {
    Sample {
        title: ASLEEP,
        file: "sleep_flow",
        kind: FlowKind::Deploys(given.claim),
        flow: sleep_flow::build(&inputs.facts, &inputs.findings.claim, given),
    }
}

fn departure(inputs: &SampleInputs, awaits_final_snapshot: bool) -> Sample<'_> {
    let given = LeaveInputs {
        namespace_is_active: true,
        awaits_final_snapshot,
    };
    Sample {
        title: LEFT,
        file: "leave_flow",
        kind: FlowKind::Leaves,
        flow: leave_flow::build(&inputs.facts.residency, given),
    }
}

fn deletion<'a>(inputs: &'a SampleInputs, given: DeleteInputs<'_>) -> Sample<'a> {
    Sample {
        title: DELETION,
        file: "delete_flow",
        kind: FlowKind::Deletes,
        flow: delete_flow::build(&inputs.facts, given),
    }
}

/// A shoot with nodes, and with an extension for each lifecycle time. No task of a sample runs, so no client
/// sends a request.
///
/// # Errors
/// An object of the sample is invalid.
pub fn inputs(connection: Connection, permit: &Permit) -> Result<SampleInputs> {
    let facts = facts(connection, permit)?;
    let granted = object(
        json!({"uid": "uid", "source": "source", "destination": "seed", "epoch": 1,
        "expiry": "2026-01-01T00:00:00Z"}),
    )?;
    let preparation = PreparationFacts {
        garden: facts.garden.clone(),
        residency: facts.residency.clone(),
        shoot: Arc::clone(&facts.shoot),
        project: facts.project.clone(),
        seed_object: facts.seed_object.clone(),
        granted,
    };
    Ok(SampleInputs {
        facts,
        findings: MoveFindings::default(),
        preparation,
    })
}

fn facts(connection: Connection, permit: &Permit) -> Result<Facts> {
    let shoot: Shoot = object(json!({
        "metadata": {"name": "shoot", "namespace": "garden-project", "uid": "uid"},
        "spec": {
            "cloudProfile": {"name": "profile"}, "region": "region", "seedName": "seed",
            "provider": {"type": "type", "workers": [
                {"name": "pool", "machine": {"type": "type"}, "minimum": 1, "maximum": 1,
                    "cri": {"name": "containerd", "containerRuntimes": [{"type": "type"}]}}]}, "kubernetes": {"version": "1.0.0"},
        },
    }))?;
    let seed_object = SeedObject {
        metadata: named("seed"),
        ..SeedObject::default()
    };
    let names = Names::for_shoot(&shoot, "project", &seed_object).map_err(invalid)?;
    let extensions = Extensions::for_shoot(&shoot, &[registration()?]);
    let cloud_profile: CloudProfile = object(json!({
        "metadata": {"name": "profile"},
        "spec": {"type": "type", "regions": [], "kubernetes": {"versions": []}},
    }))?;
    Ok(Facts {
        garden: Garden::new(connection.clone(), permit),
        residency: Residency {
            seed: Seed::new(connection, permit),
            settings: Arc::new(Settings::default()),
            namespace: names.technical_id.clone(),
            tenant: tenant(&shoot),
        },
        close_deadline: parts::SharedCloseDeadline::recorded(&shoot),
        shoot: Arc::new(shoot),
        project: Project {
            metadata: named("project"),
            ..Project::default()
        },
        cloud_profile,
        extensions,
        isolation: Isolation::CutOff("zone".to_owned()),
        seed_object,
        operation: Operation::Reconcile,
        names,
        kubernetes_version: "1.0.0".to_owned(),
        stage: parts::controller_leaders::Stage::AtHome,
        owner_check: Settings::default().owner_check,
        shoot_state_cache: parts::shoot_state::ShootStateCache::default(),
    })
}

/// Three extensions that each shoot has.
fn registration() -> Result<ControllerRegistration> {
    let times = ["BeforeKubeAPIServer", "AfterKubeAPIServer", "AfterWorker"];
    let resources = times.map(|time| {
        json!({"kind": "Extension", "type": time, "autoEnable": ["shoot"], "lifecycle": {"reconcile": time}})
    });
    object(json!({"metadata": {"name": "provider"}, "spec": {"resources": resources}}))
}

fn object<K: DeserializeOwned>(value: Value) -> Result<K> {
    serde_json::from_value(value).map_err(invalid)
}

fn invalid(error: impl Display) -> Error {
    Error::bug(format!("an object of the sample flows is invalid: {error}"))
}

fn named(name: &str) -> kube::core::ObjectMeta {
    kube::core::ObjectMeta {
        name: Some(name.to_owned()),
        ..kube::core::ObjectMeta::default()
    }
}
