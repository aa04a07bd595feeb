#![allow(clippy::unwrap_used, clippy::panic)]
use crate::cli::{Cli, Command};
use clap::Parser;

const COMPLETE: [&str; 9] = [
    "--store-container=b",
    "--endpoints=https://etcd-main-local:2382",
    "--data-dir=/var/etcd/data/new.etcd",
    "--owner-name=owner.demo.dev.internal.example",
    "--owner-id=seed-a",
    "--owner-zone=internal.example",
    "--owner-authorities=192.0.2.1:53,[2001:db8::1]:53",
    "--shoot-uid=0841c87f",
    "--gate-listen-address=0.0.0.0:2379",
];
const TARGET: &str = "--gate-target=127.0.0.1:2382";

/// The reason of a refusal, or whether the check is on.
fn judged(flags: &[&str]) -> Result<bool, String> {
    let all = ["etcd-backup-restore", "server"].iter().chain(flags);
    let cli = Cli::try_parse_from(all).map_err(|e| e.to_string())?;
    let Command::Server(args) = cli.command else {
        panic!("another command");
    };
    let checked = args
        .owner
        .check(args.ownership_epoch, args.data_dir.as_deref(), &args.etcd);
    checked.map(|check| check.is_some()).map_err(|e| e.to_string())
}

fn with(more: &[&str]) -> Result<bool, String> {
    let flags: Vec<_> = COMPLETE.iter().chain([&TARGET]).chain(more).copied().collect();
    judged(&flags)
}

#[test]
fn the_check_is_off_unless_it_is_asked_for_and_complete() {
    assert_eq!(judged(&["--store-container=b"]), Ok(false));
    assert_eq!(with(&[]), Ok(true));
    for left_out in COMPLETE.iter().skip(2).chain([&TARGET]) {
        if left_out.starts_with("--owner-authorities") {
            continue;
        }
        let kept = COMPLETE.iter().chain([&TARGET]);
        let flags: Vec<_> = kept.filter(|flag| *flag != left_out).copied().collect();
        let refused = judged(&flags).unwrap_err();
        let name = left_out.split('=').next().unwrap_or_default();
        assert!(refused.contains(name), "{left_out}: {refused}");
    }
    let alone = judged(&["--store-container=b", "--owner-check-validity=30s"]).unwrap_err();
    assert!(alone.contains("--owner-name"), "{alone}");
}

#[test]
fn settings_that_do_not_fit_together_are_refused_with_a_sentence() {
    for (flags, word) in [
        (&["--owner-check-interval=0"][..], "write a duration"),
        (&["--owner-check-validity=0s"], "write a duration"),
        (&["--owner-check-validity=-1s"], "negative"),
        (&["--owner-check-validity=2h"], "write a duration"),
        (&["--owner-check-interval=1s"], "interval (1s) must be at least"),
        (
            &["--owner-check-validity=10s"],
            "validity (10s) must be at least 11s",
        ),
        (&["--owner-check-validity=13s"], "fence (24s) must be at least"),
        (&["--owner-check-fence=23s"], "fence (23s) must be at least"),
        (&["--owner-check-caches=10s"], "fence (24s) must be at least"),
        (&["--owner-check-drift=100001"], "write a number"),
        (&["--owner-check-silence=Ignore"], "possible values"),
        (&["--ownership-epoch=0"], "write a number"),
        (&["--gate-max-connections=0"], "write a number"),
        (&["--gate-max-prepared-connections=0"], "write a number"),
        (&["--gate-max-prepared-requests=4001"], "write a number"),
    ] {
        let refused = with(flags).unwrap_err();
        assert!(refused.contains(word), "{flags:?}: {refused}");
    }
    assert_eq!(
        with(&["--owner-check-validity=13s", "--owner-check-fence=25s"]),
        Ok(true)
    );
    assert_eq!(with(&["--owner-check-silence=Tolerate"]), Ok(true));
}

