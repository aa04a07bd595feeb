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
#[path = "script_tests.rs"]
mod tests;
