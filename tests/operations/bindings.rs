//! The runbook about the rights of a member deletes bindings of other projects to a Secret of the project,
//! and no further binding. The runbook finds each RoleBinding of the author.

use serde_json::{Value, json};

use crate::documents;
use crate::programs::Desk;
use crate::states::{LISTS_BINDINGS, borrowed_secrets};

const LISTS_RIGHTS: &str = "kubectl get rolebindings,clusterrolebindings -A -o json";
const DELETES: &str = "kubectl delete --wait=false -f -";

fn binding(name: &str, namespace: &str, kind: &str, reference: &Value) -> Value {
    let field = if kind == "SecretBinding" {
        "secretRef"
    } else {
        "credentialsRef"
    };
    json!({"kind": kind, "metadata": {"name": name, "namespace": namespace}, (field): reference})
}

/// Bindings that the commands must select, and bindings that must stay.
fn all_bindings() -> Value {
    let mut all: Vec<Value> = borrowed_secrets().into_iter().skip(1).collect();
    for kind in ["SecretBinding", "CredentialsBinding"] {
        let secret = |namespace: &str| json!({"kind": "Secret", "name": "cloud", "namespace": namespace});
        all.extend([
            binding("own", "garden-dev", kind, &secret("garden-dev")),
            binding("short", "garden-dev", kind, &json!({"name": "cloud"})),
            binding("of-third", "garden-dev", kind, &secret("garden-third")),
            binding("own-of-other", "garden-other", kind, &secret("garden-other")),
            binding("short-of-other", "garden-other", kind, &json!({"name": "cloud"})),
        ]);
    }
    json!({"apiVersion": "v1", "kind": "List", "items": all})
}

#[tokio::test]
async fn the_runbook_selects_bindings_of_other_projects_alone() {
    let desk = Desk::new().unwrap();
    let bindings = all_bindings();
    desk.write("bindings.json", &bindings.to_string()).unwrap();
    let commands = documents::commands();
    let commands = commands
        .iter()
        .filter(|command| command.text.starts_with(LISTS_BINDINGS));
    let (mut listed, mut deleted) = (Vec::new(), Vec::new());
    for command in commands {
        let text = command
            .text
            .replace(LISTS_BINDINGS, "cat bindings.json")
            .replace(DELETES, "cat");
        let found = desk.run("bash", &["-c", &text]).await.unwrap();
        let found = found.or_fail(&command.text).unwrap();
        if command.text.contains(DELETES) {
            deleted.push(serde_json::from_str::<Value>(&found).unwrap());
        } else {
            listed.push(found);
        }
    }
    let lines = "SecretBinding\tgarden-other\tborrowed\tcloud\t\nCredentialsBinding\tgarden-other\tborrowed\tcloud\t\n";
    assert_eq!(listed, [lines]);
    let items = &bindings["items"];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [items[0], items[1]]});
    assert_eq!(deleted, [list]);
}

/// A table cuts the cell of the subjects at a line feed, so a member would hide the subjects that follow.
#[tokio::test]
async fn the_runbook_finds_each_binding_of_the_author() {
    let desk = Desk::new().unwrap();
    let right = |kind: &str, name: &str, users: &[&str]| {
        let subjects: Vec<Value> = users
            .iter()
            .map(|user| json!({"kind": "User", "name": user}))
            .collect();
        json!({"kind": kind, "metadata": {"name": name, "namespace": "garden-other"}, "subjects": subjects})
    };
    let mut without = right("RoleBinding", "without-subjects", &[]);
    without["subjects"] = Value::Null;
    let all = [
        right("RoleBinding", "hidden", &["a\n", "AUTHOR"]),
        right("RoleBinding", "x\nforged\u{1b}", &["AUTHOR"]),
        right("ClusterRoleBinding", "wide", &["AUTHOR"]),
        right("RoleBinding", "of-namesake", &["AUTHOR2"]),
        without,
    ];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": all});
    desk.write("rights.json", &list.to_string()).unwrap();
    let commands = documents::commands();
    let command = commands
        .iter()
        .find(|command| command.text.starts_with(LISTS_RIGHTS))
        .unwrap();
    let text = command.text.replace(LISTS_RIGHTS, "cat rights.json");
    let found = desk.run("bash", &["-c", &text]).await.unwrap();
    let found = found.or_fail(&command.text).unwrap();
    let lines: Vec<&str> = found.lines().collect();
    let expected = [
        r#"["RoleBinding","garden-other","hidden"]"#,
        r#"["RoleBinding","garden-other","x\nforged\u001b"]"#,
        r#"["ClusterRoleBinding","garden-other","wide"]"#,
    ];
    assert_eq!(lines, expected);
}
