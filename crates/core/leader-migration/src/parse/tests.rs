//! Accepted files, and the messages for refused files.
#![allow(clippy::unwrap_used)]
// expect-test writes the hashes, needed or not.
#![allow(clippy::needless_raw_string_hashes)]

use expect_test::{Expect, expect};
use rstest::rstest;

use crate::{
    ANY_COMPONENT, LeaderMigrationConfiguration, Manager, ManagerTable, ResourceLock, kubernetes,
    table::KnownNames,
};

/// Kubernetes' managers, a further manager, and a main lock with a name that is no component.
const TABLE: ManagerTable = ManagerTable {
    managers: &[
        Manager {
            component: "gardenlet",
            controllers: &["backup-bucket", "backup-entry"],
            guests: &[],
        },
        kubernetes::KUBE_CONTROLLER_MANAGER,
        kubernetes::CLOUD_CONTROLLER_MANAGER,
    ],
    aliases: &[kubernetes::ALIASES],
    locks: &[("door", "doorkeeper")],
};

fn parse(text: &str) -> Result<LeaderMigrationConfiguration, String> {
    LeaderMigrationConfiguration::parse(text, "m.yaml", &TABLE).map_err(|error| error.to_string())
}

/// Reads as a manager with this main lock.
fn parse_for(text: &str, main_lock: &str) -> Result<LeaderMigrationConfiguration, String> {
    let names = KnownNames {
        table: TABLE,
        own: None,
    };
    LeaderMigrationConfiguration::parse_beside(main_lock, &names, text, "m.yaml")
        .map_err(|error| error.to_string())
}

/// A document of this version; `rest` begins on line 3.
fn document(version: &str, rest: &str) -> String {
    format!(
        "kind: LeaderMigrationConfiguration\napiVersion: controllermanager.config.k8s.io/{version}\n{rest}"
    )
}

const NAME: &str = "leaderName: shared\n";
const ENTRY: &str = "controllerLeaders:\n- {name: backup-bucket, component: \"*\"}\n";

#[rstest]
#[case("v1alpha1", "")]
#[case("v1alpha1", "resourceLock: leases\n")]
#[case("v1alpha1", "resourceLock: ''\n")]
#[case("v1alpha1", "resourceLock:\n")]
#[case("v1beta1", "")]
#[case("v1beta1", "resourceLock: \"leases\"\n")]
#[case("v1", "")]
fn every_version_is_read(#[case] version: &str, #[case] lock: &str) {
    let config = parse(&document(version, &format!("{NAME}{lock}{ENTRY}"))).unwrap();
    assert_eq!(config.leader_name, "shared");
    assert_eq!(config.resource_lock, ResourceLock::Leases);
    let [entry] = config.controller_leaders.as_slice() else {
        unreachable!("{config:?}")
    };
    assert_eq!(
        (entry.name.as_str(), entry.component.as_str()),
        ("backup-bucket", ANY_COMPONENT)
    );
    assert_eq!(entry.line, Some(if lock.is_empty() { 5 } else { 6 }));
}

#[rstest]
#[case::json(
    r#"{"apiVersion": "controllermanager.config.k8s.io/v1", "kind": "LeaderMigrationConfiguration",
 "leaderName": "shared", "controllerLeaders": [{"name": "backup-bucket", "component": "*"}]}"#
)]
#[case::json_with_tabs(
    "{\n\t\"apiVersion\": \"controllermanager.config.k8s.io/v1\",\n\t\"kind\": \
 \"LeaderMigrationConfiguration\",\n\t\"leaderName\": \"shared\",\n\t\"controllerLeaders\": [\n\t\t{\"name\": \
 \"backup-bucket\", \"component\": \"*\"}\n\t]\n}\n"
)]
#[case::begin_and_end_of_document(
    "# ours\n---\napiVersion: controllermanager.config.k8s.io/v1\nkind: \
 LeaderMigrationConfiguration\nleaderName: shared\ncontrollerLeaders: [{name: backup-bucket, component: '*'}]\n...\n"
)]
#[case::yaml_anchors(
    "apiVersion: controllermanager.config.k8s.io/v1\nkind: LeaderMigrationConfiguration\nleaderName: \
 shared\ncontrollerLeaders: [{name: backup-bucket, component: &who provider-local}, {name: backup-entry, component: \
 *who}]\n"
)]
#[case::windows(
    "\u{feff}apiVersion: controllermanager.config.k8s.io/v1\r\nkind: LeaderMigrationConfiguration\r\nleaderName: \
 shared\r\ncontrollerLeaders:\r\n- name: backup-bucket\r\n  component: '*'\r\n"
)]
#[case::tags_of_yaml_itself(
    "apiVersion: controllermanager.config.k8s.io/v1\nkind: LeaderMigrationConfiguration\nleaderName: !!str \
 17\ncontrollerLeaders: !!seq [{name: backup-bucket, component: \"*\"}]\n"
)]
fn every_form_of_yaml_is_read(#[case] text: &str) {
    assert_eq!(parse(text).unwrap().controller_leaders[0].name, "backup-bucket");
}

