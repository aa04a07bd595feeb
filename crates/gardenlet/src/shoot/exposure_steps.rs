//! Steps that expose the API of the shoot.

use flow::{Graph, TaskId};
use parts::{DnsRecords, Exposure, Facts, KubeApiserverService};
use runtime::Error;

use super::graph::Steps;

/// Adds the steps that expose the API: the Service of kube-apiserver, the SNI rule of the edge, and the DNS
/// records. The records wait for the address of the edge, and for `names_after`.
pub(super) fn expose<'a>(
    g: &mut Graph<'a, Error>,
    f: &'a Facts,
    after: [TaskId; 3],
    names_after: Option<TaskId>,
) -> TaskId {
    let [service, front] = g.deploy_in_two::<KubeApiserverService>(f, after);
    let exposure = g.step("Exposing Kubernetes API server by its names", service, || {
        Exposure::deploy(f)
    });
    let exposed = || [exposure, front].into_iter().chain(names_after);
    let internal = g.step("Deploying internal domain DNS record", exposed(), || {
        DnsRecords::deploy_internal(f)
    });
    let external = g.step("Deploying external domain DNS record", exposed(), || {
        DnsRecords::deploy_external(f)
    });
    g.step(
        "Waiting until DNS records are ready",
        [internal, external],
        || DnsRecords::ready(f),
    );
    service
}
