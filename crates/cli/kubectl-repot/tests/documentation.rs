//! Each documented command of the plugin is a valid command line, and the exit codes are as documented.

#![allow(clippy::unwrap_used)]

use std::{fs, path::PathBuf};

use clap::Parser;
use kubectl_repot::{
    failure::{EXIT_FAILED, EXIT_REFUSED},
    flags::Flags,
};
use testkit::files_below;

/// The command lines in fenced blocks and in code spans of a page.
fn commands(text: &str) -> Vec<String> {
    let spans = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let lines = text.lines().map(|line| line.trim().trim_start_matches("$ "));
    let all = spans
        .chain(lines)
        .filter(|text| text.starts_with("kubectl repot "));
    all.map(|text| text.split("  #").next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn each_documented_command_is_a_valid_command_line() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut count = 0;
    for page in files_below(&root.join("docs"), "md").unwrap() {
        for command in commands(&fs::read_to_string(&page).unwrap()) {
            count += 1;
            let words = command.split_whitespace().skip(1);
            let parsed = Flags::try_parse_from(words);
            assert!(
                parsed.is_ok(),
                "{}: {command}: {}",
                page.display(),
                parsed.unwrap_err()
            );
        }
    }
    assert!(count > 8, "only {count} commands were found");
}

/// Scripts decide by the exit code. The parser of the command line has the code of a refusal.
#[test]
fn exit_codes_are_as_documented() {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../docs/operate/plugin.md");
    let page = fs::read_to_string(page).unwrap();
    for (code, words) in [
        (0, "the command is done"),
        (EXIT_FAILED, "could not be carried out"),
        (EXIT_REFUSED, "the command line is wrong"),
    ] {
        let row = format!("| {code} | ");
        let mut rows = page.lines().filter(|line| line.starts_with(&row));
        assert!(rows.any(|line| line.contains(words)), "{code}: {words}");
    }
    let wrong = Flags::try_parse_from(["kubectl-repot", "move"]).unwrap_err();
    assert_eq!(wrong.exit_code(), i32::from(EXIT_REFUSED));
}

/// krew refuses a manifest without a platform, a checksum or the licence.
#[test]
fn the_krew_manifest_is_complete_after_a_release() {
    let template = include_str!("../krew.yaml");
    let filled = template
        .replace("VERSION", env!("CARGO_PKG_VERSION"))
        .replace("BASE_URI", "https://example.com/repot")
        .replace("SHA256_AMD64", &"a".repeat(64))
        .replace("SHA256_ARM64", &"b".repeat(64));
    let manifest: serde_json::Value = serde_yaml_ng::from_str(&filled).unwrap();
    assert_eq!(manifest["metadata"]["name"], "repot");
    let short = manifest["spec"]["shortDescription"].as_str().unwrap();
    assert!(short.len() <= 50 && !short.ends_with('.'), "{short}");
    let platforms = manifest["spec"]["platforms"].as_array().unwrap();
    assert_eq!(platforms.len(), 2);
    for platform in platforms {
        assert_eq!(platform["bin"], "kubectl-repot");
        assert_eq!(platform["sha256"].as_str().unwrap().len(), 64);
        let files = platform["files"].as_array().unwrap();
        assert!(files.iter().any(|file| file["from"] == "LICENSE"), "{files:?}");
        let uri = platform["uri"].as_str().unwrap();
        assert!(uri.ends_with(".tar.gz"), "{uri}");
    }
}
