//! Names that users, extensions and dashboards rely on: annotations, labels, finalizers and their values.

use k8s_openapi::api::core::v1::Namespace;

/// Annotation: the requested operation on the object, see [`operation`].
pub const OPERATION: &str = "gardener.cloud/operation";

/// Values of the annotation [`OPERATION`].
pub mod operation {
    /// Reconcile the object with its specification.
    pub const RECONCILE: &str = "reconcile";
    /// Hand the object over to a different seed: release the object here, and keep all external resources.
    pub const MIGRATE: &str = "migrate";
    /// Take the object over from a different seed, from the carried state.
    pub const RESTORE: &str = "restore";
    /// Try again after a final failure.
    pub const RETRY: &str = "retry";
    /// Do nothing yet: the state is still to be added.
    pub const WAIT_FOR_STATE: &str = "wait-for-state";
    /// Do maintenance now, outside the time window.
    pub const MAINTAIN: &str = "maintain";
    /// Keep a bastion alive.
    pub const KEEPALIVE: &str = "keepalive";
}

/// Annotation: the time of the last request for a change of the object (RFC 3339).
pub const TIMESTAMP: &str = "gardener.cloud/timestamp";
/// Annotation: a user confirms the deletion of the object (`true`).
pub const CONFIRMATION_DELETION: &str = "confirmation.gardener.cloud/deletion";
/// Annotation: the user who confirmed the deletion.
pub const DELETION_CONFIRMED_BY: &str = "deletion.gardener.cloud/confirmed-by";
/// Annotation: a user confirms the deletion of a shoot without a cleanup in the shoot (`true`).
pub const CONFIRMATION_FORCE_DELETION: &str = "confirmation.gardener.cloud/force-deletion";
/// Annotation: the backup entry is deleted without waiting for the grace period (`true`).
pub const BACKUP_ENTRY_FORCE_DELETION: &str = "backupentry.core.gardener.cloud/force-deletion";
/// Annotation of a source backup entry: the backups are in the shoot's new bucket, and etcd has started from
/// the copy. So the backups in the former bucket are deleted with the entry (`true`). Without the annotation
/// these backups stay, also when a user deletes the entry.
pub const BACKUP_ENTRY_BACKUPS_COPIED: &str = "backupentry.core.gardener.cloud/backups-copied";
/// Value of that annotation where the shoot lost changes in a takeover: a final snapshot stays, also a final
/// snapshot that is uploaded later. Only the final snapshot holds these changes (R17-46).
pub const BACKUPS_COPIED_BUT_FINAL: &str = "but-final";
/// Annotation of a backup entry: the ownership epoch in which garden-controller-manager assigned the entry to
/// the Seed in `spec.seedName`. That seed acts on the entry when the flow of its gardenlet has written this
/// epoch, or a later epoch, into annotation [`OWNERSHIP_EPOCH`] of the entry. Seeds cannot change the
/// annotation. An entry without the annotation is acted on at once.
pub const BACKUP_ENTRY_ASSIGNED_IN_EPOCH: &str = "backupentry.core.gardener.cloud/assigned-in-epoch";
/// Annotation of the shoot's own backup entry: the ownership epoch whose etcd has started from the copy. In
/// that epoch garden-controller-manager creates no source backup entry any more.
pub const BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH: &str =
    "backupentry.core.gardener.cloud/source-released-in-epoch";
