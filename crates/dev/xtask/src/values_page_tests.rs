#![allow(clippy::unwrap_used)]

use super::*;

const VALUES: &str = "\
# A remark about the file.

# The image.
image:
  # Name of the
  # image.
  repository: a
# Reserved.
resources:
  limits: {memory: 1Mi}
list:
  # Not a key.
  - a: b
# Pods.
replicas: 2
";

fn rows(text: &str) -> Result<String> {
    let values: Value = serde_yaml_ng::from_str(text)?;
    let mut page = String::new();
    add_rows(&values, "", &comments(text), &mut page)?;
    Ok(page)
}

#[test]
fn each_value_has_a_row_with_default_and_comment() {
    let text = VALUES.replace("list:\n", "# Names.\nlist:\n");
    assert_eq!(
        rows(&text).unwrap(),
        "| `image.repository` | `\"a\"` | Name of the image. |\n\
         | `list` | `[{\"a\":\"b\"}]` | Names. |\n\
         | `replicas` | `2` | Pods. |\n\
         | `resources` | `{\"limits\":{\"memory\":\"1Mi\"}}` | Reserved. |\n"
    );
}

#[test]
fn a_value_without_a_comment_is_refused() {
    let error = rows(VALUES).unwrap_err().to_string();
    assert!(error.contains("list has no comment"), "{error}");
}