/// Compares the messages of all texts.
fn refused(cases: &[(&str, &str)], expected: &Expect) {
    let mut all = String::new();
    for (name, text) in cases {
        let error = parse(text).expect_err(name);
        all.extend([name, ":\n", &error, "\n"]);
    }
    expected.assert_eq(&all);
}

#[test]
fn what_is_no_such_document() {
    refused(
        &[
            ("no YAML", "kind: [\n"),
            ("tab", "kind:\n\t- a\n"),
            ("empty", ""),
            ("only a comment", "# nothing\n"),
            ("a list", "- a\n"),
            ("text", "hello\n"),
            ("two documents", "# ours\n---\nkind: a\n--- # and\nkind: b\n"),
            ("two documents, the second one empty", "kind: a\n---\n"),
            ("no YAML behind the document", "kind: a\n...\n@\n"),
            ("a field twice", "kind: a\nkind: b\n"),
            (
                "a field of an entry twice",
                "kind: a\ncontrollerLeaders:\n- name: a\n  name: b\n",
            ),
            ("an alias of nothing", "kind: *other\n"),
            ("something else", "a: 1\n"),
            (
                "another kind",
                "kind: LeaderElectionConfiguration\napiVersion: controllermanager.config.k8s.io/v1\n",
            ),
            (
                "another version",
                "kind: LeaderMigrationConfiguration\napiVersion: controllermanager.config.k8s.io/v2\n",
            ),
            (
                "no group",
                "kind: LeaderMigrationConfiguration\napiVersion: v1alpha1\n",
            ),
            ("kind and version are no text", "kind: 1\napiVersion: [v1]\n"),
        ],
        &expect![[r#"
            no YAML:
            m.yaml:1: is not valid YAML: unclosed bracket '[' at line 1, column 7
            tab:
            m.yaml:2: is not valid YAML: tabs disallowed within this context (block indentation) at line 2, column 2
            empty:
            m.yaml: is empty: write a LeaderMigrationConfiguration, or remove --leader-migration-config to use the default configuration
            only a comment:
            m.yaml: is empty: write a LeaderMigrationConfiguration, or remove --leader-migration-config to use the default configuration
            a list:
            m.yaml:1: is a list, not a mapping with kind: LeaderMigrationConfiguration
            text:
            m.yaml:1: is text, not a mapping with kind: LeaderMigrationConfiguration
            two documents:
            m.yaml:5: a second YAML document begins here: give each manager one file with one LeaderMigrationConfiguration
            two documents, the second one empty:
            m.yaml:2: a second YAML document begins here: give each manager one file with one LeaderMigrationConfiguration
            no YAML behind the document:
            m.yaml:3: is not valid YAML: unexpected character: `@' at line 3, column 1
            a field twice:
            m.yaml:2: the field "kind" is here for the second time: keep one
            a field of an entry twice:
            m.yaml:4: the field "name" is here for the second time: keep one
            an alias of nothing:
            m.yaml:1: a value that begins with * is a YAML alias, and what it stands for is not defined: put the value in quotes
            something else:
            m.yaml:1: kind: is missing: write LeaderMigrationConfiguration
            m.yaml:1: apiVersion: is missing: write controllermanager.config.k8s.io/v1 (or /v1beta1, /v1alpha1)
            another kind:
            m.yaml:1: kind: is "LeaderElectionConfiguration": this file must be of kind LeaderMigrationConfiguration
            another version:
            m.yaml:2: apiVersion: "controllermanager.config.k8s.io/v2" is not known: write controllermanager.config.k8s.io/v1 (or /v1beta1, /v1alpha1)
            no group:
            m.yaml:2: apiVersion: "v1alpha1" is not known: write controllermanager.config.k8s.io/v1 (or /v1beta1, /v1alpha1)
            kind and version are no text:
            m.yaml:1: kind: is a number, not text: put it in quotes, or write LeaderMigrationConfiguration
            m.yaml:2: apiVersion: is a list, not text: write controllermanager.config.k8s.io/v1 (or /v1beta1, /v1alpha1)
        "#]],
    );
}

#[test]
fn the_lock() {
    let rest = "controllerLeaders: [{name: a, component: b}]\n";
    let v1 = |name: &str| document("v1", &format!("{rest}{name}"));
    refused(
        &[
            ("no name", &v1("")),
            ("an empty name", &v1("leaderName: ''\n")),
            ("no name of an object", &v1("leaderName: Shared_Lock\n")),
            (
                "too long a name",
                &v1(&format!("leaderName: {}\n", "a".repeat(254))),
            ),
            ("the main lock of a manager", &v1("leaderName: gardenlet\n")),
            ("a main lock with a separate name", &v1("leaderName: door\n")),
            ("a number", &v1("leaderName: 1.20\n")),
            ("no number", &v1("leaderName: .inf\n")),
            ("what is true to Kubernetes", &v1("leaderName: on\n")),
        ],
        &expect![[r#"
            no name:
            m.yaml:1: leaderName: is missing: give the migration lock a name; all managers that share it need the same one
            an empty name:
            m.yaml:4: leaderName: is empty: give the migration lock a name; all managers that share it need the same one
            no name of an object:
            m.yaml:4: leaderName: "Shared_Lock" cannot be the name of a Lease: use lower case letters, digits, '-' and '.', at most 253, and begin and end with a letter or digit
            too long a name:
            m.yaml:4: leaderName: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" cannot be the name of a Lease: use lower case letters, digits, '-' and '.', at most 253, and begin and end with a letter or digit
            the main lock of a manager:
            m.yaml:4: leaderName: "gardenlet" is the name of gardenlet's main lock: the migration lock needs a name of its own, for example gardenlet-migration
            a main lock with a separate name:
            m.yaml:4: leaderName: "door" is the name of doorkeeper's main lock: the migration lock needs a name of its own, for example door-migration
            a number:
            m.yaml:4: leaderName: is a number, not text: put it in quotes, or give the migration lock a name; all managers that share it need the same one
            no number:
            m.yaml:4: leaderName: is a number, not text: put it in quotes, or give the migration lock a name; all managers that share it need the same one
            what is true to Kubernetes:
            m.yaml:4: leaderName: is true or false, not text: put it in quotes, or give the migration lock a name; all managers that share it need the same one
        "#]],
    );
    let own = parse_for(&v1("leaderName: mine\n"), "mine").unwrap_err();
    expect![[r#"m.yaml:4: leaderName: "mine" is also this manager's main lock (--leader-elect-resource-name): give the two different names"#]].assert_eq(&own);
}

#[test]
fn unknown_fields() {
    let fields = "leadername: shared\nmetadata: {}\n1: 2\ncontrollerLeaders:\n- name: a\n  component: b\n  lock: \
                  c\n<<: {leaderName: merged}\n";
    refused(
        &[("v1beta1", &document("v1beta1", fields))],
        &expect![[r#"
            v1beta1:
            m.yaml:3: leadername: is not a known field: write leaderName
            m.yaml:4: metadata: is not a known field: remove it (known: apiVersion, kind, leaderName, resourceLock, controllerLeaders)
            m.yaml:5: 1: is not a known field: remove it (known: apiVersion, kind, leaderName, resourceLock, controllerLeaders)
            m.yaml:10: <<: is not a known field: remove it (known: apiVersion, kind, leaderName, resourceLock, controllerLeaders)
            m.yaml:1: leaderName: is missing: give the migration lock a name; all managers that share it need the same one
            m.yaml:9: controllerLeaders[0].lock: is not a known field: remove it (known: name, component)
        "#]],
    );
}

#[test]
fn resource_locks() {
    let of = |version: &str, lock: &str| document(version, &format!("{NAME}resourceLock: {lock}\n{ENTRY}"));
    refused(
        &[
            ("taken out of Kubernetes", &of("v1alpha1", "endpoints")),
            ("forbidden", &of("v1beta1", "endpointsleases")),
            ("forbidden, too", &of("v1alpha1", "configmapsleases")),
            ("never allowed", &of("v1alpha1", "configmaps")),
            ("misspelt", &of("v1alpha1", "lease")),
            ("no text", &of("v1alpha1", "[leases]")),
            ("no field of v1", &of("v1", "leases")),
        ],
        &expect![[r#"
            taken out of Kubernetes:
            m.yaml:4: resourceLock: "endpoints" cannot be used: Kubernetes no longer locks on Endpoints: write leases, or leave the field out
            forbidden:
            m.yaml:4: resourceLock: "endpointsleases" is not allowed (KEP-2436): write leases, or leave the field out
            forbidden, too:
            m.yaml:4: resourceLock: "configmapsleases" is not allowed (KEP-2436): write leases, or leave the field out
            never allowed:
            m.yaml:4: resourceLock: "configmaps" is not allowed (KEP-2436): write leases, or leave the field out
            misspelt:
            m.yaml:4: resourceLock: "lease" is not known: write leases, or leave the field out
            no text:
            m.yaml:4: resourceLock: a list is not known: write leases, or leave the field out
            no field of v1:
            m.yaml:4: resourceLock: is not a field of v1, which always uses leases: remove it
        "#]],
    );
}

#[test]
fn entries() {
    let of = |rest: &str| document("v1", &format!("{NAME}controllerLeaders{rest}"));
    refused(
        &[
            ("no list", &document("v1", NAME)),
            ("nothing", &of(":\n")),
            ("an empty list", &of(": []\n")),
            ("a mapping", &of(": {name: a, component: b}\n")),
            ("no entry", &of(":\n- backup-bucket\n-\n")),
            ("nothing in it", &of(":\n- {}\n")),
            (
                "empty words",
                &of(":\n- name: ''\n  component:\n- component: ''\n  name:\n"),
            ),
            (
                "white space",
                &of(":\n- name: 'backup-bucket '\n  component: \"gar denlet\"\n"),
            ),
            ("no text", &of(":\n- name: 17\n  component: true\n")),
            ("a tag", &of(":\n- name: !mine a\n  component: b\n")),
        ],
        &expect![[r#"
            no list:
            m.yaml:1: controllerLeaders: is missing or empty: list at least one controller with name and component, or leave --enable-leader-migration out
            nothing:
            m.yaml:4: controllerLeaders: is missing or empty: list at least one controller with name and component, or leave --enable-leader-migration out
            an empty list:
            m.yaml:4: controllerLeaders: is missing or empty: list at least one controller with name and component, or leave --enable-leader-migration out
            a mapping:
            m.yaml:4: controllerLeaders: is a mapping, not a list of entries with name and component
            no entry:
            m.yaml:5: controllerLeaders[0]: is text, not an entry with name and component
            m.yaml:6: controllerLeaders[1]: is empty, not an entry with name and component
            nothing in it:
            m.yaml:5: controllerLeaders[0].name: is missing: name the controller, for example backup-bucket
            m.yaml:5: controllerLeaders[0].component: is missing: name the manager that may run it, or write "*" for any
            empty words:
            m.yaml:5: controllerLeaders[0].name: is empty: name the controller, for example backup-bucket
            m.yaml:6: controllerLeaders[0].component: is empty: name the manager that may run it, or write "*" for any
            m.yaml:8: controllerLeaders[1].name: is empty: name the controller, for example backup-bucket
            m.yaml:7: controllerLeaders[1].component: is empty: name the manager that may run it, or write "*" for any
            white space:
            m.yaml:5: controllerLeaders[0].name: "backup-bucket " has white space in it: name the controller, for example backup-bucket
            m.yaml:6: controllerLeaders[0].component: "gar denlet" has white space in it: name the manager that may run it, or write "*" for any
            no text:
            m.yaml:5: controllerLeaders[0].name: is a number, not text: put it in quotes, or name the controller, for example backup-bucket
            m.yaml:6: controllerLeaders[0].component: is true or false, not text: put it in quotes, or name the manager that may run it, or write "*" for any
            a tag:
            m.yaml:5: a value that begins with ! has a YAML tag, and !mine is not known: put the value in quotes
        "#]],
    );
}

/// A document that expands without bound is refused.
#[test]
fn aliases_of_aliases() {
    let mut text = "a0: &a0 [x]\n".to_owned();
    for level in 1..12 {
        let of = format!("*a{},", level - 1).repeat(10);
        text.extend([format!("a{level}: &a{level} [{of}]\n")]);
    }
    let told = parse(&text).unwrap_err();
    assert!(
        told.starts_with("m.yaml:") && told.contains(": is not valid YAML: "),
        "{told}"
    );
}

/// RK-03: a controller that is listed twice would have two assignments.
#[test]
fn duplicates() {
    let of = |rest: &str| document("v1", &format!("{NAME}controllerLeaders:\n{rest}"));
    refused(
        &[
            (
                "one name",
                &of(
                    "- name: backup-bucket\n  component: gardenlet\n- component: '*'\n  name: backup-bucket\n",
                ),
            ),
            (
                "old and new name",
                &of("- {name: service, component: a}\n- {name: route, component: a}\n\
                     - {name: service-lb-controller, component: a}\n- {name: route-controller, component: a}\n"),
            ),
        ],
        &expect![[r#"
            one name:
            m.yaml:8: controllerLeaders[1].name: "backup-bucket" is listed already (controllerLeaders[0], line 5): keep one of the two
            old and new name:
            m.yaml:7: controllerLeaders[2].name: "service-lb-controller" is listed already by its other name "service" (controllerLeaders[0], line 5): keep one of the two
            m.yaml:8: controllerLeaders[3].name: "route-controller" is listed already by its other name "route" (controllerLeaders[1], line 6): keep one of the two
        "#]],
    );
}

#[test]
fn unquoted_stars() {
    let of = |rest: &str| document("v1", &format!("{NAME}controllerLeaders:{rest}"));
    refused(
        &[
            (
                "in a block",
                &of("\n- name: route\n  component: *\n- name: service\n  component: *\n"),
            ),
            ("with a comment", &of("\n- name: route\n  component:  * # any\n")),
            ("at the end of the file", &of("\n- name: route\n  component: *")),
            ("in braces", &of("\n- {name: route, \"component\": *}\n")),
            ("in braces, first", &of(" [{component: *, name: route}]\n")),
            (
                "the alias of nothing",
                &of("\n- name: route\n  component: *any\n"),
            ),
        ],
        &expect![[r#"
            in a block:
            m.yaml:6: component: an unquoted * begins a YAML alias: put every * in quotes, component: "*"
            with a comment:
            m.yaml:6: component: an unquoted * begins a YAML alias: put every * in quotes, component: "*"
            at the end of the file:
            m.yaml:6: component: an unquoted * begins a YAML alias: put every * in quotes, component: "*"
            in braces:
            m.yaml:5: component: an unquoted * begins a YAML alias: put every * in quotes, component: "*"
            in braces, first:
            m.yaml:4: component: an unquoted * begins a YAML alias: put every * in quotes, component: "*"
            the alias of nothing:
            m.yaml:6: a value that begins with * is a YAML alias, and what it stands for is not defined: put the value in quotes
        "#]],
    );
}
