//! Provider configuration that the API accepts, and that this provider does not read.

use api::meta::{ErrorCode, PackedExtension};
use runtime::{Error, Result};
use serde_json::Value;

/// Refuses settings that would be ignored silently. A configuration with only `apiVersion` and `kind` has no
/// setting.
pub fn refuse(field: &str, config: Option<&PackedExtension>) -> Result<()> {
    let asked = match config.map(PackedExtension::decode) {
        None | Some(Ok(Value::Null)) => return Ok(()),
        Some(Ok(Value::Object(settings))) => {
            let is_setting = |name: &&String| !matches!(name.as_str(), "apiVersion" | "kind");
            let asked: Vec<_> = settings.keys().filter(is_setting).map(String::as_str).collect();
            if asked.is_empty() {
                return Ok(());
            }
            format!(" ({})", asked.join(", "))
        }
        Some(_) => String::new(),
    };
    Err(Error::config(
        ErrorCode::ErrConfigurationProblem,
        format!("{field} has settings{asked}, and the provider `local` knows none there: take them out"),
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_asks_for_nothing_passes() {
        let told = |config: Value| refuse("providerConfig of x", Some(&config.into()));
        assert_eq!(refuse("", None), Ok(()));
        for nothing in [json!(null), json!({}), json!({"apiVersion": "a/v1", "kind": "B"})] {
            assert_eq!(told(nothing.clone()), Ok(()), "{nothing}");
        }
        let rows = [
            (
                json!({"kind": "B", "overlay": {}, "mtu": 9}),
                "settings (mtu, overlay), and",
            ),
            (json!([]), "settings, and"),
            (json!("text"), "settings, and"),
        ];
        for (config, words) in rows {
            let refused = told(config).unwrap_err();
            assert_eq!(refused.codes(), [ErrorCode::ErrConfigurationProblem]);
            let said = refused.to_string();
            assert!(
                said.contains("providerConfig of x") && said.contains(words),
                "{said}"
            );
        }
    }
}
