//! The shapes that users, dashboards and providers of Gardener rely on: scopes, short names, columns,
//! subresources, selectable fields and required fields of every kind.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use serde_json::Value;

/// Kind, `C`luster or `N`amespace, short names, subresources, columns, required fields of `.spec` (or of the
/// top).
const KINDS: &[(&str, char, &str, &str, &str, &str)] = &[
    (
        "core.gardener.cloud/BackupBucket",
        'C',
        "bbc",
        "status",
        "Provider Seed Operation Progress Age",
        "provider",
    ),
    (
        "core.gardener.cloud/BackupEntry",
        'N',
        "bec",
        "status",
        "Bucket Seed Operation Progress Age",
        "bucketName",
    ),
    (
        "core.gardener.cloud/CloudProfile",
        'C',
        "cprofile cpfl",
        "",
        "Provider Age",
        "kubernetes regions type",
    ),
    (
        "core.gardener.cloud/ControllerDeployment",
        'C',
        "ctrldeploy",
        "",
        "Age",
        "",
    ),
    (
        "core.gardener.cloud/ControllerInstallation",
        'C',
        "ctrlinst",
        "status",
        "Registration Cluster Valid Installed Healthy Progressing Age",
        "registrationRef",
    ),
    (
        "core.gardener.cloud/ControllerRegistration",
        'C',
        "ctrlreg",
        "",
        "Resources Age",
        "",
    ),
    (
        "core.gardener.cloud/InternalSecret",
        'N',
        "ins",
        "",
        "Type Age",
        "",
    ),
    (
        "core.gardener.cloud/Project",
        'C',
        "",
        "status",
        "Namespace Status Owner Creator Age",
        "",
    ),
    (
        "core.gardener.cloud/SecretBinding",
        'N',
        "sb",
        "",
        "Secret Provider Age",
        "secretRef",
    ),
    (
        "core.gardener.cloud/Seed",
        'C',
        "",
        "status",
        "Status Last_Operation Operation_State Provider Region Age Version K8S_Version",
        "dns networks provider",
    ),
    (
        "core.gardener.cloud/Shoot",
        'N',
        "",
        "status",
        "CloudProfile Provider Region Seed K8S_Version Hibernated Last_Operation State Progress Status Target_Seed \
         Purpose Gardener_Version APIServer Control Observability Nodes System Isolated_Zone Isolation Isolation_Status \
         Age",
        "provider region",
    ),
    ("core.gardener.cloud/ShootState", 'N', "", "", "Age", ""),
    (
        "security.gardener.cloud/CredentialsBinding",
        'N',
        "cb",
        "",
        "Provider Credentials_APIVersion Credentials_Kind Credentials_Name Age",
        "credentialsRef provider",
    ),
    (
        "druid.gardener.cloud/Etcd",
        'N',
        "",
        "scale status",
        "Ready Quorate All_Members_Ready Backup_Ready Cluster_ID_Mismatch Age Cluster_Size Current_Replicas \
         Ready_Replicas",
        "backup etcd labels replicas",
    ),
    (
        "druid.gardener.cloud/EtcdCopyBackupsTask",
        'N',
        "",
        "status",
        "Age",
        "sourceStore targetStore",
    ),
    (
        "extensions.gardener.cloud/BackupBucket",
        'C',
        "bb",
        "status",
        "Type Region State Age",
        "region secretRef type",
    ),
    (
        "extensions.gardener.cloud/BackupEntry",
        'C',
        "be",
        "status",
        "Type Region Bucket State Age",
        "bucketName region secretRef type",
    ),
    (
        "extensions.gardener.cloud/Bastion",
        'N',
        "",
        "status",
        "IP Hostname Age",
        "ingress type userData",
    ),
    (
        "extensions.gardener.cloud/Cluster",
        'C',
        "",
        "status",
        "Age",
        "cloudProfile shoot",
    ),
    (
        "extensions.gardener.cloud/ContainerRuntime",
        'N',
        "cr",
        "status",
        "Type Status Age",
        "binaryPath type workerPool",
    ),
    (
        "extensions.gardener.cloud/ControlPlane",
        'N',
        "cp",
        "status",
        "Type Status Age",
        "region secretRef type",
    ),
    (
        "extensions.gardener.cloud/DNSRecord",
        'N',
        "dns",
        "status",
        "Type Domain_Name Record_Type Status Age",
        "name recordType secretRef type values",
    ),
    (
        "extensions.gardener.cloud/Extension",
        'N',
        "ext",
        "status",
        "Type Status Age",
        "type",
    ),
    (
        "extensions.gardener.cloud/Infrastructure",
        'N',
        "infra",
        "status",
        "Type Region Status Age",
        "region secretRef type",
    ),
    (
        "extensions.gardener.cloud/Network",
        'N',
        "",
        "status",
        "Type Pod_CIDR Service_CIDR Status Age",
        "podCIDR serviceCIDR type",
    ),
    (
        "extensions.gardener.cloud/OperatingSystemConfig",
        'N',
        "osc",
        "status",
        "Type Purpose Status Age",
        "purpose type",
    ),
    (
        "extensions.gardener.cloud/SelfHostedShootExposure",
        'N',
        "exp",
        "status",
        "Type IP Hostname Status Age",
        "endpoints port type",
    ),
    (
        "extensions.gardener.cloud/SubnetIsolation",
        'N',
        "",
        "status",
        "Type Region Zone_ID Status Zone Message Age",
        "isolatedZoneID region secretRef type",
    ),
    (
        "extensions.gardener.cloud/Worker",
        'N',
        "",
        "status",
        "Type Region Status Isolated_Zone Age",
        "pools region secretRef type",
    ),
    (
        "machine.sapcloud.io/Machine",
        'N',
        "mc",
        "status",
        "Status Age Node ProviderID",
        "",
    ),
    (
        "machine.sapcloud.io/MachineClass",
        'N',
        "mcc",
        "",
        "",
        "providerSpec",
    ),
    (
        "machine.sapcloud.io/MachineDeployment",
        'N',
        "mcd",
        "scale status",
        "Ready Desired Up-to-date Available Age",
        "template",
    ),
    (
        "machine.sapcloud.io/MachineSet",
        'N',
        "mcs",
        "scale status",
        "Desired Current Ready Age",
        "",
    ),
    (
        "resources.gardener.cloud/ManagedResource",
        'N',
        "mr",
        "status",
        "Class Applied Healthy Progressing Age",
        "secretRefs",
    ),
];

