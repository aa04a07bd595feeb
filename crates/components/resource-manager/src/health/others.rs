//! Health of objects without pods that a cluster has to complete.

use serde_json::Value;

use super::verdict::{Health, condition};

pub(super) fn claim(object: &Value) -> Health {
    Health::unless(
        object["status"]["phase"] == "Bound",
        "it is not bound to a volume",
    )
}

/// A load balancer needs an address; other Services are always healthy.
pub(super) fn service(object: &Value) -> Health {
    let addresses = object["status"]["loadBalancer"]["ingress"]
        .as_array()
        .map_or(0, Vec::len);
    Health::unless(
        object["spec"]["type"] != "LoadBalancer" || addresses > 0,
        "its load balancer has no address yet",
    )
}

pub(super) fn definition(object: &Value) -> Health {
    match (
        condition(object, "NamesAccepted"),
        condition(object, "Established"),
    ) {
        (Some(("False", reason)), _) => Health::wrong(format!("its names are not accepted ({reason})")),
        (_, Some(("True", _))) => Health::default(),
        _ => Health::wrong("its kind is not served yet"),
    }
}

pub(super) fn api_service(object: &Value) -> Health {
    match condition(object, "Available") {
        Some(("True", _)) => Health::default(),
        Some((_, reason)) => Health::wrong(format!("it is not available ({reason})")),
        None => Health::wrong("it is not known to be available"),
    }
}
