//! What a provider writes for SubnetIsolations.

use std::fmt::Debug;

use api::extensions::SubnetIsolation;
use async_trait::async_trait;
use runtime::Result;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::Context;

/// What a provider says of the network of zones. Every call may be repeated after success, after failure and
/// after having been dropped half way.
#[async_trait]
pub trait ZoneNetwork: Send + Sync + 'static {
    /// Name of the controller in metrics, spans and logs.
    const NAME: &'static str = "subnetisolation";
    /// Group and version of `status.providerStatus`.
    const API_VERSION: &'static str;

    /// What was there before the first change, as much as [`ZoneNetwork::open`] needs. It is written into
    /// `status.state` before [`ZoneNetwork::close`] is called, moves with the shoot, and is shown in
    /// `status.providerStatus`: no secret may be in it.
    type Before: Serialize + DeserializeOwned + Clone + PartialEq + Debug + Send + Sync;

    /// What the account calls the zone with the ID in the object's spec: the name that pools have.
    ///
    /// # Errors
    /// No zone has the ID, several names have it, or the shoot does not use the zone:
    /// [`runtime::Error::Config`].
    async fn zone_code(&self, context: &Context<SubnetIsolation>) -> Result<String>;

    /// Looks at what is there, and changes nothing. `known`: what was remembered; it stays, and only what was
    /// not known is added, as a subnet that is new. With nothing remembered the network may be closed by us
    /// all the same, where a seed died before its state was carried: what was there before has to be told
    /// from our own marks (tags) then, or is refused.
    ///
    /// # Errors
    /// It cannot be told what was there: [`runtime::Error::Config`].
    async fn look(
        &self,
        context: &Context<SubnetIsolation>,
        zone: &str,
        known: Option<&Self::Before>,
    ) -> Result<Self::Before>;

    /// Makes what closes the network, without closing it, and returns `before` with what
    /// [`ZoneNetwork::open`] needs to find it: the id of an object that a cloud does not list yet. It is kept
    /// as `before` is, before [`ZoneNetwork::close`] is called.
    ///
    /// # Errors
    /// As for [`ZoneNetwork::close`].
    async fn prepare(&self, _: &Context<SubnetIsolation>, before: &Self::Before) -> Result<Self::Before> {
        Ok(before.clone())
    }

    /// Closes the network of the zone for this shoot, or mends what somebody has changed of ours. Returns
    /// when the network confirms that no packet goes in or out. What it returns are fields of
    /// `status.providerStatus`; the same as long as nothing changes.
    ///
    /// # Errors
    /// It is not confirmed yet: [`runtime::Error::NotReady`].
    async fn close(
        &self,
        context: &Context<SubnetIsolation>,
        zone: &str,
        before: &Self::Before,
    ) -> Result<Map<String, Value>>;

    /// Puts back what was there, and takes away only what is ours; what somebody has changed by hand since is
    /// left and told. Success means that the network confirms it: what was closed a moment ago and is not
    /// shown yet does not count as open. `before` is missing where nothing was remembered: what is ours is
    /// told by its marks, and there may be none. `deleting`: the whole shoot goes, so that what cannot be put
    /// back may be replaced by whatever the cloud has as default. That nothing is closed is success.
    ///
    /// # Errors
    /// What was there before is gone: [`runtime::Error::Config`], with what to do by hand.
    async fn open(
        &self,
        context: &Context<SubnetIsolation>,
        before: Option<&Self::Before>,
        deleting: bool,
    ) -> Result<()>;
}
