//! The values for a chart: the values of the operator, overlaid with facts about the garden and the seed.
//! Pure.

use api::gardencore::Seed;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

/// The facts under `.Values.gardener`, with the names that charts of extensions use.
pub(super) fn of_seed(seed: &Seed, garden_identity: &str) -> Value {
    let spec = &seed.spec;
    let identity = seed
        .status
        .as_ref()
        .and_then(|status| status.cluster_identity.as_deref());
    json!({"gardener": {
        "version": env!("CARGO_PKG_VERSION"),
        "garden": {"clusterIdentity": garden_identity},
        "seed": {
            "name": seed.name_any(),
            "clusterIdentity": identity,
            "annotations": seed.annotations(),
            "labels": seed.labels(),
            "provider": spec.provider.type_,
            "region": spec.provider.region,
            "networks": spec.networks,
            "blockCIDRs": spec.networks.block_cidrs,
            "taints": spec.taints,
            "ingressDomain": spec.ingress.as_ref().map(|ingress| json!(ingress)["domain"].clone()),
            "spec": spec,
        },
    }})
}

/// Merges both values into a map; `above` takes precedence, map by map.
pub(super) fn merged(below: Option<&Value>, above: Value) -> Value {
    match (below, above) {
        (Some(Value::Object(below)), Value::Object(above)) => {
            let mut all: Map<String, Value> = below.clone();
            for (key, value) in above {
                let value = merged(below.get(&key), value);
                all.insert(key, value);
            }
            Value::Object(all)
        }
        (_, above) => above,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_known_wins_and_leaves_the_rest() {
        let below =
            json!({"image": {"tag": "v1"}, "gardener": {"seed": {"name": "wrong", "mine": 1}}, "none": null});
        let above = json!({"gardener": {"seed": {"name": "a"}}});
        let all =
            json!({"image": {"tag": "v1"}, "gardener": {"seed": {"name": "a", "mine": 1}}, "none": null});
        assert_eq!(merged(Some(&below), above.clone()), all);
        assert_eq!(merged(None, above.clone()), above);
        assert_eq!(merged(Some(&json!({"gardener": "text"})), above.clone()), above);
    }

    #[test]
    fn a_chart_knows_its_seed() {
        let spec = json!({
            "dns": {}, "networks": {"pods": "10.0.0.0/16", "services": "10.1.0.0/16", "blockCIDRs": ["169.254.0.0/16"]},
            "provider": {"type": "metal", "region": "here"}, "ingress": {"domain": "i.example", "controller": {"kind": "nginx"}},
        });
        let mut seed = Seed::new("a", serde_json::from_value(spec).unwrap());
        seed.status = serde_json::from_value(json!({"clusterIdentity": "uid"})).unwrap();
        let values = of_seed(&seed, "garden");
        for (path, value) in [
            ("/gardener/garden/clusterIdentity", json!("garden")),
            ("/gardener/seed/name", json!("a")),
            ("/gardener/seed/clusterIdentity", json!("uid")),
            ("/gardener/seed/provider", json!("metal")),
            ("/gardener/seed/region", json!("here")),
            ("/gardener/seed/blockCIDRs/0", json!("169.254.0.0/16")),
            ("/gardener/seed/ingressDomain", json!("i.example")),
            ("/gardener/seed/spec/networks/pods", json!("10.0.0.0/16")),
        ] {
            assert_eq!(values.pointer(path), Some(&value), "{path}");
        }
    }
}
