//! A garden is there when each of its policies has refused something.

use anyhow::Result;
use api::{
    constants::LEFTOVER_NAMESPACES,
    gardencore::{
        BackupBucket, BackupEntry, InternalSecret, InternalSecretFields, Project, SecretBinding, Seed, Shoot,
        ShootState,
    },
};
use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, Namespace, ResourceQuota, Secret},
        events::v1::Event,
        rbac::v1::{ClusterRole, Role},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, api::DeleteParams};
use serde_json::json;
use testkit::eventually;

use super::{
    Garden, IN_DELETION, IN_FORCE_WITHIN, NAMESPACE, WITH_A_SHOOT, WITH_BACKUPS, attempt::in_force,
    bounded_profile, bucket, config_map, entry, event_in, project_of, secret_binding, seed, seed_namespace,
    shoot_with_pools, try_apply, try_create, try_delete, try_patch, try_patch_status,
};

impl Garden {
    /// Every policy has refused something that only it refuses.
    pub(super) async fn wait_until_in_force(&self) -> Result<()> {
        self.shoot("probe", "seed-a", Some("seed-a"), ("Migrate", "Processing"))
            .await;
        self.shoot("young-probe", "seed-a", None, ("", "")).await;
        self.status(
            &self.admin::<Shoot>(NAMESPACE),
            "probe",
            // Called off in the one phase in which nobody may name another seed.
            json!({"technicalID": "t", "uid": "u", "ownership": {"epoch": 1, "phase": "Sealing"}}),
        )
        .await;
        let shoots: Api<Shoot> = self.admin(NAMESPACE);
        let entries: Api<BackupEntry> = self.admin(NAMESPACE);
        // A policy about entries looks at other entries. Until the API server has found and read that kind it
        // refuses everybody.
        eventually("a BackupEntry can be made", IN_FORCE_WITHIN, || {
            self.apply(&entries, "t--u", entry("t--u", "seed-a", "bucket-a"))
        })
        .await?;
        let theirs: Api<Seed> = Api::all(self.seed_b.clone());
        let their_shoots: Api<Shoot> = Api::namespaced(self.seed_b.clone(), NAMESPACE);
        let their_entries: Api<BackupEntry> = Api::namespaced(self.seed_b.clone(), NAMESPACE);
        let to_b = json!({"spec": {"seedName": "seed-b"}});
        let operation = json!({"metadata": {"annotations": {"gardener.cloud/operation": "x"}}});
        let force =
            json!({"metadata": {"annotations": {"confirmation.gardener.cloud/force-deletion": "true"}}});
        let label = json!({"metadata": {"labels": {"x": "y"}}});
        in_force("shoot-seed-name", || try_patch(&shoots, "probe", &to_b)).await?;
        in_force("shoot-seed-name-before-creation", || {
            try_patch(&shoots, "young-probe", &to_b)
        })
        .await?;
        let pool = json!([{"name": "a", "machine": {"type": "x"}, "minimum": 0, "maximum": 2}]);
        self.bring(&bounded_profile(1)).await?;
        in_force("shoot-nodes", || {
            try_apply(&shoots, "many", shoot_with_pools("many", "bounded", &pool))
        })
        .await?;
        let hour = json!({"spec": {"hibernation": {"schedules": [{"start": "20:00"}]}}});
        let mut unoffered = shoot_with_pools("unoffered", "bounded", &json!([]));
        unoffered["spec"]["kubernetes"]["version"] = json!("1.34.6");
        in_force("shoot-version", || {
            try_apply(&shoots, "unoffered", unoffered.clone())
        })
        .await?;
        in_force("shoot-hibernation", || try_patch(&shoots, "probe", &hour)).await?;
        let zone = json!({"metadata": {"annotations": {"shoot.gardener.cloud/isolated-zone": "z"}}});
        in_force("shoot-zone-isolation", || try_patch(&shoots, "probe", &zone)).await?;
        in_force("shoot-operation", || try_patch(&shoots, "probe", &operation)).await?;
        let takeover = json!({"metadata": {"annotations": {"shoot.gardener.cloud/force-restore": "x"}}});
        in_force("shoot-force-restore", || try_patch(&shoots, "probe", &takeover)).await?;
        let loss = json!({"metadata": {"annotations": {"shoot.gardener.cloud/accept-loss": "x"}}});
        in_force("shoot-accept-loss", || try_patch(&shoots, "probe", &loss)).await?;
        let renewal = json!({"metadata": {"annotations": {"shoot.gardener.cloud/renew-ownership": "x"}}});
        in_force("shoot-renew-ownership", || try_patch(&shoots, "probe", &renewal)).await?;
        in_force("shoot-force-deletion", || try_patch(&shoots, "probe", &force)).await?;
        let long = json!({"metadata": {"annotations": {"x": "y".repeat(70_000)}}});
        in_force("shoot-size", || try_patch(&shoots, "probe", &long)).await?;
        in_force("shoot-deletion", || try_delete(&shoots, "probe")).await?;
        in_force("backupentry-deletion", || try_delete(&entries, "t--u")).await?;
        in_force("gardenlet-seed", || try_patch(&theirs, "seed-a", &label)).await?;
        in_force("gardenlet-shoot", || try_patch(&their_shoots, "probe", &label)).await?;
        in_force("gardenlet-backupentry", || {
            try_patch(&their_entries, "t--u", &label)
        })
        .await?;
        let large = json!({"metadata": {"annotations": {LEFTOVER_NAMESPACES: "y".repeat(70_000)}}});
        in_force("gardenlet-size", || try_patch(&theirs, "seed-b", &large)).await?;
        let elsewhere = json!({"spec": {"backup": {"provider": "local",
            "credentialsRef": {"kind": "Secret", "namespace": "garden", "name": "x"}}}});
        in_force("seed-credentials", || try_patch(&theirs, "seed-b", &elsewhere)).await?;
        self.wait_for_policy_of_registrations().await?;
        self.wait_for_policies_of_backups().await?;
        self.wait_for_policies_of_users().await?;
        self.wait_for_policies_of_objects().await
    }

