//! Generated files equal their types. With `UPDATE_EXPECT=1` the test writes the files instead (like `xtask
//! generate`).

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::{fs, path::Path};

#[test]
fn files_equal_the_types() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut differing = Vec::new();
    for (path, content) in api::generated::files().unwrap() {
        let target = root.join(&path);
        if fs::read_to_string(&target).ok().as_ref() == Some(&content) {
            continue;
        }
        if update {
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            fs::write(&target, content).unwrap();
        } else {
            differing.push(path);
        }
    }
    assert!(differing.is_empty(), "run `make generate`: {differing:#?}");
}

#[test]
fn every_definition_is_made_once_and_in_the_same_way() {
    let names: Vec<String> = api::all_crds().iter().map(api::Crd::file_name).collect();
    let mut distinct: Vec<(api::Target, String)> = api::all_crds()
        .iter()
        .map(|crd| (crd.target, crd.file_name()))
        .collect();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), names.len());
    assert_eq!(api::generated::files().unwrap(), api::generated::files().unwrap());
}