/// Annotation of the shoot's own backup entry: the ownership epoch in which garden-controller-manager has
/// seen the end of the source backup entry. In that epoch garden-controller-manager creates no source backup
/// entry any more. Seeds cannot change the annotation.
pub const BACKUP_ENTRY_SOURCE_ENDED_IN_EPOCH: &str = "backupentry.core.gardener.cloud/source-ended-in-epoch";
/// Annotation: tasks for the next reconciliation of a shoot, separated by commas.
pub const SHOOT_TASKS: &str = "shoot.gardener.cloud/tasks";
/// Annotation: new reconciliations of the Shoot are held back (a truth value, see [`is_switched_on`]).
pub const SHOOT_IGNORE: &str = "shoot.gardener.cloud/ignore";
/// Annotation: how often the shoot is reconciled.
pub const SHOOT_SYNC_PERIOD: &str = "shoot.gardener.cloud/sync-period";
/// Annotation: flows do not wait for nodes (`true`).
pub const SHOOT_SKIP_READINESS: &str = "shoot.gardener.cloud/skip-readiness";
/// Annotation: the time of the automatic deletion of the shoot.
pub const SHOOT_EXPIRATION_TIMESTAMP: &str = "shoot.gardener.cloud/expiration-timestamp";
/// Annotation of a Seed: new reconciliations of all Shoots of the seed are held back (a truth value, see
/// [`is_switched_on`]).
pub const EMERGENCY_STOP: &str = "shoot.gardener.cloud/emergency-stop-reconciliations";
/// Annotation: the shoot is taken over without the help of the seed that has the shoot (`true` or
/// [`FORCE_RESTORE_SOURCE_IS_OFF`]).
pub const SHOOT_FORCE_RESTORE: &str = "shoot.gardener.cloud/force-restore";
/// Value of [`SHOOT_FORCE_RESTORE`]: a person states that no process of the source runs any more.
pub const FORCE_RESTORE_SOURCE_IS_OFF: &str = "source-is-off";
/// Annotation: the seed that has the shoot keeps the shoot in the next ownership epoch, with the data
/// (`true`).
pub const SHOOT_RENEW_OWNERSHIP: &str = "shoot.gardener.cloud/renew-ownership";
/// Annotation: how many revisions of the source's etcd may be lost, where a planned move finds that snapshots
/// of the source are missing. `unknown` accepts a loss of unknown size.
pub const SHOOT_ACCEPT_LOSS: &str = "shoot.gardener.cloud/accept-loss";
/// Annotation: the zone to isolate, as the provider's physical ID. While the annotation exists, the shoot has
/// no machines in the zone, and the network of the zone is closed (RZ-01).
pub const SHOOT_ISOLATED_ZONE: &str = "shoot.gardener.cloud/isolated-zone";
/// Annotation: the time of the automatic removal of [`SHOOT_ISOLATED_ZONE`] (RFC 3339). Never present without
/// [`SHOOT_ISOLATED_ZONE`].
pub const SHOOT_ISOLATED_ZONE_EXPIRES: &str = "shoot.gardener.cloud/isolated-zone-expires";
/// Annotation: whether machines elsewhere are awaited before pods leave the isolated zone. Either
/// [`ISOLATED_ZONE_CAPACITY_FIRST`] (the default) or [`ISOLATED_ZONE_PODS_FIRST`].
pub const SHOOT_ISOLATED_ZONE_ORDER: &str = "shoot.gardener.cloud/isolated-zone-order";
/// Value of [`SHOOT_ISOLATED_ZONE_ORDER`]: pods leave the zone when new machines elsewhere are ready, or
/// after 10 minutes.
pub const ISOLATED_ZONE_CAPACITY_FIRST: &str = "CapacityFirst";
/// Value of [`SHOOT_ISOLATED_ZONE_ORDER`]: pods leave the zone at once, and wait elsewhere for room.
pub const ISOLATED_ZONE_PODS_FIRST: &str = "PodsFirst";
/// Annotation: the zone, as the provider's ID, for a report of all that an isolation of the zone would move.
/// No other object is changed, and the annotation is removed with the report.
pub const SHOOT_ISOLATED_ZONE_DRY_RUN: &str = "shoot.gardener.cloud/isolated-zone-dry-run";
/// Annotation: the rest of the budget of a failover is spent (`true`), so that the network of the zone is
/// closed at once. Before the admission of the failover the annotation waits. The gardenlet removes the
/// annotation when the gardenlet has recorded the new deadline, or when the failover has ended.
pub const SHOOT_ISOLATED_ZONE_CLOSE_NOW: &str = "shoot.gardener.cloud/isolated-zone-close-now";
/// Annotation of a Worker and of a SubnetIsolation: the time (RFC 3339) by which the network of the isolated
/// zone is closed, even if machines are left in the zone. The gardenlet copies
/// `status.zoneIsolation.closeDeadlineTime` of the Shoot.
pub const ISOLATED_ZONE_CLOSE_DEADLINE: &str = "extensions.gardener.cloud/isolated-zone-close-deadline";
/// Annotation: the Seed to which a move of the Shoot is judged without any change. garden-controller-manager
/// reports the answer as constraint `MigrationDryRun`, and removes the annotation.
pub const MIGRATION_DRY_RUN: &str = "migration.gardener.cloud/dry-run";
/// Annotation: the Seed that is to prepare for the Shoot, while the present seed serves. The request ends
/// with the annotation. Without a setting of garden-controller-manager no seed prepares.
pub const MIGRATION_PREPARE: &str = "migration.gardener.cloud/prepare";
/// Key of the taint that closes a Seed to new shoots and to moves to the seed. `kubectl repot cordon` writes
/// the taint.
pub const SEED_CORDONED: &str = "migration.gardener.cloud/cordoned";
/// Annotation: a move to a far region is meant.
pub const MIGRATION_ALLOW_DISTANT_REGIONS: &str = "migration.gardener.cloud/allow-distant-regions";
/// Annotation: the move is to keep the API serving.
pub const MIGRATION_LIVE_MIGRATE: &str = "migration.gardener.cloud/live-migrate";
/// Annotation: the user who created the object.
pub const CREATED_BY: &str = "gardener.cloud/created-by";
/// Annotation: where a provider puts credentials made for a bucket.
pub const GENERATED_SECRET_NAMESPACE: &str =
    "backupbucket.extensions.gardener.cloud/generated-secret-namespace";
