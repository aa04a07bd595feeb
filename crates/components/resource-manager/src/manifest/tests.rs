#![allow(clippy::unwrap_used)]
use std::{collections::BTreeMap, fmt::Write as _, io::Write};

use rstest::rstest;

use super::*;

const ONE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: s3cret}\n";

fn secrets(key: &str, bytes: impl Into<Vec<u8>>) -> BTreeMap<String, BTreeMap<String, Vec<u8>>> {
    [("s".to_owned(), [(key.to_owned(), bytes.into())].into())].into()
}

fn names(key: &str, bytes: impl Into<Vec<u8>>) -> Vec<String> {
    read(&secrets(key, bytes))
        .unwrap()
        .iter()
        .map(|object| object.key.to_string())
        .collect()
}

fn brotli(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let params = brotli::enc::BrotliEncoderParams::default();
    brotli::BrotliCompress(&mut &*bytes, &mut packed, &params).unwrap();
    packed
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn data_is_read_compressed_or_not() {
    let text = ONE.as_bytes();
    let zstd = zstd::encode_all(text, 0).unwrap();
    for (key, bytes) in [
        ("a.yaml", text.to_vec()),
        ("a.yaml.br", brotli(text)),
        ("a.gz", gzip(text)),
        ("a.zst", zstd),
    ] {
        assert_eq!(names(key, bytes), ["ConfigMap a"], "{key}");
    }
}

#[test]
fn several_documents_lists_and_json_are_read() {
    let yaml = "---\n# nothing\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: b, namespace: ns}}\n\
                - {apiVersion: v1, kind: Secret, metadata: {name: c}}\n---\n";
    assert_eq!(
        names(
            "a",
            format!("{ONE}{yaml}{{apiVersion: v1, kind: Pod, metadata: {{name: d}}}}")
        ),
        ["ConfigMap a", "Secret ns/b", "Secret c", "Pod d"]
    );
    let json = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
                  {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}}"#;
    assert_eq!(names("a.json", json), ["Pod a", "Pod b"]);
    assert_eq!(
        names("flow", "{apiVersion: v1, kind: Pod, metadata: {name: a}}"),
        ["Pod a"]
    );
    assert_eq!(names("empty", ""), Vec::<String>::new());
}

/// The same reading as in Kubernetes: a file mode must not change by a different base.
#[test]
fn octal_numbers_are_octal() {
    let read = read(&secrets(
        "a",
        "{apiVersion: v1, kind: Pod, metadata: {name: a}, mode: 0440, no: yes}",
    ))
    .unwrap();
    assert_eq!(
        (&read[0].body["mode"], &read[0].body["no"]),
        (&288.into(), &true.into())
    );
}

#[rstest]
#[case("a: [s3cret", "Secret s, key k: is not valid YAML (line ")]
#[case("a: 1\nb: s3cret\na: 2\n", "Secret s, key k: a field is there twice (line 3")]
#[case("a: *s3cret", "Secret s, key k: an alias (*) stands for nothing")]
#[case("a: !s3cret 1", "Secret s, key k: a tag (!) is not known")]
#[case("{\"a\": \"s3cret", "Secret s, key k: is neither JSON (line 1, column ")]
#[case("s3cret", "Secret s, key k: document 1: an object needs apiVersion and kind")]
#[case(
    "[s3cret]",
    "Secret s, key k: document 1: an object needs apiVersion and kind"
)]
#[case(
    "kind: Pod\napiVersion: v1\nmetadata: {name: a, namespace: n}",
    "Secret s, key k: document 1: metadata.namespace is no text: put it in quotes"
)]
#[case(
    "kind: Pod\napiVersion: v1",
    "Secret s, key k: document 1: a Pod has no metadata.name"
)]
#[case(
    "kind: Pod\napiVersion: v1\nmetadata: {name: a, annotations: {resources.gardener.cloud/finalize-deletion-after: s3cret}}",
    "Secret s, key k: document 1: Pod a: the annotation resources.gardener.cloud/finalize-deletion-after is no duration"
)]
fn what_is_wrong_is_told_with_its_place_and_without_its_content(#[case] text: &str, #[case] told: &str) {
    let wrong = read(&secrets("k", text)).unwrap_err();
    assert!(
        wrong.len() == 1 && wrong[0].starts_with(told) && !wrong[0].contains("s3cret"),
        "{wrong:?}"
    );
}

#[rstest]
#[case("a.br", b"s3cret".to_vec(), "cannot be unpacked as brotli: the data is damaged")]
#[case("a.gz", b"s3cret".to_vec(), "cannot be unpacked as gzip: the data is damaged")]
#[case("a.zst", b"s3cret".to_vec(), "cannot be unpacked as zstd: the data is damaged")]
#[case("a", vec![0xff], "is not text in UTF-8")]
#[case("a.br", brotli(&vec![b' '; LARGEST + 1]), "unpacked, the manifests are more than 16777216 bytes: use several ManagedResources")]
#[case("a.gz", gzip(&vec![b' '; LARGEST + 1]), "unpacked, the manifests are more than 16777216 bytes: use several ManagedResources")]
fn damaged_and_endless_data_are_told(#[case] key: &str, #[case] bytes: Vec<u8>, #[case] told: &str) {
    assert_eq!(
        read(&secrets(key, bytes)).unwrap_err(),
        [format!("Secret s, key {key}: {told}")]
    );
}

#[test]
fn an_object_that_is_there_twice_is_told_also_in_another_version() {
    let text = "{apiVersion: apps/v1, kind: X, metadata: {name: a}}\n---\n{apiVersion: apps/v2, kind: X, metadata: {name: a}}";
    assert_eq!(
        read(&secrets("k", text)).unwrap_err(),
        ["X a is there more than once: keep one"]
    );
}

/// Nested aliases must be refused before the expansion fills the memory.
#[test]
fn aliases_are_bounded() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = [format!("*a{}", level - 1).as_str(); 9].join(", ");
        writeln!(text, "a{level}: &a{level} [{before}]").unwrap();
    }
    assert!(read(&secrets("k", text)).is_err());
}