    async fn wait_for_policy_of_registrations(&self) -> Result<()> {
        let gone = "gardener.cloud:system:seed:seed-gone";
        let gone = self.client(gone, &["gardener.cloud:system:seeds"]).await;
        let seeds: Api<Seed> = Api::all(gone);
        let labels = json!({"gardener.cloud/seed-registration": "refused"});
        let metadata = json!({"name": "seed-seed-gone", "labels": labels});
        self.bring(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
            .await?;
        in_force("gardenlet-registration", || {
            try_apply(&seeds, "seed-gone", seed("seed-gone"))
        })
        .await
    }

    /// The policies about the writes of a user.
    async fn wait_for_policies_of_users(&self) -> Result<()> {
        let editor: Api<Shoot> = Api::namespaced(self.editor_of_shoots(NAMESPACE).await?, NAMESPACE);
        let unreadable = json!({"spec": {"dns": {"providers": [{"type": "local", "secretName": "x"}]}}});
        in_force("shoot-dns-credentials", || {
            try_patch(&editor, "probe", &unreadable)
        })
        .await?;
        let dry_run = json!({"metadata": {"annotations": {"migration.gardener.cloud/dry-run": "seed-b"}}});
        in_force("shoot-dry-run", || try_patch(&editor, "probe", &dry_run)).await?;
        let prepare = json!({"metadata": {"annotations": {"migration.gardener.cloud/prepare": "seed-b"}}});
        in_force("shoot-preparation", || try_patch(&editor, "probe", &prepare)).await?;
        let domain = json!({"spec": {"dns": {"domain": "probe.customer.test"}}});
        in_force("shoot-domain-change", || try_patch(&editor, "probe", &domain)).await?;
        let shoots: Api<Shoot> = self.admin(NAMESPACE);
        self.finalizer(&shoots, "probe").await;
        let released = json!({"metadata": {"finalizers": null}});
        in_force("shoot-finalizer", || try_patch(&editor, "probe", &released)).await?;
        self.patch(&shoots, "probe", released).await?;
        let entry = json!({"manager": "m", "operation": "Apply", "apiVersion": "core.gardener.cloud/v1beta1",
            "time": "9999-12-31T23:59:59Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}});
        let late = json!({"metadata": {"managedFields": [entry]}});
        in_force("readable-times", || try_patch(&editor, "probe", &late)).await
    }

    /// The policies about objects for backups: each attempt is refused by one of these policies only.
    async fn wait_for_policies_of_backups(&self) -> Result<()> {
        let made: Api<BackupBucket> = Api::all(self.administrator());
        self.apply(&made, "probe", bucket("probe", "seed-a")).await?;
        let buckets: Api<BackupBucket> = Api::all(self.seed_b.clone());
        let label = json!({"metadata": {"labels": {"x": "y"}}});
        in_force("gardenlet-backupbucket", || try_patch(&buckets, "probe", &label)).await?;
        let own: Api<BackupBucket> = Api::all(self.seed_a.clone());
        in_force("gardenlet-backupbucket-deletion", || try_delete(&own, "probe")).await?;
        let editor = self.editor_of_backups(NAMESPACE).await?;
        let entries: Api<BackupEntry> = Api::namespaced(editor, NAMESPACE);
        let to_b = json!({"spec": {"seedName": "seed-b"}});
        in_force("backupentry-spec", || try_patch(&entries, "t--u", &to_b)).await
    }

    /// A policy is asked only about what a role allows: gardenlets may write what stands for nobody's.
    async fn allow_probes(&self) -> Result<()> {
        let core = "core.gardener.cloud";
        let rules = json!([
            {"apiGroups": [core], "resources": ["shootstates"], "resourceNames": ["unowned"], "verbs": ["patch"]},
            {"apiGroups": [core], "resources": ["internalsecrets"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["x", "probe.kubeconfig"], "verbs": ["patch"]},
        ]);
        self.grant(
            "probes",
            NAMESPACE,
            &rules,
            ("Group", "gardener.cloud:system:seeds"),
        )
        .await
    }

    /// The same for what garden-controller-manager makes and gardenlets fill.
    async fn wait_for_policies_of_objects(&self) -> Result<()> {
        self.allow_probes().await?;
        let label = json!({"metadata": {"labels": {"x": "y"}}});
        for name in ["x", "probe.kubeconfig"] {
            self.secret(name, "Opaque").await;
        }
        self.state("unowned").await;
        let secrets: Api<Secret> = Api::namespaced(self.seed_b.clone(), NAMESPACE);
        let states: Api<ShootState> = Api::namespaced(self.seed_b.clone(), NAMESPACE);
        let shoots: Api<Shoot> = Api::namespaced(self.seed_a.clone(), NAMESPACE);
        let made: Api<Secret> = Api::namespaced(self.manager.clone(), NAMESPACE);
        let projects: Api<Project> = Api::all(self.administrator());
        let data = json!({"data": {"kubeconfig": "eA=="}});
        in_force("gardenlet-secret", || try_patch(&secrets, "x", &data)).await?;
        in_force("gardenlet-shoot-objects", || {
            try_patch(&secrets, "probe.kubeconfig", &data)
        })
        .await?;
        in_force("gardenlet-shootstate", || try_patch(&states, "unowned", &label)).await?;
        let chunks: Api<InternalSecret> = Api::namespaced(self.seed_b.clone(), NAMESPACE);
        in_force("gardenlet-internalsecret", || {
            try_create(&chunks, InternalSecret::new("x", InternalSecretFields::default()))
        })
        .await?;
        let reports: Api<Event> = Api::namespaced(self.seed_b.clone(), "default");
        let mut report = event_in("default", "seed-b");
        report.metadata.annotations = Some([("x".to_owned(), "y".repeat(20_000))].into());
        in_force("gardenlet-event", || try_create(&reports, report.clone())).await?;
        self.wait_for_policies_of_reports(&reports).await?;
        self.wait_for_policies_of_manager().await?;
        self.wait_for_policies_of_members().await?;
        let reader = self.writer_of_bindings(NAMESPACE).await?;
        let foreign: Api<SecretBinding> = Api::namespaced(reader, NAMESPACE);
        in_force("binding-credentials", || {
            try_create(&foreign, secret_binding("x", "unreadable", "x"))
        })
        .await?;
        let bindings: Api<SecretBinding> = self.admin(NAMESPACE);
        let mut large = secret_binding("x", "", "x");
        large.metadata.annotations = Some([("x".to_owned(), "y".repeat(10_000))].into());
        in_force("binding-size", || try_create(&bindings, large.clone())).await?;
        in_force("shoot-ownership", || {
            try_patch_status(&shoots, "probe", json!({"uid": "another"}))
        })
        .await?;
        in_force("garden-controller-manager-secret", || {
            let mut secret = Secret::default();
            secret.metadata.name = Some("z".into());
            try_create(&made, secret)
        })
        .await?;
        let written: Api<Shoot> = Api::namespaced(self.manager.clone(), NAMESPACE);
        in_force("garden-controller-manager-shoot", || {
            try_patch(&written, "probe", &label)
        })
        .await?;
        in_force("project-namespace", || {
            try_apply(&projects, "probe", project_of("probe", Some(NAMESPACE)))
        })
        .await?;
        self.wait_for_policies_of_deletions().await
    }

    /// Policies about objects of Kubernetes' own kinds in the namespace of a project.
    async fn wait_for_policies_of_members(&self) -> Result<()> {
        let members: Api<Role> = Api::namespaced(self.member(NAMESPACE).await?, NAMESPACE);
        in_force("seed-rights", || {
            let mut role = Role::default();
            role.metadata.name = Some("gardener.cloud:seed:x".into());
            try_create(&members, role)
        })
        .await?;
        in_force("project-finalizer", || {
            let mut role = Role::default();
            role.metadata.name = Some("lasting".into());
            role.metadata.finalizers = Some(vec!["example.org/kept".to_owned()]);
            try_create(&members, role)
        })
        .await?;
        let configs: Api<ConfigMap> = Api::namespaced(self.member(NAMESPACE).await?, NAMESPACE);
        in_force("project-object-size", || {
            try_create(&configs, config_map("large", 70_000))
        })
        .await?;
        let reports: Api<Event> = Api::namespaced(self.writer_of_events(NAMESPACE).await?, NAMESPACE);
        in_force("project-event", || {
            try_create(&reports, event_in(NAMESPACE, "seed-a"))
        })
        .await
    }

    /// Policies about Events of a BackupBucket or a ControllerInstallation that the seed does not have.
    async fn wait_for_policies_of_reports(&self, reports: &Api<Event>) -> Result<()> {
        let core = "core.gardener.cloud/v1beta1";
        let spec = json!({"seedRef": {"name": "seed-a"}, "registrationRef": {"name": "probe"}});
        let metadata = json!({"name": "probe"});
        self.bring(
            &json!({"apiVersion": core, "kind": "ControllerInstallation", "metadata": metadata, "spec": spec}),
        )
        .await?;
        for (policy, kind) in [
            ("gardenlet-event-bucket", "BackupBucket"),
            ("gardenlet-event-installation", "ControllerInstallation"),
        ] {
            let mut report = event_in("default", "seed-b");
            let regarding = json!({"apiVersion": core, "kind": kind, "name": "probe"});
            report.regarding = Some(serde_json::from_value(regarding)?);
            in_force(policy, || try_create(reports, report.clone())).await?;
        }
        Ok(())
    }

    /// Policies that bound garden-controller-manager.
    async fn wait_for_policies_of_manager(&self) -> Result<()> {
        let roles: Api<ClusterRole> = Api::all(self.manager.clone());
        in_force("garden-controller-manager-role", || {
            let mut role = ClusterRole::default();
            role.metadata.name = Some("x".into());
            try_create(&roles, role)
        })
        .await?;
        let namespaces: Api<Namespace> = Api::all(self.manager.clone());
        in_force("garden-controller-manager-namespace", || {
            try_delete(&namespaces, "garden")
        })
        .await?;
        let projects: Api<Project> = Api::all(self.manager.clone());
        let owner = json!({"apiVersion": "v1", "kind": "Namespace", "name": "x", "uid": "x"});
        let body = json!({"metadata": {"ownerReferences": [owner]}});
        in_force("garden-controller-manager-owner", || {
            try_patch(&projects, "dev", &body)
        })
        .await?;
        let quotas: Api<ResourceQuota> = Api::namespaced(self.manager.clone(), "garden");
        in_force("garden-controller-manager-quota", || {
            let mut quota = ResourceQuota::default();
            quota.metadata.name = Some("gardener".into());
            try_create(&quotas, quota)
        })
        .await?;
        let metadata = json!({"name": "probe.state-1-0", "namespace": NAMESPACE});
        let chunk = json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "InternalSecret", "metadata": metadata});
        self.bring(&chunk).await?;
        let chunks: Api<InternalSecret> = Api::namespaced(self.manager.clone(), NAMESPACE);
        in_force("garden-controller-manager-internalsecret", || {
            try_delete(&chunks, "probe.state-1-0")
        })
        .await?;
        self.entry("unprepared", "seed-a", "bucket-a").await;
        let entries: Api<BackupEntry> = Api::namespaced(self.manager.clone(), NAMESPACE);
        in_force("garden-controller-manager-backupentry", || {
            try_delete(&entries, "unprepared")
        })
        .await
    }

    /// The policies that ask for a confirmation. Of two policies that refuse, the API server names only one.
    async fn wait_for_policies_of_deletions(&self) -> Result<()> {
        for name in [WITH_A_SHOOT, WITH_BACKUPS] {
            let labels = json!({"project.gardener.cloud/name": name, "gardener.cloud/role": "project"});
            let metadata = json!({"name": name, "labels": labels});
            self.bring(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
                .await?;
        }
        self.shoot_in(WITH_A_SHOOT, "only", "seed-a", None, ("", ""))
            .await;
        let entries: Api<BackupEntry> = self.admin(WITH_BACKUPS);
        self.apply(&entries, "only", entry("only", "seed-a", "bucket-a"))
            .await?;
        let namespaces: Api<Namespace> = Api::all(self.administrator());
        in_force("namespace-deletion-shoots", || {
            try_delete(&namespaces, WITH_A_SHOOT)
        })
        .await?;
        in_force("namespace-deletion-backupentries", || {
            try_delete(&namespaces, WITH_BACKUPS)
        })
        .await?;
        let mut withdrawn = seed_namespace("probe");
        withdrawn["metadata"]["labels"] = json!({"gardener.cloud/seed-access": "withdrawn"});
        self.bring(&withdrawn).await?;
        in_force("namespace-deletion-withdrawn", || {
            try_delete(&namespaces, "seed-probe")
        })
        .await?;
        self.wait_for_policy_of_projects_in_deletion().await?;
        let definitions: Api<CustomResourceDefinition> = Api::all(self.administrator());
        in_force("garden-definition-deletion", || {
            try_delete(&definitions, "shoots.core.gardener.cloud")
        })
        .await
    }

    /// A Project in deletion that a finalizer keeps, with its namespace.
    async fn wait_for_policy_of_projects_in_deletion(&self) -> Result<()> {
        let labels = json!({"project.gardener.cloud/name": "departing", "gardener.cloud/role": "project"});
        let metadata = json!({"name": IN_DELETION, "labels": labels});
        self.bring(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
            .await?;
        let mut departing = project_of("departing", Some(IN_DELETION));
        departing["metadata"]["finalizers"] = json!(["example.org/kept"]);
        self.bring(&departing).await?;
        let projects: Api<Project> = Api::all(self.administrator());
        projects.delete("departing", &DeleteParams::default()).await?;
        let shoots: Api<Shoot> = self.admin(IN_DELETION);
        let late = shoot_with_pools("late", "local", &json!([]));
        in_force("shoot-project", || try_apply(&shoots, "late", late.clone())).await
    }
}