/// Annotation: the Secret with the kubeconfig for programs beside the shoot's API.
pub const GENERIC_TOKEN_KUBECONFIG: &str = "generic-token-kubeconfig.secret.gardener.cloud/name";
/// Annotation: the managed resource, or an object of a managed resource, is not changed (`true`).
pub const RESOURCES_IGNORE: &str = "resources.gardener.cloud/ignore";
/// Annotation: how an object of a managed resource is handled (`Ignore`).
pub const RESOURCES_MODE: &str = "resources.gardener.cloud/mode";
/// Annotation: the object stays when the managed resource is deleted (`true`).
pub const RESOURCES_KEEP_OBJECT: &str = "resources.gardener.cloud/keep-object";
/// Annotation: the managed resource of an object.
pub const RESOURCES_ORIGIN: &str = "resources.gardener.cloud/origin";
/// Annotation: the requested operation on an Etcd (`reconcile`).
pub const DRUID_OPERATION: &str = "druid.gardener.cloud/operation";
/// Annotation of an Etcd with former data (`true`): etcd must not start empty where the backups are not
/// found. The gardenlet writes the annotation, etcd-druid reads the annotation.
pub const DRUID_REQUIRE_SNAPSHOT: &str = "druid.gardener.cloud/require-snapshot";
/// Annotation of an Etcd (`true`): the volume claim stays when the Etcd is deleted, labelled with
/// [`OWNERSHIP_EPOCH`]. The gardenlet writes the annotation on the Etcd of a shoot that has left, and later
/// removes the claim.
pub const DRUID_KEEP_VOLUME: &str = "druid.gardener.cloud/keep-volume";
/// Annotation of an Etcd: the earlier ownership epoch, a whole number, whose data this Etcd continues. The
/// Etcd may start on a volume claim that was kept with the data of that epoch. The gardenlet writes the
/// annotation on the Etcd of a shoot that comes back before another seed has opened the data.
pub const DRUID_CONTINUES_EPOCH: &str = "druid.gardener.cloud/continues-epoch";
/// Annotation of an Etcd that is being handed over (`true`): a final snapshot is requested, or was taken.
/// Without the annotation, a backup process that has finished is an alarm, because no later write would be
/// backed up.
pub const DRUID_MIGRATING: &str = "druid.gardener.cloud/migrating";
/// Name of the Etcd with the shoot's objects, and of the folder of this Etcd below the shoot's prefix in a
/// bucket.
pub const ETCD_MAIN: &str = "etcd-main";
/// Annotation: the Etcd's specification is not acted on.
pub const DRUID_SUSPEND_RECONCILE: &str = "druid.gardener.cloud/suspend-etcd-spec-reconcile";