#[test]
fn kinds_look_as_known() {
    let definitions: BTreeMap<String, Value> = definitions();
    assert_eq!(definitions.len(), KINDS.len(), "every kind is in the table");
    for (kind, scope, short_names, subresources, columns, required) in KINDS {
        let definition = &definitions[*kind];
        let version = &definition["spec"]["versions"][0];
        let schema = &version["schema"]["openAPIV3Schema"];
        let top = if schema["properties"]["spec"].is_null() {
            schema
        } else {
            &schema["properties"]["spec"]
        };
        assert!(
            definition["spec"]["scope"].as_str().unwrap().starts_with(*scope),
            "{kind}: scope"
        );
        assert_eq!(
            words(&definition["spec"]["names"]["shortNames"]),
            *short_names,
            "{kind}: short names"
        );
        let keys: Vec<_> = version["subresources"]
            .as_object()
            .into_iter()
            .flat_map(|o| o.keys())
            .collect();
        let mut keys: Vec<_> = keys.into_iter().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys.join(" "), *subresources, "{kind}: subresources");
        let names: Vec<_> = version["additionalPrinterColumns"]
            .as_array()
            .into_iter()
            .flatten()
            .collect();
        let names: Vec<_> = names
            .iter()
            .map(|c| c["name"].as_str().unwrap().replace(' ', "_"))
            .collect();
        assert_eq!(names.join(" "), *columns, "{kind}: columns");
        assert_eq!(words(&top["required"]), *required, "{kind}: required fields");
    }
}

/// Extensions of other providers read and write exactly these fields, on any kind.
#[test]
fn extension_kinds_share_spec_and_status() {
    for (kind, definition) in definitions() {
        if !kind.starts_with("extensions.gardener.cloud/") || kind.ends_with("/Cluster") {
            continue;
        }
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        for field in ["type", "class", "providerConfig"] {
            assert!(
                schema["spec"]["properties"].get(field).is_some(),
                "{kind}: spec.{field}"
            );
        }
        let status = [
            "providerStatus",
            "conditions",
            "lastError",
            "lastOperation",
            "observedGeneration",
            "state",
        ];
        for field in status.into_iter().chain(["resources"]) {
            assert!(
                schema["status"]["properties"].get(field).is_some(),
                "{kind}: status.{field}"
            );
        }
        for path in ["/spec/properties/providerConfig", "/status/properties/state"] {
            let free = schema.pointer(path).unwrap();
            assert_eq!(
                free["x-kubernetes-preserve-unknown-fields"], true,
                "{kind}: {path}"
            );
        }
    }
}

/// A field may be missing exactly if the type is an `Option` or has a default: attributes with a separate
/// schema have hidden such a fault before.
#[test]
fn optional_fields_stay_optional() {
    for (kind, definition) in definitions() {
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        walk(schema, &mut |path, node| {
            let Some(required) = node["required"].as_array() else {
                return;
            };
            for name in required {
                let property = &node["properties"][name.as_str().unwrap()];
                assert_ne!(
                    property["nullable"], true,
                    "{kind}{path}.{name}: required, and yet may be null"
                );
            }
        });
    }
}

fn definitions() -> BTreeMap<String, Value> {
    api::all_crds()
        .into_iter()
        .map(|crd| {
            let key = format!("{}/{}", crd.definition.spec.group, crd.definition.spec.names.kind);
            (key, serde_json::to_value(crd.definition).unwrap())
        })
        .collect()
}

fn words(list: &Value) -> String {
    let words: Vec<_> = list
        .as_array()
        .into_iter()
        .flatten()
        .map(|word| word.as_str().unwrap())
        .collect();
    words.join(" ")
}

fn walk(node: &Value, visit: &mut dyn FnMut(&str, &Value)) {
    fn go(path: &str, node: &Value, visit: &mut dyn FnMut(&str, &Value)) {
        visit(path, node);
        for (name, property) in node["properties"].as_object().into_iter().flatten() {
            go(&format!("{path}.{name}"), property, visit);
        }
        if node["items"].is_object() {
            go(&format!("{path}[]"), &node["items"], visit);
        }
    }
    go("", node, visit);
}