/// The complete set of flags, with a different value for a single flag.
fn instead(flag: &str) -> Result<bool, String> {
    let name = flag.split('=').next().unwrap_or_default();
    let kept = COMPLETE.iter().chain([&TARGET]);
    let mut flags: Vec<_> = kept
        .filter(|kept| kept.split('=').next() != Some(name))
        .copied()
        .collect();
    flags.push(flag);
    judged(&flags)
}

#[test]
fn clients_have_no_way_past_the_gate_and_this_process_needs_none_through_it() {
    for (flag, word) in [
        ("--gate-target=10.0.0.1:2382", "no loopback address"),
        ("--gate-target=0.0.0.0:2382", "no loopback address"),
        ("--gate-target=127.0.0.1:0", "no loopback address"),
        ("--gate-target=localhost", "invalid"),
        (
            "--gate-listen-address=0.0.0.0:2382",
            "another address than etcd's",
        ),
        (
            "--gate-listen-address=127.0.0.1:2382",
            "another address than etcd's",
        ),
        ("--gate-listen-address=0.0.0.0:0", "another address than etcd's"),
        (
            "--endpoints=https://etcd-main-local:2379",
            "must lead to etcd itself",
        ),
        ("--endpoints=https://etcd-main-local", "must lead to etcd itself"),
        ("--owner-name=owner.demo.dev.elsewhere.example", "not in the zone"),
        ("--owner-name=", "no DNS name"),
        ("--owner-id=seed a", "seed identity"),
        ("--owner-authorities=ns.internal.example:53", "invalid"),
        ("--shoot-uid=", "--shoot-uid"),
    ] {
        let refused = instead(flag).unwrap_err();
        assert!(refused.contains(word), "{flag}: {refused}");
    }
    assert_eq!(instead("--gate-target=[::1]:2382"), Ok(true));
}

const EVENTS: [&str; 2] = [
    "--gate-events-listen-address=0.0.0.0:2383",
    "--gate-events-target=etcd-events-client:2379",
];

#[test]
fn the_gate_for_events_is_complete_and_has_a_port_of_its_own() {
    assert_eq!(with(&EVENTS), Ok(true));
    assert_eq!(
        with(&[EVENTS[0], "--gate-events-target=192.0.2.1:2379"]),
        Ok(true)
    );
    for (flags, word) in [
        (&EVENTS[..1], "--gate-events-target"),
        (&EVENTS[1..], "--gate-events-listen-address"),
        (
            &["--gate-events-listen-address=0.0.0.0:2379", EVENTS[1]],
            "another port",
        ),
        (
            &["--gate-events-listen-address=127.0.0.1:2382", EVENTS[1]],
            "another port",
        ),
        (
            &["--gate-events-listen-address=0.0.0.0:0", EVENTS[1]],
            "another port",
        ),
        (
            &[EVENTS[0], "--gate-events-target=etcd-events-client"],
            "host and port",
        ),
        (&[EVENTS[0], "--gate-events-target=:2379"], "host and port"),
        (
            &[EVENTS[0], "--gate-events-target=etcd-events-client:0"],
            "host and port",
        ),
    ] {
        let refused = with(flags).unwrap_err();
        assert!(refused.contains(word), "{flags:?}: {refused}");
    }
    let all: Vec<_> = ["--store-container=b"].iter().chain(&EVENTS).copied().collect();
    let alone = judged(&all).unwrap_err();
    assert!(alone.contains("--owner-name"), "{alone}");
}

const HTTP2: [&str; 6] = [
    "--gate-protocol=HTTP2",
    "--gate-cert=/server/tls.crt",
    "--gate-key=/server/tls.key",
    "--gate-client-ca=/ca/ca.crt",
    "--cacert=/ca/ca.crt",
    "--cert=/client/tls.crt",
];

