//! ControlPlane: nothing is put beside a shoot's control plane yet. Its Nodes need no cloud-controller-manager to join, as a kubelet
//! registers under its Machine's name; what it does for load balancers, routes and volumes is told to be missing in docs/provider-aws.md.

use api::extensions::ControlPlane;
use extension::{
    Context,
    control_plane::{ControlPlaneParts, Parts},
};
use owner_checks::OwnerClaim;
use runtime::Result;

use crate::zone;

/// What is beside a control plane.
pub struct AwsControlPlane;

impl ControlPlaneParts for AwsControlPlane {
    const PROCESSES: &'static [&'static str] = &[];
    const CONFIG_MAPS: &'static [&'static str] = &[];

    fn parts(&self, context: &Context<ControlPlane>, _: Option<&OwnerClaim>) -> Result<Parts> {
        // A shoot without a network is told here, and not when the first machine is made.
        zone::infrastructure(context.object.spec.infrastructure_provider_status.as_ref())?;
        Ok(Parts::default())
    }
}
