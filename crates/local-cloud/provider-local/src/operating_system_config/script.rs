//! Files and units as a shell script. Pure.
//!
//! Text stays readable text in the script, because placeholders such as `<<MACHINE_NAME>>` are replaced at
//! the creation of a machine. The script can be run again, and runs at each start of a machine.

use std::{collections::BTreeMap, fmt::Write as _};

use api::extensions::operating_system_config::{File, FileContent, Unit};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};

/// Contents of Secrets, by name and key.
pub(super) type Secrets = BTreeMap<(String, String), Vec<u8>>;

const UNITS: &str = "/etc/systemd/system";

/// The script; an error is a sentence.
pub(super) fn render_script(files: &[File], units: &[Unit], secrets: &Secrets) -> Result<String, String> {
    let mut script = String::from("#!/bin/bash\nset -eu\n");
    for file in files {
        let content = content_of(&file.path, &file.content, secrets)?;
        append_file(
            &mut script,
            &file.path,
            file.permissions.unwrap_or(0o644),
            &content,
        )?;
    }
    for unit in units {
        if unit.name.contains(['/', '\'']) || unit.name.is_empty() {
            return Err(format!("unit {:?} has no usable name", unit.name));
        }
        if let Some(content) = &unit.content {
            append_file(
                &mut script,
                &format!("{UNITS}/{}", unit.name),
                0o644,
                content.as_bytes(),
            )?;
        }
        for drop_in in &unit.drop_ins {
            let path = format!("{UNITS}/{}.d/{}", unit.name, drop_in.name);
            append_file(&mut script, &path, 0o644, drop_in.content.as_bytes())?;
        }
    }
    script.push_str("systemctl daemon-reload\n");
    for unit in units {
        match unit.enable {
            Some(true) => line(&mut script, &format!("systemctl enable '{}'", unit.name)),
            Some(false) => line(&mut script, &format!("systemctl disable '{}'", unit.name)),
            None => {}
        }
        match unit.command.as_deref() {
            None => {}
            Some(command @ ("start" | "stop" | "restart")) => {
                line(
                    &mut script,
                    &format!("systemctl {command} --no-block '{}'", unit.name),
                );
            }
            Some(other) => {
                return Err(format!(
                    "unit {} has the command {other:?}: start, stop and restart are known",
                    unit.name
                ));
            }
        }
    }
    Ok(script)
}

fn line(script: &mut String, line: &str) {
    script.push_str(line);
    script.push('\n');
}

fn content_of(path: &str, content: &FileContent, secrets: &Secrets) -> Result<Vec<u8>, String> {
    if let Some(inline) = &content.inline {
        return match inline.encoding.as_str() {
            "" => Ok(inline.data.clone().into_bytes()),
            "b64" | "base64" => STANDARD
                .decode(&inline.data)
                .map_err(|_| format!("file {path} is not encoded in base64")),
            other => Err(format!("file {path} has the encoding {other:?}: b64 is known")),
        };
    }
    if let Some(reference) = &content.secret_ref {
        return secrets
            .get(&(reference.name.clone(), reference.data_key.clone()))
            .cloned()
            .ok_or_else(|| format!("file {path} comes from a Secret that was not read"));
    }
    Err(format!(
        "file {path} has a content that this system cannot take: inline and secretRef are known"
    ))
}

fn append_file(script: &mut String, path: &str, permissions: i32, content: &[u8]) -> Result<(), String> {
    if !path.starts_with('/') || path.contains('\'') || path.contains('\n') {
        return Err(format!("file {path:?} has no usable path"));
    }
    let folder = path.rsplit_once('/').map_or("/", |(folder, _)| folder);
    // A marker that is no line of the content.
    let end = Sha256::digest(content)
        .iter()
        .take(8)
        .fold("END-".to_owned(), |mut end, byte| {
            // Writing to a String cannot fail.
            let _ = write!(end, "{byte:02x}");
            end
        });
    line(script, &format!("mkdir -p '{folder}'"));
    // The permissions are set before the content.
    line(
        script,
        &format!("install -m {permissions:04o} /dev/null '{path}'"),
    );
    if let Ok(text) = std::str::from_utf8(content) {
        line(script, &format!("cat >'{path}' <<'{end}'"));
        line(script, text.trim_end_matches('\n'));
    } else {
        line(script, &format!("base64 -d >'{path}' <<'{end}'"));
        line(script, &STANDARD.encode(content));
    }
    line(script, &end);
    Ok(())
}

#[cfg(test)]
mod tests {
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
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(path("a/text")).unwrap().permissions(),
        );
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
}
