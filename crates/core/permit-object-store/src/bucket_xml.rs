//! The XML of [`Bucket`](crate::Bucket): pages of listings, removals of many objects, and the objects in
//! both.

use serde::{Deserialize, Serialize};

/// An object, or a version of an object, in a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedObject {
    /// The whole key, with any characters.
    pub key: String,
    /// Bytes of the content.
    pub size: u64,
    /// The version, in a listing of versions.
    pub version: Option<String>,
}

/// Position of the next page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position(pub(crate) Vec<(&'static str, String)>);

/// A removal that the store refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRemoval {
    /// Key of the object.
    pub key: String,
    /// Code of the store, such as `AccessDenied`.
    pub code: String,
}

/// A page of a listing. An element of a version may stand between delete markers, so that the order of
/// elements has no meaning.
#[derive(Default, Deserialize)]
pub(crate) struct Listing {
    #[serde(rename = "$value", default)]
    elements: Vec<Element>,
}

#[derive(Deserialize)]
enum Element {
    Contents(Entry),
    Version(Entry),
    DeleteMarker(Entry),
    EncodingType(String),
    NextContinuationToken(String),
    NextKeyMarker(String),
    NextVersionIdMarker(String),
    /// Only in an error. A store may send an error with the status of a success.
    Code(String),
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    key: String,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    version_id: Option<String>,
}

impl Listing {
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        let listing: Self = quick_xml::de::from_reader(text).map_err(|e| e.to_string())?;
        let code = listing.elements.iter().find_map(|element| match element {
            Element::Code(code) => Some(code.clone()),
            _ => None,
        });
        code.map_or(Ok(listing), Err)
    }

    pub(crate) fn into_page(self) -> (Vec<ListedObject>, Option<Position>) {
        let is_encoded = self
            .elements
            .iter()
            .any(|element| matches!(element, Element::EncodingType(encoding) if encoding == "url"));
        let decode = |text: String| if is_encoded { decoded(&text) } else { text };
        let (mut objects, mut next) = (Vec::new(), Vec::new());
        for element in self.elements {
            match element {
                Element::Contents(entry) | Element::Version(entry) | Element::DeleteMarker(entry) => {
                    objects.push(ListedObject {
                        key: decode(entry.key),
                        size: entry.size,
                        version: entry.version_id,
                    });
                }
                Element::NextContinuationToken(token) => next.push(("continuation-token", token)),
                Element::NextKeyMarker(key) => next.push(("key-marker", decode(key))),
                Element::NextVersionIdMarker(version) => next.push(("version-id-marker", version)),
                Element::EncodingType(_) | Element::Code(_) | Element::Other => {}
            }
        }
        next.retain(|(_, value)| !value.is_empty());
        (objects, Some(Position(next)).filter(|next| !next.0.is_empty()))
    }
}

/// The text is the name in a form without a value: an encoded key has no `=` and no `&`.
fn decoded(text: &str) -> String {
    let mut pairs = form_urlencoded::parse(text.as_bytes());
    pairs
        .next()
        .map(|(name, _)| name.into_owned())
        .unwrap_or_default()
}

#[derive(Serialize)]
#[serde(rename = "Delete", rename_all = "PascalCase")]
struct Delete<'a> {
    object: Vec<Named<'a>>,
    quiet: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Named<'a> {
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version_id: Option<&'a str>,
}

/// The body of a request that removes objects.
pub(crate) fn removal_request(objects: &[&ListedObject]) -> Result<String, String> {
    let delete = Delete {
        object: objects
            .iter()
            .map(|object| Named {
                key: &object.key,
                version_id: object.version.as_deref(),
            })
            .collect(),
        quiet: true,
    };
    quick_xml::se::to_string(&delete).map_err(|e| e.to_string())
}

/// The code in the body of an error.
pub(crate) fn code_of(body: &str) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct ErrorBody {
        code: String,
    }
    let body: ErrorBody = quick_xml::de::from_str(body).ok()?;
    Some(body.code)
}