/// Annotation of an Etcd and of a BackupEntry, label of a kept volume claim: the ownership epoch to which the
/// data of the object belong (`status.ownership.epoch` of the Shoot). An object without this epoch belongs to
/// epoch 1. A DNSRecord of type TXT with this annotation is the owner record of a shoot, valid in this epoch.
pub const OWNERSHIP_EPOCH: &str = "shoot.gardener.cloud/ownership-epoch";
/// Annotation of an extension object and of machine objects: the ownership epoch of the shoot in which the
/// object was written or created. Unlike [`OWNERSHIP_EPOCH`], this epoch does not describe the content of the
/// object. An object without this epoch may be older than epochs.
pub const WRITTEN_IN_EPOCH: &str = "shoot.gardener.cloud/written-in-epoch";
/// Annotation of an Etcd and of the shoot's namespace in the seed: the ownership epoch, a whole number, for
/// which the gardenlet stopped etcd. The epoch is later than the epoch of the data ([`OWNERSHIP_EPOCH`]), and
/// changes on the volume may be in no snapshot. The gardenlet removes both annotations when these changes are
/// saved, and the annotation of the Etcd when etcd starts in a later epoch.
pub const STOPPED_FOR_EPOCH: &str = "shoot.gardener.cloud/stopped-for-epoch";
/// Annotation of an Etcd: the ownership epoch, a whole number, in which the gardenlet has proved the final
/// snapshot of this etcd and has handed over the shoot. Without the annotation of the epoch that the seed has
/// lost, the gardenlet asks etcd-backup-restore for the final snapshot before the deletion of the Etcd.
pub const HANDED_OVER_IN_EPOCH: &str = "shoot.gardener.cloud/handed-over-in-epoch";
/// Annotation of the shoot's namespace in the seed: the ownership epoch, a whole number, in which the
/// gardenlet of the seed has chosen the data of the shoot, after the fence where a fence is needed. Without
/// the annotation of the present epoch, the gardenlet does not rely on phases `Opening`, `Held` and `Leaving`
/// of the Shoot.
pub const OPENED_IN_EPOCH: &str = "shoot.gardener.cloud/opened-in-epoch";

/// The epoch of annotation [`OPENED_IN_EPOCH`] of a namespace; `None` without a valid annotation.
#[must_use]
pub fn opened_epoch(namespace: &Namespace) -> Option<i64> {
    let annotations = namespace.metadata.annotations.as_ref()?;
    annotations.get(OPENED_IN_EPOCH)?.parse().ok()
}

