//! Required fields, and the errors of invalid fields.

use runtime::{Error, Result};

/// The image of a container: the Etcd's image, else the process's default.
pub(crate) fn image(field: &str, own: Option<&String>, default: &str) -> Result<String> {
    let image = own.map_or(default, String::as_str);
    if image.is_empty() {
        return Err(wrong(
            field,
            "is empty; name an image, or leave the field out to take etcd-druid's",
        ));
    }
    Ok(image.to_owned())
}

/// The error of an invalid field, with the remedy.
pub(crate) fn wrong(field: &str, what: impl std::fmt::Display) -> Error {
    Error::config(
        api::meta::ErrorCode::ErrConfigurationProblem,
        format!("{field} {what}"),
    )
}
