//! Steps by which the shoot's API is reached.

use botanist::Botanist;
use flow::{Graph, TaskId};
use runtime::Error;

/// The address under which the API is reached: the seed's front, the SNI rule, and the DNS records.
pub(super) fn expose<'a>(g: &mut Graph<'a, Error>, b: &'a Botanist, after: [TaskId; 3]) -> TaskId {
    let service = g.step(
        "Deploying Kubernetes API server service in the Seed cluster",
        after,
        || b.deploy_kube_apiserver_service(),
    );
    let exposure = g.step("Exposing Kubernetes API server by its names", service, || {
        b.deploy_exposure()
    });
    let front = g.step(
        "Waiting until Kubernetes API server service in the Seed cluster has reported readiness",
        service,
        || b.wait_until_kube_apiserver_service_ready(),
    );
    let internal = g.step("Deploying internal domain DNS record", [exposure, front], || {
        b.deploy_internal_dns_record()
    });
    let external = g.step("Deploying external domain DNS record", [exposure, front], || {
        b.deploy_external_dns_record()
    });
    g.step(
        "Waiting until DNS records are ready",
        [internal, external],
        || b.wait_until_dns_records_ready(),
    );
    service
}
