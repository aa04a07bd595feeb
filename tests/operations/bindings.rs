//! The runbook about the rights of a member deletes bindings of other projects to a Secret of the project, and
//! no further binding.

use serde_json::{Value, json};

use crate::documents;
use crate::programs::Desk;
use crate::states::{LISTS_BINDINGS, borrowed_secrets};

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