/// Annotation of the shoot's namespace in the seed: the ownership epoch, a whole number, of the grant under
/// which the seed has created the namespace, before any flow of an owner. A namespace with the annotation is
/// removed when the grant ends. The flow of an owner removes the annotation first.
pub const PREPARED_IN_EPOCH: &str = "shoot.gardener.cloud/prepared-in-epoch";
/// Label of a Secret in a prepared namespace: the grant under which the seed has read the content (epoch and
/// expiry in Unix seconds, with a hyphen between). The flow of an owner removes the Secrets with the label
/// before the mark of the namespace.
pub const PREPARED_BY_GRANT: &str = "shoot.gardener.cloud/prepared-by-grant";
/// Annotation of the DNSRecord with the owner record (`true`): the deletion removes the epoch, too, because
/// the shoot is deleted, or owner checks are off. Without the annotation the epoch stays in DNS, so that the
/// former owner learns the end of its ownership (R17-50).
pub const OWNERSHIP_FORGOTTEN: &str = "shoot.gardener.cloud/ownership-forgotten";
/// The DNS label in front of the name of the owner record, for the record with the ownership epoch.
pub const OWNERSHIP_EPOCH_LABEL: &str = "epoch";
/// Annotation of a shoot's namespace in a seed that the shoot has left: the epoch of the shoot's residency
/// there. A namespace with the annotation is cleaned up also when the Shoot is gone; a namespace without the
/// annotation never is.
pub const LEFT_IN_EPOCH: &str = "shoot.gardener.cloud/left-in-epoch";
/// Annotation of a Seed: the namespaces in the seed, separated by commas, of Shoots that run in a different
/// seed and do not name this seed in `status.formerSeeds`. The gardenlet of the seed writes the annotation. A
/// move of such a Shoot to the seed is refused.
pub const LEFTOVER_NAMESPACES: &str = "migration.gardener.cloud/leftover-namespaces";
/// Annotation of a shoot's namespace in a seed: the time at which a forced deletion began there (RFC 3339).
/// The machine manager gets a bounded time from then on, independent of retries and restarts.
pub const FORCED_DELETION_BEGAN: &str = "shoot.gardener.cloud/forced-deletion-began";
/// Label: how the shoot's conditions look, taken together.
pub const SHOOT_STATUS: &str = "shoot.gardener.cloud/status";
/// Label: the role of an object: `shoot`, `seed`, `project`, `controlplane`, `extension`, …
pub const ROLE: &str = "gardener.cloud/role";
/// Label: the purpose of a Secret.
pub const PURPOSE: &str = "gardener.cloud/purpose";
/// Label: the project an object belongs to.
pub const PROJECT_NAME: &str = "project.gardener.cloud/name";
/// Label: the project namespace of a shoot.
pub const SHOOT_NAMESPACE: &str = "shoot.gardener.cloud/namespace";
/// Label: the name of a shoot.
pub const SHOOT_NAME: &str = "shoot.gardener.cloud/name";
/// Label: the uid of a shoot.
pub const SHOOT_UID: &str = "shoot.gardener.cloud/uid";
/// Label: the provider of a shoot.
pub const SHOOT_PROVIDER: &str = "shoot.gardener.cloud/provider";
/// Label: the provider of a seed.
pub const SEED_PROVIDER: &str = "seed.gardener.cloud/provider";
/// Label: the region of a seed.
pub const SEED_REGION: &str = "seed.gardener.cloud/region";
/// Label of namespace `seed-<name>` of the garden. By the value [`SEED_ACCESS_WITHDRAWN`] an operator
/// withdraws the access of the seed to all shoots. No seed writes this namespace.
pub const SEED_ACCESS: &str = "gardener.cloud/seed-access";
/// Value of [`SEED_ACCESS`].
pub const SEED_ACCESS_WITHDRAWN: &str = "withdrawn";
/// Label of namespace `seed-<name>` of the garden. By the value [`SEED_REGISTRATION_REFUSED`] an operator
/// refuses the registration of a removed Seed by its gardenlet (policy `gardenlet-registration`).
pub const SEED_REGISTRATION: &str = "gardener.cloud/seed-registration";
/// Value of [`SEED_REGISTRATION`].
pub const SEED_REGISTRATION_REFUSED: &str = "refused";
/// Label: the provider of backups.
pub const BACKUP_PROVIDER: &str = "backup.gardener.cloud/provider";
/// Label: the object is not deleted without confirmation (`true`).
pub const DELETION_PROTECTED: &str = "gardener.cloud/deletion-protected";
/// Label: a Secret is carried to another seed (`true`).
pub const PERSIST: &str = "persist";
/// Label: the ControllerRegistration whose extension uses this namespace of a seed.
pub const REGISTRATION_NAME: &str = "controllerregistration.core.gardener.cloud/name";
/// Label: the manager of a Secret.
pub const MANAGED_BY: &str = "managed-by";
/// Value of [`MANAGED_BY`] on key material.
pub const SECRETS_MANAGER: &str = "secrets-manager";
/// Label: the owner of the key material.
pub const MANAGER_IDENTITY: &str = "manager-identity";
/// Label: the name of the key material. The name of the object may have a checksum in addition.
pub const SECRET_NAME: &str = "name";
/// Label: checksum of the configuration of the key material.
pub const CHECKSUM_OF_CONFIG: &str = "checksum-of-config";
/// Label: when a piece of key material was made (Unix seconds).
pub const ISSUED_AT_TIME: &str = "issued-at-time";
/// Label: until when a certificate is valid (Unix seconds).
pub const VALID_UNTIL_TIME: &str = "valid-until-time";
/// Label: the handling of the old key material after a rotation: `inplace` or `keepold`.
pub const ROTATION_STRATEGY: &str = "rotation-strategy";
/// Label: the time of the last request for a rotation (Unix seconds).
pub const LAST_ROTATION_INITIATION_TIME: &str = "last-rotation-initiation-time";

