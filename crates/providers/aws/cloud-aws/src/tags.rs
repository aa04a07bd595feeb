//! Tags: a seed finds the objects of a cluster by tags, also without a record of a former seed.
//!
//! Each object of a provider has the tag `kubernetes.io/cluster/<technical id>` and a `Name` that describes
//! the object. The object has both tags from the creating call on. An object that loses a tag by hand is made
//! again. A removal finds an object without tags only by the id in the state.

use serde::Deserialize;

/// Prefix of the key of a cluster's tag.
const CLUSTER: &str = "kubernetes.io/cluster/";
/// The value of the cluster's tag: the cluster made the object, and removes the object.
const OWNED: &str = "1";
/// Key of the tag with the uid of the Shoot: two gardens may use a technical id in the same account.
pub const SHOOT_UID: &str = "aws.provider.extensions.gardener.cloud/shoot-uid";
/// The tag that names a thing, for people too.
pub const NAME: &str = "Name";

/// A tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Tag {
    /// The key of the tag.
    pub key: String,
    /// The value of the tag.
    #[serde(default)]
    pub value: String,
}

impl Tag {
    /// A tag.
    #[must_use]
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
        }
    }
}

/// The objects of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    cluster: String,
    shoot_uid: Option<String>,
}

impl Owned {
    /// Those of the shoot with this technical id.
    #[must_use]
    pub fn by(technical_id: &str) -> Self {
        Self {
            cluster: technical_id.to_owned(),
            shoot_uid: None,
        }
    }

    /// The same with the uid of the Shoot. Without a uid no object is foreign.
    #[must_use]
    pub fn of_shoot(self, uid: Option<&str>) -> Self {
        Self {
            shoot_uid: uid.map(str::to_owned),
            ..self
        }
    }

    /// The uid of the Shoot.
    #[must_use]
    pub fn shoot_uid(&self) -> Option<&str> {
        self.shoot_uid.as_deref()
    }

    /// The tags of a thing with this name.
    #[must_use]
    pub fn tags(&self, name: &str) -> Vec<Tag> {
        let mut tags = vec![Tag::new(self.key(), OWNED), Tag::new(NAME, name)];
        tags.extend(self.uid_tag());
        tags
    }

    /// The tag with the uid of the Shoot.
    #[must_use]
    pub fn uid_tag(&self) -> Option<Tag> {
        self.shoot_uid().map(|uid| Tag::new(SHOOT_UID, uid))
    }

    /// The uid of a different Shoot that the object belongs to. An object without the tag is older than the
    /// tag, and belongs to this Shoot.
    #[must_use]
    pub fn foreign_uid<'t>(&self, object: &'t (impl Tagged + ?Sized)) -> Option<&'t str> {
        let own = self.shoot_uid()?;
        object.tag(SHOOT_UID).filter(|uid| *uid != own)
    }

    /// The key of the tag of a different cluster, on an object that lacks the tag of this cluster.
    #[must_use]
    pub fn foreign_cluster<'t>(&self, object: &'t (impl Tagged + ?Sized)) -> Option<&'t str> {
        let own = self.key();
        let mut keys = object.tags().iter().map(|tag| tag.key.as_str());
        if keys.clone().any(|key| key == own) {
            return None;
        }
        keys.find(|key| key.starts_with(CLUSTER))
    }

    /// Whether the tags name a different Shoot or a different cluster.
    #[must_use]
    pub fn is_foreign(&self, object: &(impl Tagged + ?Sized)) -> bool {
        self.foreign_uid(object).is_some() || self.foreign_cluster(object).is_some()
    }

    /// Whether the object has the tag with the uid of this Shoot.
    #[must_use]
    pub fn has_uid(&self, object: &(impl Tagged + ?Sized)) -> bool {
        self.shoot_uid()
            .is_some_and(|own| object.tag(SHOOT_UID) == Some(own))
    }

    /// Whether the object lacks the tag with the uid.
    #[must_use]
    pub fn lacks_uid(&self, object: &(impl Tagged + ?Sized)) -> bool {
        self.shoot_uid.is_some() && object.tag(SHOOT_UID).is_none()
    }

    /// Key of the cluster's tag.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{CLUSTER}{}", self.cluster)
    }

    /// Whether an object belongs to this cluster.
    #[must_use]
    pub fn is(&self, thing: &impl Tagged) -> bool {
        thing.tag(&self.key()) == Some(OWNED)
    }

    /// The filter that selects only objects of this cluster: name and value of the filter.
    #[must_use]
    pub fn filter(&self) -> (String, &'static str) {
        (format!("tag:{}", self.key()), OWNED)
    }
}

/// An object with tags and an id.
pub trait Tagged {
    /// The id of the object in EC2.
    fn id(&self) -> &str;
    /// All tags of the object.
    fn tags(&self) -> &[Tag];

    /// The value of a tag.
    fn tag(&self, key: &str) -> Option<&str> {
        let found = self.tags().iter().find(|tag| tag.key == key);
        found.map(|tag| tag.value.as_str())
    }

    /// The value of the tag `Name`.
    fn name(&self) -> &str {
        self.tag(NAME).unwrap_or_default()
    }
}

/// A list in an answer. EC2 leaves out an empty list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Items<T> {
    #[serde(rename = "item", default = "Vec::new")]
    items: Vec<T>,
}

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self { items: Vec::new() }
    }
}

impl<T> std::ops::Deref for Items<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> From<Items<T>> for Vec<T> {
    fn from(list: Items<T>) -> Self {
        list.items
    }
}

impl<T> From<Vec<T>> for Items<T> {
    fn from(items: Vec<T>) -> Self {
        Self { items }
    }
}

/// For an answer's struct with `id_field` and `tags`.
macro_rules! tagged {
    ($type:ty, $id:ident) => {
        impl $crate::tags::Tagged for $type {
            fn id(&self) -> &str {
                &self.$id
            }

            fn tags(&self) -> &[$crate::tags::Tag] {
                &self.tags
            }
        }
    };
}
pub(crate) use tagged;
