//! The effects of the owner check on the objects.
#![allow(clippy::unwrap_used)]

use api::druid::{Etcd, EventsGateSpec, OwnerCheckSilence, OwnerCheckSpec};
use expect_test::expect_file;
use k8s_openapi::{
    api::core::v1::{Container, PodSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{
    services,
    stateful_set::stateful_set,
    tests::{MAIN, check, defaults, etcd, wanted},
};
use crate::{
    flags::{Defaults, GateProtocol, PreparationBounds},
    wanted::ValidatedEtcd,
};

/// etcd-main of a shoot with an owner check.
pub(crate) fn checked() -> Etcd {
    let mut checked = etcd(MAIN);
    checked.spec.backup.owner_check = Some(OwnerCheckSpec {
        name: "owner.web.dev.internal.example.test".to_owned(),
        id: "seed-b-0841c87f-landscape".to_owned(),
        zone: "internal.example.test".to_owned(),
        shoot_uid: "7e0c".to_owned(),
        events_gate: Some(EventsGateSpec {
            port: 2381,
            target: "etcd-events-client:2379".to_owned(),
        }),
        ..OwnerCheckSpec::default()
    });
    checked
}

fn with(change: impl FnOnce(&mut OwnerCheckSpec)) -> Etcd {
    let mut etcd = checked();
    change(etcd.spec.backup.owner_check.as_mut().unwrap());
    etcd
}

fn pod(etcd: &Etcd) -> PodSpec {
    stateful_set(&wanted(etcd).unwrap())
        .spec
        .unwrap()
        .template
        .spec
        .unwrap()
}

fn container(pod: &PodSpec, name: &str) -> Container {
    let mut all = pod.containers.iter().chain(pod.init_containers.iter().flatten());
    all.find(|container| container.name == name).cloned().unwrap()
}

fn args(etcd: &Etcd, name: &str) -> Vec<String> {
    container(&pod(etcd), name).args.unwrap()
}

fn has(args: &[String], arg: &str) -> bool {
    args.iter().any(|other| other == arg)
}

/// R17-13, R17-40..42: the whole object, beside `etcd-main.stateful-set.yaml`, the same etcd without the
/// check.
#[test]
fn an_etcd_whose_owner_is_checked() {
    check(
        stateful_set(&wanted(&checked()).unwrap()),
        &expect_file!["snapshots/etcd-main-owner-check.stateful-set.yaml"],
    );
}

/// The gate shows the certificate of etcd, and verifies clients with the CA of etcd.
#[test]
fn an_etcd_behind_a_gate_for_http2() {
    let defaults = Defaults {
        gate_protocol: GateProtocol::Http2,
        ..defaults()
    };
    let with = |etcd: &Etcd| stateful_set(&ValidatedEtcd::new(etcd, &defaults).unwrap());
    check(
        with(&checked()),
        &expect_file!["snapshots/etcd-main-http2-gate.stateful-set.yaml"],
    );
    // Without an owner check there is no gate.
    assert_eq!(with(&etcd(MAIN)), stateful_set(&wanted(&etcd(MAIN)).unwrap()));
}

#[test]
fn a_gate_for_http2_has_the_bounds_of_preparations() {
    let bounded = |gate_protocol| Defaults {
        gate_protocol,
        preparation_bounds: PreparationBounds {
            gate_max_prepared_connections: Some(300),
            gate_max_prepared_requests: None,
        },
        ..defaults()
    };
    let args_of = |defaults: &Defaults| {
        let pod = stateful_set(&ValidatedEtcd::new(&checked(), defaults).unwrap());
        serde_json::to_string(&pod).unwrap()
    };
    let args = args_of(&bounded(GateProtocol::Http2));
    assert!(args.contains("--gate-max-prepared-connections=300"), "{args}");
    assert!(!args.contains("--gate-max-prepared-requests"), "{args}");
    // A gate for bytes has no such clients, and the etcd is not restarted.
    assert_eq!(args_of(&bounded(GateProtocol::Tcp)), args_of(&defaults()));
}

/// Clients need no change: Services and their ports stay the same.
#[test]
fn clients_find_the_gate_where_etcd_was() {
    let events_ungated = self::with(|check| check.events_gate = None);
    let (without, with) = (wanted(&etcd(MAIN)).unwrap(), wanted(&events_ungated).unwrap());
    assert_eq!(
        services::client_service(&without),
        services::client_service(&with)
    );
    assert_eq!(services::peer_service(&without), services::peer_service(&with));
    let served = |container: Container, name: &str| {
        let ports = container.ports.unwrap_or_default();
        ports
            .iter()
            .find(|port| port.name.as_deref() == Some(name))
            .map(|port| port.container_port)
    };
    let pod = pod(&checked());
    assert_eq!(served(container(&pod, "etcd"), "client"), None);
    assert_eq!(served(container(&pod, "backup-restore"), "client"), Some(2379));
}

/// R17-40: clients reach etcd only through the gate, and the process with the gate reaches etcd directly.
#[test]
fn etcd_listens_on_loopback_on_a_port_that_is_free() {
    for (client, peer, backup, expected) in [
        (2379, 2380, 8080, 2382),
        (2382, 2380, 8080, 2383),
        (2383, 2382, 2384, 2385),
        (2382, 2383, 2384, 2385),
    ] {
        let mut etcd = checked();
        etcd.spec.etcd.client_port = Some(client);
        etcd.spec.etcd.server_port = Some(peer);
        etcd.spec.backup.port = Some(backup);
        let (of_etcd, of_gate) = (args(&etcd, "etcd"), args(&etcd, "backup-restore"));
        assert!(
            has(
                &of_etcd,
                &format!("--listen-client-urls=https://127.0.0.1:{expected}")
            ),
            "{of_etcd:?}"
        );
        for arg in [
            format!("--endpoints=https://etcd-main-local:{expected}"),
            format!("--gate-target=127.0.0.1:{expected}"),
            format!("--gate-listen-address=0.0.0.0:{client}"),
        ] {
            assert!(has(&of_gate, &arg), "{arg} {of_gate:?}");
        }
    }
}

/// The port of the Service is the port of etcd's probes in the pod: the Service must lead to the port of the
/// gate, which no further process in the pod has.
#[test]
fn clients_of_the_etcd_with_the_events_find_the_second_gate_at_the_client_service() {
    for (client, backup, expected) in [(2379, 8080, 2383), (2382, 2384, 2385), (2383, 8080, 2384)] {
        let mut etcd = checked();
        etcd.spec.etcd.client_port = Some(client);
        etcd.spec.backup.port = Some(backup);
        let ports = services::client_service(&wanted(&etcd).unwrap())
            .spec
            .unwrap()
            .ports;
        let events = ports.unwrap().into_iter().find(|port| port.port == 2381).unwrap();
        assert_eq!(events.target_port, Some(IntOrString::Int(expected)));
        let args = args(&etcd, "backup-restore");
        for arg in [
            format!("--gate-events-listen-address=0.0.0.0:{expected}"),
            "--gate-events-target=etcd-events-client:2379".to_owned(),
        ] {
            assert!(has(&args, &arg), "{arg} {args:?}");
        }
        let ports = container(&pod(&etcd), "backup-restore").ports.unwrap();
        assert!(
            ports.iter().any(|port| port.container_port == expected),
            "{ports:?}"
        );
    }
}

/// R17-41, R17-42: a signal reaches only a process of the same user in the same namespace.
#[test]
fn both_containers_run_as_one_user_and_see_each_other() {
    for root in [false, true] {
        let mut etcd = checked();
        etcd.spec.run_as_root = Some(root);
        let pod = pod(&etcd);
        assert_eq!(pod.share_process_namespace, Some(true));
        assert!(pod.security_context.as_ref().unwrap().run_as_user.is_some());
        for name in ["etcd", "backup-restore"] {
            let own = container(&pod, name).security_context;
            assert_eq!(own.and_then(|own| own.run_as_user), None, "{name}");
        }
        let data_dir = "--data-dir=/var/etcd/data/new.etcd";
        assert!(has(&args(&etcd, "etcd"), data_dir) && has(&args(&etcd, "backup-restore"), data_dir));
    }
}

#[test]
fn what_is_given_is_passed_on_and_nothing_else() {
    let flags = |etcd: &Etcd| -> Vec<String> {
        let args = args(etcd, "backup-restore").into_iter();
        args.filter(|arg| arg.starts_with("--owner-check") || arg.starts_with("--owner-auth"))
            .collect()
    };
    assert_eq!(flags(&checked()), Vec::<String>::new());
    let all = with(|check| {
        let text = |text: &str| Some(text.to_owned());
        check.authorities = vec!["192.0.2.1:53".to_owned(), "[2001:db8::1]:5353".to_owned()];
        (check.interval, check.timeout, check.store_timeout) = (text("5s"), text("500ms"), text("2s"));
        (check.validity, check.requests, check.propagation) = (text("20s"), text("4s"), text("0s"));
        (check.dns_cache_ttl, check.fence, check.drift) = (text("1m"), text("1m30s"), Some(500));
        check.silence = Some(OwnerCheckSilence::Tolerate);
    });
    assert_eq!(
        flags(&all),
        [
            "--owner-authorities=192.0.2.1:53,[2001:db8::1]:5353",
            "--owner-check-interval=5s",
            "--owner-check-timeout=500ms",
            "--owner-check-store-timeout=2s",
            "--owner-check-validity=20s",
            "--owner-check-requests=4s",
            "--owner-check-propagation=0s",
            "--owner-check-caches=1m",
            "--owner-check-fence=1m30s",
            "--owner-check-drift=500",
            "--owner-check-silence=Tolerate",
        ]
    );
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn events_gate(check: &mut OwnerCheckSpec) -> &mut EventsGateSpec {
    check.events_gate.as_mut().unwrap()
}

/// A change, and the error text after `spec.backup.ownerCheck`.
type Wrong = (fn(&mut OwnerCheckSpec), &'static str);

const WRONG: [Wrong; 21] = [
    (|c| c.name = String::new(), " is wrong: "),
    (|c| c.id = "a b".to_owned(), " is wrong: "),
    (|c| c.zone = "other.test".to_owned(), ".zone is \"other.test\""),
    (|c| c.zone = "xample.test".to_owned(), ".zone is \"xample.test\""),
    (
        |c| c.zone = "example.test..".to_owned(),
        ".zone is \"example.test..\"",
    ),
    (|c| c.zone = ".".to_owned(), ".zone is \".\""),
    (|c| c.shoot_uid = String::new(), ".shootUID is empty"),
    (
        |c| c.authorities = vec!["ns.test:53".to_owned()],
        ".authorities has \"ns.test:53\"",
    ),
    (
        |c| c.authorities = vec!["192.0.2.1:0".to_owned()],
        ".authorities has \"192.0.2.1:0\"",
    ),
    (|c| c.interval = Some(text("0s")), ".interval is \"0s\""),
    (|c| c.timeout = Some(text("10ms")), ".timeout is \"10ms\""),
    (|c| c.propagation = Some(text("1us")), ".propagation is \"1us\""),
    (|c| c.fence = Some(text("61m")), ".fence is \"61m\""),
    (|c| c.drift = Some(-1), ".drift is -1"),
    (|c| events_gate(c).port = 2379, ".eventsGate.port is 2379"),
    (|c| events_gate(c).port = 8080, ".eventsGate.port is 8080"),
    (
        |c| events_gate(c).target = text("etcd-events-client"),
        ".eventsGate.target is \"etcd-events-client\"",
    ),
    (|c| c.drift = Some(200_000), " does not fit together: drift"),
    (
        |c| c.interval = Some(text("2s")),
        " does not fit together: interval",
    ),
    (
        |c| c.validity = Some(text("10s")),
        " does not fit together: validity",
    ),
    (
        |c| c.dns_cache_ttl = Some(text("1m")),
        " does not fit together: fence",
    ),
];

/// A flag that etcd-backup-restore refuses would end the etcd that runs.
#[test]
fn a_check_that_would_not_start_is_refused_before_anything_is_restarted() {
    for (change, expected) in WRONG {
        let error = wanted(&with(change)).unwrap_err();
        let expected = format!("spec.backup.ownerCheck{expected}");
        assert!(error.to_string().starts_with(&expected), "{expected}: {error}");
        assert_eq!(
            error.codes(),
            [api::meta::ErrorCode::ErrConfigurationProblem],
            "{error}"
        );
    }
    // A trailing dot of a name is optional, and the case does not matter.
    for (name, zone) in [
        ("owner.web.Example.test.", "example.test"),
        ("owner.web.example.test", "EXAMPLE.test."),
    ] {
        let etcd = with(|check| (check.name, check.zone) = (name.to_owned(), zone.to_owned()));
        assert!(wanted(&etcd).is_ok(), "{name} {zone}");
    }
}

/// Events are in no backup, so there is no final snapshot, and no process that could take a final snapshot.
#[test]
fn without_backups_no_owner_is_checked() {
    let mut events = checked();
    events.spec.backup.store = None;
    let error = wanted(&events).unwrap_err().to_string();
    assert!(
        error.starts_with("spec.backup.store is missing; who checks its owner"),
        "{error}"
    );
}