/// Whether the value of an annotation switches the annotation on, by the truth values of Gardener (Go's
/// `strconv.ParseBool`).
#[must_use]
pub fn is_switched_on(value: &str) -> bool {
    matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

/// Label that says of a Shoot, BackupEntry, … that a seed is concerned, by specification or status (`true`).
#[must_use]
pub fn seed_name_label(seed: &str) -> String {
    format!("name.seed.gardener.cloud/{seed}")
}

/// User of a seed in the garden: the common name of the certificate of the seed's processes.
#[must_use]
pub fn seed_user(seed: &str) -> String {
    format!("gardener.cloud:system:seed:{seed}")
}

/// Values of the label [`SHOOT_STATUS`].
pub mod shoot_status {
    /// All conditions hold.
    pub const HEALTHY: &str = "healthy";
    /// Some objects are being created or replaced.
    pub const PROGRESSING: &str = "progressing";
    /// Some are not known.
    pub const UNKNOWN: &str = "unknown";
    /// Some do not hold.
    pub const UNHEALTHY: &str = "unhealthy";
}

/// Finalizers.
pub mod finalizer {
    /// Of Shoots, BackupBuckets, BackupEntries and bindings in the garden.
    pub const GARDENER: &str = "gardener";
    /// Of objects that the suite refers to.
    pub const REFERENCE_PROTECTION: &str = "gardener.cloud/reference-protection";
    /// Of a Secret in use.
    pub const EXTERNAL_GARDENER: &str = "gardener.cloud/gardener";
    /// Of a ShootState whose Shoot is being moved.
    pub const SHOOT_STATE: &str = "core.gardener.cloud/shootstate";
    /// Of a Seed, set by garden-controller-manager.
    pub const SEED: &str = "core.gardener.cloud/seed";
    /// Of a ControllerRegistration with installations.
    pub const CONTROLLER_REGISTRATION: &str = "core.gardener.cloud/controllerregistration";
    /// Of a ControllerInstallation whose extension runs in the seed.
    pub const CONTROLLER_INSTALLATION: &str = "core.gardener.cloud/controllerinstallation";
    /// Of a ControllerDeployment in use.
    pub const CONTROLLER_DEPLOYMENT: &str = "core.gardener.cloud/controllerdeployment";
    /// Of an Etcd.
    pub const ETCD_DRUID: &str = "druid.gardener.cloud/etcd-druid";
    /// Of a ManagedResource.
    pub const RESOURCE_MANAGER: &str = "resources.gardener.cloud/gardener-resource-manager";
    /// Of an extension Infrastructure.
    pub const INFRASTRUCTURE: &str = "extensions.gardener.cloud/infrastructure";
    /// Of an extension ControlPlane.
    pub const CONTROL_PLANE: &str = "extensions.gardener.cloud/controlplane";
    /// Of an extension DNSRecord.
    pub const DNS_RECORD: &str = "extensions.gardener.cloud/dnsrecord";
    /// Of an extension BackupBucket.
    pub const BACKUP_BUCKET: &str = "extensions.gardener.cloud/backupbucket";
    /// Of an extension BackupEntry and its Secret.
    pub const BACKUP_ENTRY: &str = "extensions.gardener.cloud/backupentry";
    /// Of an extension Worker.
    pub const WORKER: &str = "extensions.gardener.cloud/worker";
    /// Of an extension Network.
    pub const NETWORK: &str = "extensions.gardener.cloud/network";
    /// Of an extension OperatingSystemConfig.
    pub const OPERATING_SYSTEM_CONFIG: &str = "extensions.gardener.cloud/operatingsystemconfigs";
    /// Of an extension ContainerRuntime.
    pub const CONTAINER_RUNTIME: &str = "extensions.gardener.cloud/containerruntime";
    /// Of an extension Bastion.
    pub const BASTION: &str = "extensions.gardener.cloud/bastion";
    /// Of an extension SelfHostedShootExposure.
    pub const SELF_HOSTED_SHOOT_EXPOSURE: &str = "extensions.gardener.cloud/selfhostedshootexposure";
    /// Of an extension SubnetIsolation.
    pub const SUBNET_ISOLATION: &str = "extensions.gardener.cloud/subnetisolation";
}

/// Types of conditions and constraints.
pub mod condition {
    /// Shoot: the API server answers.
    pub const API_SERVER_AVAILABLE: &str = "APIServerAvailable";
    /// Shoot: the processes of the control plane run.
    pub const CONTROL_PLANE_HEALTHY: &str = "ControlPlaneHealthy";
    /// Reason of that condition: etcd-main refuses writes, because alarm NOSPACE is raised.
    pub const ETCD_NO_SPACE: &str = "EtcdNoSpace";
    /// Reason of condition `Ready` of an Etcd: etcd refuses writes, because alarm NOSPACE is raised.
    pub const NO_SPACE: &str = "NoSpace";
    /// Shoot: the monitoring of the shoot runs.
    pub const OBSERVABILITY_COMPONENTS_HEALTHY: &str = "ObservabilityComponentsHealthy";
    /// Shoot: all nodes exist and are ready.
    pub const EVERY_NODE_READY: &str = "EveryNodeReady";
    /// Reason of that condition on a Worker: a Node of the shoot, or an instance of the cloud, has no
    /// Machine.
    pub const MACHINE_MISSING: &str = "MachineMissing";
    /// Reason of that condition on a Worker: all Nodes and instances have a Machine again.
    pub const MACHINES_COMPLETE: &str = "MachinesComplete";
    /// Shoot: the system components in the shoot run.
    pub const SYSTEM_COMPONENTS_HEALTHY: &str = "SystemComponentsHealthy";
    /// Shoot: the garden has all state that another seed would need for the shoot (R7-42).
    pub const SHOOT_STATE_UP_TO_DATE: &str = "ShootStateUpToDate";
    /// Reason of that condition: the ShootState was never written, so that no other seed could restore the
    /// shoot.
    pub const SHOOT_STATE_NEVER_SYNCED: &str = "ShootStateNeverSynced";
    /// Shoot constraint: the ShootState leaves out no state and no Secret of the shoot. Present only while
    /// `False`.
    pub const SHOOT_STATE_COMPLETE: &str = "ShootStateComplete";
    /// Shoot constraint and Etcd condition: no change that etcd acknowledged was lost with a volume. Present
    /// only while `False`: for 7 days after etcd was restored within an ownership epoch.
    pub const DATA_COMPLETE: &str = "DataComplete";
    /// Reason of that constraint and condition: the volume of etcd was lost or unusable, and etcd was
    /// restored from the backups.
    pub const VOLUME_LOST: &str = "VolumeLost";
    /// Shoot and Etcd: this seed is confirmed as the owner of the shoot.
    pub const OWNERSHIP_VERIFIED: &str = "OwnershipVerified";
    /// Reason of that condition: without a confirmation, etcd is served for longer than other seeds wait, or
    /// for ever.
    pub const OUTLASTS_FENCE: &str = "OutlastsFence";
    /// Reason of that condition of an Etcd: as `OUTLASTS_FENCE`, for any fence of the Seed: silence does not
    /// stop etcd, or the process was started with former settings.
    pub const OUTLASTS_ANY_FENCE: &str = "OutlastsAnyFence";
    /// Reason of that condition: no process that checks the owner has answered yet, so that waiting cannot
    /// fence any process.
    pub const NEVER_ANSWERED: &str = "NeverAnswered";
    /// Shoot: a flow has ended with the present owner terms, and no Deployment of a manager of machines or
    /// clouds runs without owner check. Actuators of providers are not covered: actuators check the owner if
    /// built with the library `extension`.
    pub const OWNER_CHECKS_COMPLETE: &str = "OwnerChecksComplete";
    /// Reason of that condition: no flow has ended with the present owner terms.
    pub const TERMS_NOT_APPLIED: &str = "TermsNotApplied";
    /// Reason of that condition: a manager of machines or of the cloud runs without owner check.
    pub const MANAGER_WITHOUT_OWNER_CHECK: &str = "ManagerWithoutOwnerCheck";
    /// Seed: all Seeds of the same zone ask the same servers for owner records.
    pub const OWNER_SERVERS_AGREE: &str = "OwnerServersAgree";
    /// Shoot: the requested zone is isolated, and no other zone is. Reason and message report the progress.
    pub const ZONE_ISOLATION: &str = "ZoneIsolation";
    /// Shoot: the result of the last dry run of a zone isolation. Always `True`, because the condition is no
    /// judgement.
    pub const ZONE_ISOLATION_DRY_RUN: &str = "ZoneIsolationDryRun";
    /// Reason of the conditions of a Shoot that do not hold, or cannot be checked, because a move has stopped
    /// parts of the control plane.
    pub const MOVING: &str = "Moving";
    /// Shoot constraint: the move that is wanted may begin.
    pub const READY_FOR_MIGRATION: &str = "ReadyForMigration";
    /// Reason of that constraint: the source has not reconciled the present specification with success yet.
    pub const SHOOT_NOT_RECONCILED: &str = "ShootNotReconciled";
    /// Shoot constraint: the garden could write the last takeover. Present only while `False`: until a
    /// takeover succeeds, or until no move is wanted.
    pub const TAKEOVER_POSSIBLE: &str = "TakeoverPossible";
    /// Reason of the constraints `ReadyForMigration` and `TakeoverPossible`: the API server refuses the write
    /// of the move or takeover for the size of the Shoot.
    pub const SHOOT_TOO_LARGE: &str = "ShootTooLarge";
    /// Shoot constraint: whether a move to the seed of annotation `migration.gardener.cloud/dry-run` could
    /// have begun when the annotation was answered.
    pub const MIGRATION_DRY_RUN: &str = "MigrationDryRun";
    /// Shoot, in `status.liveMigration.conditions`: the seed of a preparation has prepared all parts of the
    /// control plane. Reason and message report the missing parts.
    pub const PREPARED: &str = "Prepared";
    /// Shoot constraint: new reconciliations can begin. `False` while a pause holds reconciliations back, and
    /// absent otherwise.
    pub const RECONCILIATION_POSSIBLE: &str = "ReconciliationPossible";
    /// Reason of that constraint: the Shoot has the annotation `shoot.gardener.cloud/ignore`.
    pub const SHOOT_IGNORED: &str = "ShootIgnored";
    /// Reason of that constraint: the Seed has the annotation
    /// `shoot.gardener.cloud/emergency-stop-reconciliations`.
    pub const SEED_EMERGENCY_STOP: &str = "SeedEmergencyStop";
    /// Shoot constraint: no admission webhook in the shoot can stop a wake-up or the start on another seed.
    pub const HIBERNATION_POSSIBLE: &str = "HibernationPossible";
    /// Reason of that constraint: a webhook matches objects that the control plane or the nodes write, and
    /// can stop these writes.
    pub const PROBLEMATIC_WEBHOOKS: &str = "ProblematicWebhooks";
    /// Reason of that constraint: a webhook can stop renewals of Leases, so that no controller leads and no
    /// node is ready.
    pub const WEBHOOKS_ON_LEASES: &str = "WebhooksOnLeases";
    /// Seed: the gardenlet is alive.
    pub const GARDENLET_READY: &str = "GardenletReady";
    /// Seed: the system components in the seed run.
    pub const SEED_SYSTEM_COMPONENTS_HEALTHY: &str = "SeedSystemComponentsHealthy";
    /// Seed: the edge of the seed has an address, to which the names of shoots lead.
    pub const EDGE_ADDRESS_READY: &str = "EdgeAddressReady";
    /// Seed: the bucket exists.
    pub const BACKUP_BUCKETS_READY: &str = "BackupBucketsReady";
    /// Seed constraint: no Shoot names the seed in `spec.seedName` or `status.seedName`, so that fields may
    /// change that shoots depend on.
    pub const WITHOUT_SHOOTS: &str = "WithoutShoots";
    /// Seed: the extensions run.
    pub const EXTENSIONS_READY: &str = "ExtensionsReady";
    /// Seed: the shoots are not reconciled for now.
    pub const EMERGENCY_STOP_SHOOT_RECONCILIATIONS: &str = "EmergencyStopShootReconciliations";
}

/// Namespace of the Leases by which seeds show that they are alive. Each seed has a Lease with the name of
/// the Seed.
pub const SEED_LEASE_NAMESPACE: &str = "gardener-system-seed-lease";
/// Name of the Lease that a running extension renews in the namespace of the extension in the seed.
pub const EXTENSION_HEARTBEAT: &str = "gardener-extension-heartbeat";
/// Namespace of the landscape's own objects, in the garden and in seeds.
pub const GARDEN_NAMESPACE: &str = "garden";
