//! Managers of a third party, with a table of their author.

use std::fs;

use rstest::rstest;

use crate::{LeaderMigrationConfiguration, Manager, ManagerTable, Migration, kubernetes, print_if_asked};

/// A manager with a controller `job`: the name is also a former name in Kubernetes.
const BATCH: Manager = Manager {
    component: "batch",
    controllers: &["job", "job-controller", "queue"],
    guests: &[],
};

/// A manager that can take `queue` over.
const STREAM: Manager = Manager {
    component: "stream",
    controllers: &["topic"],
    guests: &["queue"],
};

/// The author's table: both managers, beside the managers of Kubernetes.
const TABLE: ManagerTable = ManagerTable {
    managers: &[BATCH, STREAM, kubernetes::KUBE_CONTROLLER_MANAGER],
    aliases: &[kubernetes::ALIASES, &[("line", "queue")]],
    locks: &[("stream-main", "stream")],
};

fn file(lock: &str, names: &[&str]) -> String {
    let entries: Vec<_> = names
        .iter()
        .map(|name| format!("- {{name: {name}, component: '*'}}\n"))
        .collect();
    format!(
        "apiVersion: controllermanager.config.k8s.io/v1\nkind: LeaderMigrationConfiguration\n\
         leaderName: {lock}\ncontrollerLeaders:\n{}",
        entries.concat()
    )
}

fn digest(manager: Manager, table: ManagerTable, names: &[&str]) -> String {
    let migration = Migration {
        config: LeaderMigrationConfiguration::parse(&file("shared", names), "m.yaml", &table).unwrap(),
        manager,
        table,
        origin: "m.yaml".to_owned(),
    };
    migration.digest()
}

/// The output of `--print-leader-migration` with a file that lists these controllers.
fn printed(manager: &Manager, table: &ManagerTable, names: &[&str]) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.yaml");
    fs::write(&path, file("shared", names)).unwrap();
    let config = format!("--leader-migration-config={}", path.display());
    let args = [
        manager.component,
        "--print-leader-migration",
        "--enable-leader-migration",
        &config,
    ];
    print_if_asked(args.map(Into::into), manager, table)
        .unwrap()
        .map_err(|error| error.to_string())
}

#[test]
fn a_name_of_a_controller_is_never_rewritten() {
    assert_eq!(TABLE.present_name("job"), "job");
    assert_eq!(TABLE.present_name("cronjob"), "cronjob-controller");
    assert_eq!(TABLE.present_name("line"), "queue");
    assert_eq!(
        printed(&BATCH, &TABLE, &["job"]).unwrap(),
        "job migrated\njob-controller main\nqueue main\n"
    );
    assert_eq!(
        printed(&BATCH, &TABLE, &["job-controller", "job", "line"]).unwrap(),
        "job migrated\njob-controller migrated\nqueue migrated\n"
    );
    let of_job = digest(BATCH, TABLE, &["job"]);
    assert_ne!(of_job, digest(BATCH, TABLE, &["job-controller"]));
    assert_eq!(of_job, digest(STREAM, TABLE, &["job"]));
}

/// The author passes the table of Kubernetes, and the manager is not in the table.
#[test]
fn a_name_of_a_manager_outside_the_table_is_never_rewritten() {
    let printed = printed(&BATCH, &kubernetes::TABLE, &["job", "job-controller"]).unwrap();
    assert_eq!(printed, "job migrated\njob-controller migrated\nqueue main\n");
}

/// Without aliases every name stands for itself.
#[test]
fn names_of_kubernetes_have_no_meaning_in_an_empty_table() {
    let with = |names: &[&str]| digest(BATCH, ManagerTable::EMPTY, names);
    assert_ne!(with(&["route"]), with(&["node-route-controller"]));
}

#[test]
fn a_guest_of_the_authors_table_rests_until_the_file_names_the_guest() {
    assert_eq!(
        printed(&STREAM, &TABLE, &["queue"]).unwrap(),
        "topic main\nqueue migrated\n"
    );
    let printed = printed(&STREAM, &TABLE, &["topic"]).unwrap();
    assert_eq!(printed, "topic migrated\nqueue unowned\n");
}

#[test]
fn a_controller_of_no_manager_in_the_table_causes_a_warning() {
    let printed = printed(&STREAM, &TABLE, &["queue", "gardenlet"]).unwrap();
    let warning = "controllerLeaders[1].name: \"gardenlet\" matches no controller of any known manager";
    assert!(printed.contains(warning), "{printed}");
}

#[rstest]
#[case("batch", "batch")]
#[case("stream", "stream")]
#[case("stream-main", "stream")]
#[case("kube-controller-manager", "kube-controller-manager")]
fn a_main_lock_of_the_table_is_no_migration_lock(#[case] lock: &str, #[case] owner: &str) {
    let text = file(lock, &["queue"]);
    let refused = LeaderMigrationConfiguration::parse(&text, "m.yaml", &TABLE).unwrap_err();
    let words = format!("m.yaml:3: leaderName: {lock:?} is the name of {owner}'s main lock");
    assert!(refused.to_string().starts_with(&words), "{refused}");
    assert!(LeaderMigrationConfiguration::parse(&text, "m.yaml", &ManagerTable::EMPTY).is_ok());
}
