//! Texts for the answers of an API server, without any content of the request. Manifests come from Secrets,
//! and many people read conditions, events and logs.

use kube::core::Status;

/// Maximum characters of a server's sentence. A condition names several objects.
const LONGEST: usize = 300;

/// The reason why the server refused an object. For a Secret the text names only fields. For any other object
/// the text is the server's message without quoted values.
#[must_use]
pub fn words(status: &Status, is_secret: bool) -> String {
    let causes = status
        .details
        .as_ref()
        .map(|details| details.causes.as_slice())
        .unwrap_or_default();
    if status.code == 422 && !causes.is_empty() {
        let all: Vec<String> = causes
            .iter()
            .take(3)
            .map(|cause| of_field(&cause.field, &cause.reason, &cause.message))
            .collect();
        return format!("it is refused as invalid: {}", all.join("; "));
    }
    if is_secret {
        return format!("the API server answers {} {}", status.code, status.reason);
    }
    format!(
        "the API server answers {}: {}",
        status.code,
        without_quotes(&status.message)
    )
}

/// A field and the fault, in the API's own reasons.
fn of_field(field: &str, reason: &str, message: &str) -> String {
    let why = match reason {
        _ if message.contains("immutable") => "must not be changed",
        "FieldValueRequired" => "is missing",
        "FieldValueDuplicate" => "is there twice",
        "FieldValueForbidden" => "must not be set",
        "FieldValueNotSupported" => "has a value that is not supported",
        "FieldValueTooLong" => "is too long",
        "FieldValueTypeInvalid" => "has the wrong type",
        _ => "has a wrong value",
    };
    format!("{field} {why}")
}

/// The text with `…` for all quoted parts, cut to the length of a sentence.
fn without_quotes(text: &str) -> String {
    let (mut shown, mut quote, mut escaped) = (String::new(), None, false);
    for sign in text.chars() {
        match quote {
            None if matches!(sign, '"' | '`') => {
                quote = Some(sign);
                shown.push('…');
            }
            None => shown.push(sign),
            Some(_) if escaped => escaped = false,
            Some('"') if sign == '\\' => escaped = true,
            Some(end) if end == sign => quote = None,
            Some(_) => {}
        }
    }
    shown.chars().take(LONGEST).collect()
}

#[cfg(test)]
#[path = "refusal_tests.rs"]
mod tests;
