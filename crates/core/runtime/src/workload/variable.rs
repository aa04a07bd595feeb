//! Environment variables that a process passes to the pods that the process creates, such as the variables of
//! a proxy.

use std::{fmt, str::FromStr};

use k8s_openapi::api::core::v1::EnvVar;

/// A variable that a flag gives as `NAME=VALUE`.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    name: String,
    value: String,
}

impl FromStr for Variable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_valid = |name: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            !name.is_empty() && name.chars().all(is_plain) && !name.starts_with(|c: char| c.is_ascii_digit())
        };
        match text.split_once('=').filter(|(name, _)| is_valid(name)) {
            Some((name, value)) => Ok(Self {
                name: name.to_owned(),
                value: value.to_owned(),
            }),
            None => Err("a variable is NAME=VALUE, where the name has letters, digits and _".to_owned()),
        }
    }
}

impl From<&Variable> for EnvVar {
    fn from(variable: &Variable) -> Self {
        Self {
            name: variable.name.clone(),
            value: Some(variable.value.clone()),
            value_from: None,
        }
    }
}

/// Without the value: the value may hold the password of a proxy.
impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variable")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_a_name_and_a_value() {
        let variable = "HTTPS_PROXY=http://user:s3cret@proxy:3128/?a=b".parse::<Variable>();
        let variable = variable.as_ref().map(EnvVar::from);
        assert_eq!(
            variable.map(|variable| (variable.name, variable.value)),
            Ok((
                "HTTPS_PROXY".to_owned(),
                Some("http://user:s3cret@proxy:3128/?a=b".to_owned())
            ))
        );
        for wrong in ["", "HTTPS_PROXY", "=s3cret", "A-B=s3cret", "1A=s3cret"] {
            let refused = wrong.parse::<Variable>();
            assert!(refused.is_err_and(|text| !text.contains("s3cret")), "{wrong}");
        }
    }

    #[test]
    fn a_value_is_not_shown() {
        let variable = "HTTPS_PROXY=http://user:s3cret@proxy".parse::<Variable>();
        assert!(!format!("{variable:?}").contains("s3cret"));
    }
}
