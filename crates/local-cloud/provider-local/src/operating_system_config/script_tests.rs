#![allow(clippy::unwrap_used)]
use serde_json::json;

use super::*;

/// A real shell runs the script: the content of files is reproduced byte for byte, for any content.
#[test]
fn a_shell_makes_the_files() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name).display().to_string();
    let files: Vec<File> = serde_json::from_value(json!([
        {"path": path("a/text"), "permissions": 0o600, "content": {"inline": {"encoding": "", "data": "$(false) `x` 'q' <<NAME>>\nlast"}}},
        {"path": path("b"), "content": {"inline": {"encoding": "b64", "data": STANDARD.encode([0_u8, 255, 10])}}},
        {"path": path("c"), "content": {"secretRef": {"name": "s", "dataKey": "k"}}},
    ]))
    .unwrap();
    let secrets = Secrets::from([(("s".into(), "k".into()), b"secret\n".to_vec())]);
    let script = render_script(&files, &[], &secrets).unwrap();
    assert!(
        script.contains("<<NAME>>"),
        "words to be filled in stay: {script}"
    );
    let script = script.replace("systemctl daemon-reload\n", "");
    for _ in 0..2 {
        let ran = std::process::Command::new("bash")
            .args(["-c", &script])
            .status()
            .unwrap();
        assert!(ran.success());
    }
    let read = |name: &str| std::fs::read(path(name)).unwrap();
    assert_eq!(read("a/text"), b"$(false) `x` 'q' <<NAME>>\nlast\n");
    assert_eq!(read("b"), [0, 255, 10]);
    assert_eq!(read("c"), b"secret\n");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path("a/text")).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn what_would_leave_its_place_is_refused() {
    for path in ["relative", "/a'; rm -rf /; '", "/a\nb"] {
        let file: File = serde_json::from_value(
            json!({"path": path, "content": {"inline": {"encoding": "", "data": ""}}}),
        )
        .unwrap();
        assert!(render_script(&[file], &[], &Secrets::new()).is_err(), "{path:?}");
    }
    let unit: Unit = serde_json::from_value(json!({"name": "a.service", "command": "reboot"})).unwrap();
    assert!(render_script(&[], &[unit], &Secrets::new()).is_err());
}
