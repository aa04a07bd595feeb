//! Lists and maps of an answer, cut to a maximum number of elements, because users control the number of
//! elements.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// The first `N` elements of a list. The decoder skips all further elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Few<T, const N: usize> {
    /// These elements.
    pub first: Vec<T>,
    /// The list had no further elements.
    pub is_all: bool,
}

/// The first `N` entries of a map of strings, such as labels. The decoder skips all further entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FewEntries<const N: usize>(pub BTreeMap<String, String>);

/// An empty list without further elements.
impl<T, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Self {
            first: Vec::new(),
            is_all: true,
        }
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for Few<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements<T, const N: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Elements<T, N> {
            type Value = Few<T, N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Few::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
                let mut few = Few::default();
                while few.first.len() < N {
                    match elements.next_element()? {
                        Some(element) => few.first.push(element),
                        None => return Ok(few),
                    }
                }
                while elements.next_element::<IgnoredAny>()?.is_some() {
                    few.is_all = false;
                }
                Ok(few)
            }
        }
        // A server writes `null` for a list that is empty.
        deserializer.deserialize_any(Elements(PhantomData))
    }
}

impl<'de, const N: usize> Deserialize<'de> for FewEntries<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<const N: usize>;
        impl<'de, const N: usize> Visitor<'de> for Entries<N> {
            type Value = FewEntries<N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(FewEntries::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
                let mut few = BTreeMap::new();
                while few.len() < N {
                    match entries.next_entry()? {
                        Some((key, value)) => few.insert(key, value),
                        None => return Ok(FewEntries(few)),
                    };
                }
                while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(FewEntries(few))
            }
        }
        deserializer.deserialize_any(Entries::<N>)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn few(text: &str) -> Few<u8, 2> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn of_a_list_the_first_are_kept() {
        assert_eq!(few("null"), Few::default());
        assert_eq!(few("[]"), Few::default());
        for (text, first, is_all) in [("[1]", vec![1], true), ("[1,2]", vec![1, 2], true)] {
            assert_eq!(few(text), Few { first, is_all });
        }
        let cut = Few {
            first: vec![1, 2],
            is_all: false,
        };
        assert_eq!(few("[1,2,3]"), cut);
        // The skipped elements may have any type.
        assert_eq!(few("[1,2,[[{\"a\":{}}]],null]"), cut);
        assert!(serde_json::from_str::<Few<u8, 2>>("[1,\"a\"]").is_err());
        assert!(serde_json::from_str::<Few<u8, 2>>("{}").is_err());
    }

    #[test]
    fn of_a_map_the_first_are_kept() {
        let few = |text: &str| serde_json::from_str::<FewEntries<1>>(text);
        let one = FewEntries(BTreeMap::from([("a".to_owned(), "b".to_owned())]));
        assert_eq!(few("null").unwrap(), FewEntries::default());
        assert_eq!(few("{}").unwrap(), FewEntries::default());
        assert_eq!(few(r#"{"a":"b"}"#).unwrap(), one);
        assert_eq!(few(r#"{"a":"b","c":"d","e":7}"#).unwrap(), one);
        assert!(few(r#"{"a":7}"#).is_err());
    }
}
