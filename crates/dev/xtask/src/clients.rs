//! Every client of an API server, an object store, an etcd or a name server needs a permit. Every independent
//! permit is in a list.
//!
//! `clippy.toml` refuses some constructors of API clients by name; this check covers the rest, such as
//! `TryFrom`. Tests may create any client.

/// Constructors of clients for outside systems, the files that may call the constructors, and the replacement
/// for all further files.
struct Way {
    code: &'static [&'static str],
    files: &'static [&'static str],
    instead: &'static str,
}

const WAYS: &[Way] = &[
    Way {
        code: &["Client::try_from(", "Client::try_default(", "ClientBuilder"],
        files: &["crates/core/runtime/src/client/connection.rs"],
        instead: "take runtime::client::Connection",
    },
    Way {
        code: &[
            "AmazonS3Builder::",
            "ReqwestConnector",
            "reqwest::",
            "Client::builder(",
        ],
        files: &[
            "crates/components/etcd-backup-restore/src/store/credentials.rs",
            "crates/local-cloud/provider-local/src/object_store/place.rs",
        ],
        instead: "take the object store of the crate, whose every request asks a permit",
    },
    Way {
        code: &["Endpoint::from_", "Channel::from_"],
        files: &["crates/components/etcd-backup-restore/src/etcd/mod.rs"],
        instead: "take the etcd client, whose every request asks a permit",
    },
    Way {
        code: &["TcpStream::connect(", "UdpSocket::bind("],
        files: &[
            "crates/local-cloud/cloud-local/src/dns/server.rs",
            // The owner check: only reads, and is the source of permits.
            "crates/core/ownership/src/wire.rs",
            // The gate before etcd: checks the permit before each write, and answers nothing without a
            // permit.
            "crates/components/etcd-backup-restore/src/owner/gate.rs",
            "crates/components/etcd-backup-restore/src/owner/peer.rs",
            // The gate behind Kubernetes' cloud-controller-manager, with the same check before each write.
            "crates/providers/aws/cloud-controller-manager-aws/src/gate.rs",
            // The tunnel's agent: runs in the shoot, and connects only to targets that the API server
            // requests.
            "crates/components/tunnel/src/agent/reach.rs",
            "crates/components/tunnel/src/agent/way.rs",
            // The connection of a shoot's pods to the API: passes connections on and sends no request.
            "crates/components/tunnel/src/api_proxy/front.rs",
            // Asks the kernel whether an address belongs to this machine; sends no packet.
            "crates/components/tunnel/src/api_proxy/address.rs",
        ],
        instead: "take cloud_local::dns, whose every question asks a permit",
    },
    Way {
        code: &["HttpConnector::new("],
        files: &["crates/core/permit/src/connection.rs"],
        instead: "take permit::PermittedConnector, whose connections end with the permit",
    },
];

/// The uses of `Permit::sole` outside of tests, with the purpose: every further action needs a lock.
const SOLE: &[(&str, &str)] = &[
    ("crates/core/manager/src/process.rs", "the election itself"),
    (
        "crates/core/leader-migration/src/locks.rs",
        "a process whose leader election is switched off",
    ),
    (
        "crates/providers/aws/cloud-controller-manager-aws/src/main.rs",
        "a program that takes its lock by itself, beside the owner check",
    ),
    (
        "crates/providers/aws/provider-aws/src/main.rs",
        "the heartbeat, also of a process that waits",
    ),
    (
        "crates/local-cloud/provider-local/src/main.rs",
        "the heartbeat, also of a process that waits",
    ),
    (
        "crates/components/etcd-backup-restore/src/main.rs",
        "the process beside an etcd, and those that prepare its data",
    ),
    (
        "crates/local-cloud/network-local/src/main.rs",
        "an agent on each machine, which only reads",
    ),
    (
        "crates/local-cloud/cloud-local-agent/src/main.rs",
        "an agent on each host of the local cloud, which writes only what its own kernel has",
    ),
    (
        "crates/cli/kubectl-repot/src/connect.rs",
        "a command of a person, whose writes have the version that was read as a precondition",
    ),
];

/// The group of the crates that only tests and people use.
const DEVELOPMENT: &str = "crates/dev/";

/// Breaches in a file. `path` is relative to the repository.
pub fn in_file(path: &str, text: &str) -> Vec<String> {
    if !is_shipped(path) {
        return Vec::new();
    }
    let mut breaches = Vec::new();
    let shipped = text.split("\nmod tests {").next().unwrap_or_default();
    for (number, line) in shipped.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let place = format!("{path}:{}", number + 1);
        let made = |way: &&Way| way.code.iter().any(|made| code.contains(made)) && !way.files.contains(&path);
        if let Some(way) = WAYS.iter().find(made) {
            breaches.push(format!("{place}: a client without a permit; {}", way.instead));
        }
        if code.contains("Permit::sole(") && !SOLE.iter().any(|(file, _)| *file == path) {
            breaches.push(format!(
                "{place}: a permit that stands for itself; take the one of the lock, or add the file to {}",
                file!()
            ));
        }
    }
    breaches
}

/// Entries of the list that do not match the code.
pub fn in_list(read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    SOLE.iter()
        .filter(|(file, _)| read(file).is_none_or(|text| !text.contains("Permit::sole(")))
        .map(|(file, reason)| format!("{file} is listed for {reason}, but uses no Permit::sole"))
        .collect()
}

fn is_shipped(path: &str) -> bool {
    path.starts_with("crates/")
        && path.contains("/src/")
        && !path.starts_with(DEVELOPMENT)
        && !path.contains("/permit/src/")
        && !path
            .trim_end_matches(".rs")
            .split('/')
            .any(|part| part == "tests" || part.ends_with("_tests"))
}

#[cfg(test)]
mod tests {
    use super::{in_file, in_list};

    #[test]
    fn a_client_without_a_permit_is_found() {
        let made = "fn f() {\n    let c = Client::try_from(config)?;\n}\n";
        assert_eq!(
            in_file("crates/core/gardenlet/src/a.rs", made),
            ["crates/core/gardenlet/src/a.rs:2: a client without a permit; take runtime::client::Connection"]
        );
        for fine in [
            "crates/core/runtime/src/client/connection.rs",
            "crates/core/gardenlet/src/tests/a.rs",
            "crates/core/gardenlet/src/a_tests.rs",
            "crates/core/gardenlet/tests/a.rs",
            "crates/dev/testkit/src/a.rs",
        ] {
            assert!(in_file(fine, made).is_empty(), "{fine}");
        }
        for made in [
            "    let s = AmazonS3Builder::new();\n",
            "    let e = Endpoint::from_static(url);\n",
            "    let s = TcpStream::connect(address).await?;\n",
        ] {
            assert_eq!(in_file("crates/core/gardenlet/src/a.rs", made).len(), 1, "{made}");
        }
        let in_test = format!("fn g() {{}}\n#[cfg(test)]\nmod tests {{\n{made}}}\n");
        assert!(in_file("crates/core/gardenlet/src/a.rs", &in_test).is_empty());
    }

    #[test]
    fn a_permit_that_stands_for_itself_is_listed() {
        let used = "let p = Permit::sole(\"why\");\n";
        assert_eq!(in_file("crates/core/gardenlet/src/main.rs", used).len(), 1);
        assert!(in_file("crates/local-cloud/provider-local/src/main.rs", used).is_empty());
        assert_eq!(in_list(|_| Some(String::new())).len(), super::SOLE.len());
        assert!(in_list(|_| Some(used.to_owned())).is_empty());
    }
}