/// The answer to a removal.
pub(crate) struct Removal {
    pub(crate) errors: Vec<RefusedRemoval>,
}

#[derive(Deserialize)]
struct RemovalAnswer {
    #[serde(rename = "$value", default)]
    elements: Vec<RemovalElement>,
}

#[derive(Deserialize)]
enum RemovalElement {
    Error(RemovalError),
    /// Only of an error of the whole request.
    Code(String),
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RemovalError {
    #[serde(default)]
    key: String,
    #[serde(default)]
    code: String,
}

/// Reads the answer to a removal.
pub(crate) fn removed(text: &[u8]) -> Result<Removal, String> {
    let answer: RemovalAnswer = quick_xml::de::from_reader(text).map_err(|e| e.to_string())?;
    let mut errors = Vec::new();
    for element in answer.elements {
        match element {
            RemovalElement::Error(error) => errors.push(RefusedRemoval {
                key: error.key,
                code: error.code,
            }),
            RemovalElement::Code(code) => return Err(code),
            RemovalElement::Other => {}
        }
    }
    Ok(Removal { errors })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_listing_returns_every_key_as_the_user_wrote_it() {
        let text = "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>\
             <EncodingType>url</EncodingType><Contents><Key>a/v2//x</Key><Size>3</Size><Owner><ID>o</ID></Owner></Contents>\
             <Contents><Key>a/./b%01+c%2Bd%26</Key></Contents><CommonPrefixes><Prefix>p</Prefix></CommonPrefixes>\
             <NextContinuationToken>t=</NextContinuationToken></ListBucketResult>";
        let (objects, next) = Listing::parse(text.as_bytes()).unwrap().into_page();
        let keys: Vec<_> = objects
            .iter()
            .map(|object| (object.key.as_str(), object.size))
            .collect();
        assert_eq!(keys, [("a/v2//x", 3), ("a/./b\u{1} c+d&", 0)]);
        assert_eq!(
            next,
            Some(Position(vec![("continuation-token", "t=".to_owned())]))
        );
    }

    #[test]
    fn versions_and_delete_markers_may_alternate() {
        let text = "<ListVersionsResult><KeyMarker/><Version><Key>a+b</Key><VersionId>1</VersionId></Version>\
             <DeleteMarker><Key>a+b</Key><VersionId>2</VersionId></DeleteMarker>\
             <Version><Key>c</Key><VersionId>null</VersionId></Version></ListVersionsResult>";
        let (objects, next) = Listing::parse(text.as_bytes()).unwrap().into_page();
        let found: Vec<_> = objects
            .iter()
            .map(|object| (object.key.as_str(), object.version.as_deref().unwrap_or_default()))
            .collect();
        assert_eq!(found, [("a+b", "1"), ("a+b", "2"), ("c", "null")]);
        assert_eq!(next, None);
    }

    #[test]
    fn an_error_with_the_status_of_a_success_is_an_error() {
        let error = b"<Error><Code>InternalError</Code><Message>m</Message></Error>";
        assert_eq!(Listing::parse(error).err().as_deref(), Some("InternalError"));
        assert_eq!(removed(error).err().as_deref(), Some("InternalError"));
    }

    #[test]
    fn a_removal_names_versions_and_returns_what_the_store_refused() {
        let object = ListedObject {
            key: "a//<b>".to_owned(),
            size: 0,
            version: Some("7".to_owned()),
        };
        assert_eq!(
            removal_request(&[&object]).unwrap(),
            "<Delete><Object><Key>a//&lt;b&gt;</Key><VersionId>7</VersionId></Object><Quiet>true</Quiet></Delete>"
        );
        let answer =
            b"<DeleteResult><Deleted><Key>x</Key></Deleted><Error><Key>y</Key><Code>AccessDenied</Code>\
            <Message>m</Message></Error></DeleteResult>";
        let refused = removed(answer).unwrap().errors;
        assert_eq!(
            (refused[0].key.as_str(), refused[0].code.as_str()),
            ("y", "AccessDenied")
        );
        assert_eq!(removed(b"<DeleteResult/>").unwrap().errors, []);
    }
}
