//! Steps that expose the API of the shoot.

use flow::TaskId;
use parts::{DnsRecords, Facts, KubeApiserverExposure, KubeApiserverService};

use super::graph::{ShootGraph, Steps};

/// Adds the steps that expose the API: the Service of kube-apiserver, the SNI rule of the edge, and the DNS
/// records. The records wait for the address of the edge, and for `names_after`.
pub(crate) fn expose<'a>(
    g: &mut ShootGraph<'a>,
    f: &'a Facts,
    after: [TaskId; 3],
    names_after: Option<TaskId>,
) -> TaskId {
    let [service, front] = g.deploy_in_two::<KubeApiserverService>(f, after);
    let exposure = g.step(KubeApiserverExposure::DEPLOY, f, service);
    let exposed = || [exposure, front].into_iter().chain(names_after);
    let internal = g.step(DnsRecords::DEPLOY_INTERNAL, f, exposed());
    let external = g.step(DnsRecords::DEPLOY_EXTERNAL, f, exposed());
    g.step(DnsRecords::READY, f, [internal, external]);
    service
}
