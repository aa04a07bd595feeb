//! service-lb-controller: gives Services of type LoadBalancer an address of the cloud, and releases the
//! address.
//!
//! The finalizer is set before an address is claimed, and removed after the address was released, so that a
//! crash in between loses no address. A Service only shows an address that the ledger of the cloud assigns to
//! exactly this Service. Packets to the address reach the machines before the Service shows the address.
//! Packets are carried by the network of the cloud and kube-proxy, not by this controller.

mod decide;

use std::{net::Ipv4Addr, sync::Arc};

use cloud_local::LoadBalancers;
use futures::Future;
use k8s_openapi::api::core::v1::Service;
use kube::{Api, ResourceExt, runtime::watcher};
use runtime::{
    Error, Result,
    client::{Cluster, Shoot},
    controller::{
        Events, Next, Reconciler, finalizer,
        runner::{self, Settings},
    },
};

pub use decide::{FINALIZER, Need, need, shown, status, traffic, wanted_address};

use crate::MANAGER;

/// The controller.
pub struct ServiceLoadBalancers {
    shoot: Shoot,
    balancers: LoadBalancers,
    events: Events,
}

impl ServiceLoadBalancers {
    /// For the Services of this shoot.
    #[must_use]
    pub fn new(shoot: Shoot, balancers: LoadBalancers, events: Events) -> Self {
        Self {
            shoot,
            balancers,
            events,
        }
    }

    /// Runs until shutdown.
    pub fn run(self, settings: Settings) -> impl Future<Output = ()> + Send {
        let controller = runner::controller(self.shoot.all(), watcher::Config::default(), fingerprint);
        let shoot = self.shoot.clone();
        let api_of = move |service: &Service| services(&shoot, service);
        runner::run(controller, api_of, Arc::new(self), settings)
    }

    async fn ensure(&self, service: &Service) -> Result<()> {
        let (services, name) = (services(&self.shoot, service), service.name_any());
        finalizer::ensure(&services, service, FINALIZER).await?;
        let address = match self.balancer(service).await {
            Ok(address) => address,
            Err(error) => {
                let message = error.to_string();
                self.events
                    .warning(service, "SyncLoadBalancerFailed", &message)
                    .await;
                return Err(error);
            }
        };
        if let Some(status) = status(service, Some(address)) {
            MANAGER.merge_status(&services, &name, &status).await?;
            let message = format!("The load balancer has the address {address}");
            self.events.normal(service, "EnsuredLoadBalancer", &message).await;
        }
        Ok(())
    }

    /// The address of the Service's load balancer, configured for the present ports of the Service.
    async fn balancer(&self, service: &Service) -> Result<Ipv4Addr> {
        let (uid, name) = (uid(service)?, full_name(service));
        let traffic = traffic(service)?;
        let wanted = wanted_address(service);
        let address = self.balancers.ensure(&uid, &name, wanted).await?;
        self.balancers.carry(&uid, &name, address, &traffic).await?;
        Ok(address)
    }

    /// The address is first removed from the status: no further Service gets the address while this Service
    /// shows the address.
    async fn release(&self, service: &Service) -> Result<()> {
        let (services, name) = (services(&self.shoot, service), service.name_any());
        if let Some(status) = status(service, None) {
            MANAGER.merge_status(&services, &name, &status).await?;
        }
        if let Err(error) = self.balancers.release(&uid(service)?).await {
            let message = error.to_string();
            self.events
                .warning(service, "SyncLoadBalancerFailed", &message)
                .await;
            return Err(error);
        }
        let message = "The load balancer is given back";
        self.events.normal(service, "DeletedLoadBalancer", message).await;
        // A fresh read, because the status was written since.
        let Some(current) = services.get_opt(&name).await? else {
            return Ok(());
        };
        if current.uid() != service.uid() {
            return Ok(());
        }
        finalizer::remove(&services, &current, FINALIZER).await
    }
}

impl Reconciler<Service> for ServiceLoadBalancers {
    const NAME: &'static str = "service-lb-controller";

    fn is_responsible(&self, service: &Service) -> bool {
        need(service) != Need::Ignore
    }

    async fn apply(&self, service: Arc<Service>) -> Result<Next> {
        match need(&service) {
            Need::Ignore => {}
            Need::Ensure => self.ensure(&service).await?,
            Need::Release => self.release(&service).await?,
        }
        Ok(Next::Change)
    }

    async fn cleanup(&self, service: Arc<Service>) -> Result<Next> {
        self.apply(service).await
    }
}

fn services(shoot: &Shoot, service: &Service) -> Api<Service> {
    shoot.namespaced(&service.namespace().unwrap_or_default())
}

fn uid(service: &Service) -> Result<String> {
    service.uid().ok_or_else(|| Error::bug("a Service has no uid"))
}

fn full_name(service: &Service) -> String {
    format!(
        "{}/{}",
        service.namespace().unwrap_or_default(),
        service.name_any()
    )
}

/// The input of the decision. The shown address is included, because further writers may overwrite the
/// status.
fn fingerprint(service: &Service) -> Option<u64> {
    runner::fingerprint((
        service.uid(),
        need(service) as u8,
        wanted_address(service),
        shown(service),
        traffic(service).map_err(|why| why.to_string()),
    ))
}
