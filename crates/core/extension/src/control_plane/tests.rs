#![allow(clippy::unwrap_used)]

use k8s_openapi::api::core::v1::ConfigMap;
use runtime::workload::{Files, Health, Workload};
use serde_json::json;

use super::{rollout::of_files, *};

fn process(name: &'static str) -> Workload {
    Workload {
        name,
        image: "i".into(),
        program: "/p".into(),
        args: Vec::new(),
        health: Health {
            scheme: "HTTP",
            port: 8080,
            readiness: "/readyz",
            liveness: "/healthz",
        },
        files: vec![Files::Secret("s"), Files::ConfigMap("m")],
        scratch: false,
        grace_seconds: 15,
        overlaps: false,
        requests: ["32Mi", "10m"],
    }
}

fn file(name: &str, content: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"k": content}})).unwrap()
}

fn parts() -> Parts {
    Parts {
        config_maps: vec![file("m", "1")],
        processes: vec![process("one")],
    }
}

#[test]
fn what_is_not_wanted_any_more_is_stale() {
    let all = (&["one", "two"][..], &["m", "n"][..]);
    assert_eq!(parts().stale(all.0, all.1), [["two"], ["n"]]);
    assert_eq!(Parts::default().stale(all.0, all.1), [["one", "two"], ["m", "n"]]);
}

/// An object with an unlisted name would stay in the seed after a move (RX-20).
#[test]
fn what_nobody_would_take_away_is_not_made() {
    parts().check(&["one"], &["m"]).unwrap();
    for (processes, config_maps, name) in [(&["two"], &["m"], "one"), (&["one"], &["n"], "m")] {
        let error = parts().check(processes, config_maps).unwrap_err();
        assert!(error.to_string().contains(&format!("wants {name},")), "{error}");
    }
}

#[test]
fn a_pod_follows_the_files_that_it_mounts_and_no_others() {
    let mounted = process("one").files;
    let of = |maps: &[ConfigMap]| of_files(&mounted, maps);
    let before = of(&[file("m", "1"), file("n", "1")]);
    assert_eq!(before.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["m"]);
    assert_eq!(before, of(&[file("m", "1"), file("n", "2")]));
    assert_ne!(before, of(&[file("m", "2")]));
    assert!(of(&[file("n", "1")]).is_empty());
}

#[test]
fn a_secret_that_no_cleanup_would_remove_is_refused() {
    let secret: Secret = serde_json::from_value(json!({"metadata": {"name": "s"}})).unwrap();
    let secrets = [secret];
    assert_eq!(stale_secrets(&secrets, &["s", "t"]).unwrap(), ["t"]);
    assert_eq!(stale_secrets(&[], &["s", "t"]).unwrap(), ["s", "t"]);
    let error = stale_secrets(&secrets, &["t"]).unwrap_err();
    assert!(error.to_string().contains("wants the Secret s,"), "{error}");
}