/// A gate that ends TLS has a certificate of its own at etcd. Without a check of clients every client would
/// have the rights of the gate.
#[test]
fn a_gate_for_http2_verifies_the_clients_of_an_etcd_with_tls() {
    let all: Vec<_> = HTTP2.into_iter().chain(["--key=/client/tls.key"]).collect();
    assert_eq!(with(&all), Ok(true));
    for (left_out, word) in [
        (0, "--gate-protocol=HTTP2"),
        (1, "--gate-cert"),
        (2, "--gate-key"),
        (3, "--gate-client-ca"),
        (4, "--cacert"),
    ] {
        let mut flags = all.clone();
        flags.remove(left_out);
        let refused = with(&flags).unwrap_err();
        assert!(refused.contains(word), "{left_out}: {refused}");
    }
    let alone = with(&["--gate-protocol=HTTP2"]).unwrap_err();
    assert!(alone.contains("must verify the clients"), "{alone}");
    // Neither side uses TLS.
    let plain = COMPLETE.map(|flag| match flag {
        "--endpoints=https://etcd-main-local:2382" => "--endpoints=http://127.0.0.1:2382",
        flag => flag,
    });
    let mut plain = plain.to_vec();
    plain.extend([TARGET, "--gate-protocol=HTTP2"]);
    assert_eq!(judged(&plain), Ok(true));
    plain.extend(&HTTP2[1..4]);
    let refused = judged(&plain).unwrap_err();
    assert!(refused.contains("https://"), "{refused}");
}

#[test]
fn a_flood_leaves_files_for_the_owner_check() {
    let room = |limit, has_events| {
        let room = super::Room::new(2000, 0, has_events, limit);
        (room.etcd, room.events)
    };
    assert_eq!(room(None, false), (2000, 0));
    assert_eq!(room(None, true), (2000, 100));
    assert_eq!(room(Some(1_048_576), true), (2000, 100));
    assert_eq!(room(Some(1024), false), (384, 0));
    assert_eq!(room(Some(1024), true), (288, 96));
    assert_eq!(room(Some(100), true), (0, 0));
    assert!(super::open_files().is_some_and(|limit| limit > 100));
}

#[test]
fn a_preparation_takes_no_connection_from_the_clients_of_the_seed() {
    for (limit, etcd, prepared) in [
        (None, 2000, 500),
        (Some(1_048_576), 2000, 500),
        (Some(4_856), 2000, 200),
        (Some(1024), 288, 0),
    ] {
        let room = super::Room::new(2000, 500, true, limit);
        assert_eq!((room.etcd, room.prepared), (etcd, prepared), "{limit:?}");
    }
}

/// The pods with which etcd-druid starts the processes: its golden objects, with both protocols of the gate.
const PODS: [&str; 2] = [
    include_str!("../../../etcd-druid/src/objects/snapshots/etcd-main-owner-check.stateful-set.yaml"),
    include_str!("../../../etcd-druid/src/objects/snapshots/etcd-main-http2-gate.stateful-set.yaml"),
];

/// The arguments of a command in that pod.
fn of_druid(pod: &'static str, command: &str) -> Vec<&'static str> {
    let first = format!("- {command}");
    let lines = pod.lines().map(str::trim).skip_while(|line| *line != first);
    let args = lines
        .skip(1)
        .map_while(|line| line.strip_prefix("- ").filter(|arg| arg.starts_with("--")));
    let args: Vec<_> = args.collect();
    assert!(args.len() > 5, "{command}: {args:?}");
    args
}

/// R17-13, R17-40: etcd-druid and this process must agree on the flags, or the etcd of each shoot with an
/// owner check stays down.
#[test]
fn what_etcd_druid_gives_is_taken() {
    for pod in PODS {
        takes(pod);
    }
}

fn takes(pod: &'static str) {
    let server = of_druid(pod, "server");
    for flag in ["--gate-target=", "--gate-events-target="] {
        assert!(server.iter().any(|given| given.starts_with(flag)), "{flag}");
    }
    // Without named servers the process would need a resolver here.
    let named = ["--owner-authorities=192.0.2.1:53"];
    let flags: Vec<_> = server.iter().chain(&named).copied().collect();
    assert_eq!(judged(&flags), Ok(true));
    let initialize = of_druid(pod, "initialize");
    assert!(initialize.contains(&"--behind-gate"));
    let all = ["etcd-backup-restore", "initialize"].iter().chain(&initialize);
    let cli = Cli::try_parse_from(all).map_err(|e| e.to_string());
    assert!(matches!(cli.map(|cli| cli.command), Ok(Command::Initialize(_))));
}
