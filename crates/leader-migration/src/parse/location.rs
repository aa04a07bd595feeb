//! Where in the text a value stands.
//!
//! The YAML library tells places only of errors. So a place is found by reading the text once more, walking down the path
//! that is asked for, and failing there on purpose: the error then carries the place. Configurations are small and this is
//! done for wrong ones only.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A way down into a document: `controllerLeaders[2].name`.
#[derive(Clone, Debug, Default)]
pub(super) struct Place(Vec<Step>);

#[derive(Clone, Debug)]
enum Step {
    /// The value of a key.
    Field(String),
    /// The key itself.
    Key(String),
    /// An element of a list.
    Element(usize),
}

impl Place {
    /// The value of this field below here.
    pub(super) fn field(&self, name: &str) -> Self {
        self.with(Step::Field(name.to_owned()))
    }

    /// This key below here, where it is the key that is wrong.
    pub(super) fn key(&self, name: &str) -> Self {
        self.with(Step::Key(name.to_owned()))
    }

    /// This element of the list here, counted from 0.
    pub(super) fn element(&self, index: usize) -> Self {
        self.with(Step::Element(index))
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The line on which it begins, counted from 1; of the nearest thing around it, if it is not there itself.
    pub(super) fn line(&self, text: &str) -> Option<usize> {
        let found = Walk(&self.0).deserialize(serde_yaml_ng::Deserializer::from_str(text));
        found.err()?.location().map(|place| place.line())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) | Step::Key(name) if number == 0 => write!(f, "{name}")?,
                Step::Field(name) | Step::Key(name) => write!(f, ".{name}")?,
                Step::Element(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// What an error at the place that was looked for says; nobody reads it.
const HERE: &str = "here";

/// Walks down the steps and fails at their end. Whatever is of another shape than the steps fails too, at its own place.
struct Walk<'s>(&'s [Step]);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HERE)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        match self.0 {
            [Step::Key(name), ..] => {
                while map.next_key_seed(Key { name, fail: true })?.is_some() {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            [Step::Field(name), rest @ ..] => {
                while let Some(found) = map.next_key_seed(Key { name, fail: false })? {
                    if found {
                        return map.next_value_seed(Walk(rest));
                    }
                    map.next_value::<IgnoredAny>()?;
                }
            }
            _ => {}
        }
        Err(A::Error::custom(HERE))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if let [Step::Element(index), rest @ ..] = self.0 {
            for _ in 0..*index {
                list.next_element::<IgnoredAny>()?;
            }
            list.next_element_seed(Walk(rest))?;
        }
        Err(A::Error::custom(HERE))
    }
}

/// Compares a key with a name; on request fails where they are equal.
struct Key<'s> {
    name: &'s str,
    fail: bool,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<bool, E> {
        if self.fail && key == self.name {
            return Err(E::custom(HERE));
        }
        Ok(key == self.name)
    }
}
