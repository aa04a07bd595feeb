//! The trait that a provider implements for SubnetIsolations.

use std::fmt::Debug;

use api::extensions::SubnetIsolation;
use async_trait::async_trait;
use runtime::Result;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::Context;

/// The network of zones in a provider's cloud. Every call may be repeated after success, after failure and
/// after an earlier call was dropped midway.
#[async_trait]
pub trait ZoneNetwork: Send + Sync + 'static {
    /// Name of the controller in metrics, spans and logs.
    const NAME: &'static str = "subnetisolation";
    /// Group and version of `status.providerStatus`.
    const API_VERSION: &'static str;

    /// The state before the first change, as much as [`ZoneNetwork::open`] needs. The state is written into
    /// `status.state` before [`ZoneNetwork::close`] is called, moves with the shoot, and is shown in
    /// `status.providerStatus`. The state must not contain a secret.
    type Before: Serialize + DeserializeOwned + Clone + PartialEq + Debug + Send + Sync;

    /// The account's name of the zone with the ID in the object's spec: the name that pools use.
    ///
    /// # Errors
    /// No zone has the ID, several names have the ID, or the shoot does not use the zone:
    /// [`runtime::Error::Config`].
    async fn zone_code(&self, context: &Context<SubnetIsolation>) -> Result<String>;

    /// Reads the present network, and changes nothing. `known`: the recorded state; the state stays, and only
    /// unknown parts are added, such as a new subnet. Without a recorded state, the provider may still have
    /// closed the network, if a seed died before the state was carried. Then the former state has to be
    /// derived from the provider's marks (tags), or the call is refused.
    ///
    /// # Errors
    /// The former state cannot be determined: [`runtime::Error::Config`].
    async fn read_former_state(
        &self,
        context: &Context<SubnetIsolation>,
        zone: &str,
        known: Option<&Self::Before>,
    ) -> Result<Self::Before>;

    /// Creates the resources that close the network, without closing the network. Returns `before` with the
    /// data that [`ZoneNetwork::open`] needs to find the resources: the id of an object that a cloud does not
    /// list yet. The result is recorded like `before`, before [`ZoneNetwork::close`] is called.
    ///
    /// # Errors
    /// As for [`ZoneNetwork::close`].
    async fn prepare(&self, _: &Context<SubnetIsolation>, before: &Self::Before) -> Result<Self::Before> {
        Ok(before.clone())
    }

    /// Closes the network of the zone for this shoot, or fixes foreign changes to the provider's resources.
    /// Returns when the network confirms that no packet goes in or out. The result contains fields of
    /// `status.providerStatus`, equal as long as the network does not change.
    ///
    /// # Errors
    /// Not confirmed yet: [`runtime::Error::NotReady`].
    async fn close(
        &self,
        context: &Context<SubnetIsolation>,
        zone: &str,
        before: &Self::Before,
    ) -> Result<Map<String, Value>>;

    /// Restores the former state, and removes only the provider's own resources; manual changes since then
    /// are kept and reported. Success means that the network confirms the open state: a recent close that the
    /// cloud does not show yet does not count as open. `before` is missing without a recorded state: then
    /// marks identify the provider's resources, if any exist. `deleting`: the whole shoot is deleted, so the
    /// cloud's defaults may replace a state that cannot be restored. An open network is success.
    ///
    /// # Errors
    /// The former resources are gone: [`runtime::Error::Config`], with the manual remedy.
    async fn open(
        &self,
        context: &Context<SubnetIsolation>,
        before: Option<&Self::Before>,
        deleting: bool,
    ) -> Result<()>;
}
