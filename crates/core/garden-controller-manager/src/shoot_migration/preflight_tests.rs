//! A row for each obstacle, from a state without obstacles.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use api::{
    gardencore::{
        seed::{SeedDNSProviderConfig, ShootNetworks},
        shoot::{FormerSeed, Networking},
    },
    meta::Condition,
};
use serde_json::json;

use super::{
    world::{World, epoch, judged, refused},
    *,
};

#[test]
fn a_move_between_two_good_seeds_may_begin() {
    let verdict = judged(|_| ()).unwrap();
    assert!(verdict.ready, "{}", verdict.message);
    // The source may be dead, unknown and forgotten: only the destination counts (R7-02).
    assert!(judged(|w| w.source = None).unwrap().ready);
    assert!(
        judged(|w| w.source.as_mut().unwrap().status = None)
            .unwrap()
            .ready
    );
}

#[test]
fn without_a_wanted_move_there_is_no_constraint() {
    assert_eq!(judged(|w| w.shoot.spec.seed_name = Some("a".into())), None);
    assert_eq!(judged(|w| w.shoot.spec.seed_name = None), None);
    assert_eq!(judged(|w| w.shoot.status = None), None);
}

#[test]
fn each_obstacle_is_named_with_what_to_do() {
    refused("DestinationSeedNotFound", "no seed b", |w| w.destination = None);
    refused("DestinationSeedNotFound", "back to a", |w| w.destination = None);
    refused("ShootIsBeingDeleted", "cannot be moved", |w| {
        w.shoot.metadata.deletion_timestamp = Some(epoch());
    });
    refused("DestinationSeedIsBeingDeleted", "name another", |w| {
        w.destination.as_mut().unwrap().metadata.deletion_timestamp = Some(epoch());
    });
    refused("DestinationSeedHasNoBackup", "spec.backup", |w| {
        w.destination.as_mut().unwrap().spec.backup = None;
    });
    refused(
        "DestinationSeedCredentialsElsewhere",
        "copy the Secret to namespace seed-b",
        |w| {
            let reference = json!({"kind": "Secret", "namespace": "garden", "name": "backup"});
            let backup = w.destination.as_mut().unwrap().spec.backup.as_mut().unwrap();
            backup.credentials_ref = serde_json::from_value(reference).unwrap();
        },
    );
    refused("BackupEntryNotFound", "no BackupEntry", |w| w.backup_entry = None);
    refused("DestinationBackupBucketNotReady", "lastError", |w| {
        w.bucket = None;
    });
    refused("DestinationBackupBucketNotReady", "lastError", |w| {
        let status = w.bucket.as_mut().unwrap().status.as_mut().unwrap();
        status.last_operation.as_mut().unwrap().state = LastOperationState::Error;
    });
}

#[test]
fn a_destination_that_is_not_known_to_be_well_is_refused() {
    refused("DestinationSeedNotReady", "is not reported yet", |w| {
        w.destination.as_mut().unwrap().status = None;
    });
    for status in [
        ConditionStatus::False,
        ConditionStatus::Unknown,
        ConditionStatus::Progressing,
    ] {
        for (index, condition, reason) in [
            (0, "GardenletReady", "DestinationSeedNotReady"),
            (1, "SeedSystemComponentsHealthy", "DestinationSeedNotHealthy"),
            (2, "BackupBucketsReady", "DestinationBackupBucketNotReady"),
        ] {
            refused(reason, &format!("{condition} of seed b is {status:?}"), |w| {
                conditions(w)[index].status = status;
            });
            refused(reason, &format!("{condition} of seed b is not reported"), |w| {
                conditions(w).remove(index);
            });
        }
    }
    // A silent gardenlet is reported first, because its other reports are old.
    refused("DestinationSeedNotReady", "GardenletReady", |w| {
        for condition in conditions(w) {
            condition.status = ConditionStatus::Unknown;
        }
    });
}

/// The API of a shoot would stop, and could not be exposed in the destination. An older gardenlet does not
/// report the condition.
#[test]
fn a_destination_whose_edge_has_no_address_is_refused() {
    refused(
        "DestinationSeedNotHealthy",
        "EdgeAddressReady of seed b is False",
        |w| {
            let condition = Condition::new(
                "EdgeAddressReady",
                ConditionStatus::False,
                "EdgeWithoutAddress",
                "Service garden-exposure/ingress of the edge has no address.",
                epoch(),
            );
            conditions(w).push(condition);
        },
    );
}

fn conditions(world: &mut World) -> &mut Vec<Condition> {
    &mut world
        .destination
        .as_mut()
        .unwrap()
        .status
        .as_mut()
        .unwrap()
        .conditions
}

#[test]
fn a_seed_that_would_give_the_shoot_other_names_or_networks_is_refused() {
    let other = |world: &mut World| {
        world.destination.as_mut().unwrap().spec.networks.shoot_defaults = Some(ShootNetworks {
            services: Some("10.9.0.0/16".into()),
            ..ShootNetworks::default()
        });
    };
    refused(
        "ShootDefaultsDiffer",
        "change it from 100.64.0.0/13 to 10.9.0.0/16",
        other,
    );
    refused("ShootDefaultsDiffer", "configure seed b as seed a is", other);
    refused("ShootDefaultsDiffer", "or set spec.seedName back to a", other);
    assert!(
        judged(|w| {
            other(w);
            w.shoot.spec.networking = Some(Networking {
                services: Some("10.3.0.0/16".into()),
                ..Networking::default()
            });
        })
        .unwrap()
        .ready
    );
    let domain = |world: &mut World| {
        world.destination.as_mut().unwrap().spec.dns.internal = Some(SeedDNSProviderConfig {
            domain: "internal.else".into(),
            type_: "local".into(),
            ..SeedDNSProviderConfig::default()
        });
    };
    refused(
        "InternalDomainsDiffer",
        "from none to internal.else (local)",
        domain,
    );
    // Reported before obstacles that disappear without action.
    refused("InternalDomainsDiffer", "internal.else", |w| {
        domain(w);
        conditions(w).clear();
    });
}

#[test]
fn a_destination_that_has_not_cleaned_up_its_former_residency_is_refused() {
    let former = |name: &str| {
        let former = FormerSeed {
            name: name.into(),
            epoch: 1,
        };
        move |w: &mut World| w.shoot.status.as_mut().unwrap().former_seeds = vec![former]
    };
    let sentence = "Seed b has not cleaned up its former residency";
    refused("DestinationSeedNotCleanedUp", sentence, former("b"));
    assert!(judged(former("c")).unwrap().ready);
}

/// The table of rules is in `returning`; this test checks that the preflight asks `returning`.
#[test]
fn a_former_seed_with_the_newest_data_is_a_destination_on_request() {
    let handed_over = |w: &mut World| {
        let status = json!({"seedName": "a", "formerSeeds": [{"name": "b", "epoch": 1}],
            "ownership": {"epoch": 2, "phase": "Claiming", "source": {"name": "b", "epoch": 1}}});
        w.shoot.status = serde_json::from_value(status).unwrap();
        let checks = json!({"ownerChecks": {"enabled": true}});
        let destination = w.destination.as_mut().unwrap();
        destination.spec.settings = serde_json::from_value(checks).unwrap();
    };
    let remedy = "have the shoot taken back without its help";
    refused("DestinationSeedNotCleanedUp", remedy, handed_over);
    let asked = judged(|w| {
        handed_over(w);
        let request = ("shoot.gardener.cloud/force-restore".to_owned(), "true".to_owned());
        w.shoot.metadata.annotations = Some(BTreeMap::from([request]));
    });
    assert!(asked.unwrap().ready);
}

#[test]
fn a_destination_with_a_control_plane_that_no_process_cleans_up_is_refused() {
    let reported = |namespaces: &str| {
        let reported = [(LEFTOVER_NAMESPACES.to_owned(), namespaces.to_owned())].into();
        move |w: &mut World| {
            w.shoot.status.as_mut().unwrap().technical_id = "shoot--dev--crazy".into();
            w.destination.as_mut().unwrap().metadata.annotations = Some(reported);
        }
    };
    let sentence = "Seed b has namespace shoot--dev--crazy with an earlier control plane of the shoot";
    let both = "shoot--dev--api,shoot--dev--crazy";
    refused("DestinationSeedHasLeftovers", sentence, reported(both));
    assert!(
        judged(reported("shoot--dev--api,shoot--dev--crazy2"))
            .unwrap()
            .ready
    );
    let codes = judged(reported(both)).unwrap().codes();
    assert_eq!(
        codes,
        [ErrorCode::ErrConfigurationProblem],
        "an operator has to act"
    );
}

/// A takeover waits for a passing obstacle, and is refused for any other obstacle. The report follows.
#[test]
fn the_obstacle_decides_and_the_code_follows() {
    let verdict = |ready, reason| Verdict {
        ready,
        reason,
        message: "Condition GardenletReady is Unknown.".to_owned(),
    };
    let sentence = || "Condition GardenletReady is Unknown".to_owned();
    assert_eq!(verdict(true, "DestinationSeedReady").obstacle(), None);
    assert!(verdict(true, "DestinationSeedReady").codes().is_empty());
    for reason in ["DestinationSeedNotReady", SOURCE_BUCKET_NOT_READY, FULL, BUSY] {
        let found = verdict(false, reason);
        let passing = Obstacle::Passing(sentence(), RECHECK_OF_DESTINATION);
        assert_eq!(found.obstacle(), Some(passing), "{reason}");
        assert_eq!(found.codes(), [ErrorCode::ErrRetryableInfraDependencies]);
    }
    for (reason, code) in [
        ("DestinationSeedNotFound", ErrorCode::ErrConfigurationProblem),
        (WEBHOOKS_ON_LEASES, ErrorCode::ErrProblematicWebhook),
    ] {
        let found = verdict(false, reason);
        assert_eq!(found.obstacle(), Some(Obstacle::Final(sentence())), "{reason}");
        assert_eq!(found.codes(), [code]);
    }
}

#[test]
fn a_code_says_whether_somebody_must_edit_something() {
    let codes = |change: fn(&mut World)| judged(change).unwrap().codes();
    let patience = vec![ErrorCode::ErrRetryableInfraDependencies];
    let waits: [fn(&mut World); 4] = [
        |w| conditions(w)[0].status = ConditionStatus::Unknown,
        |w| conditions(w)[1].status = ConditionStatus::False,
        |w| conditions(w)[2].status = ConditionStatus::Progressing,
        |w| {
            w.shoot.status.as_mut().unwrap().former_seeds = vec![FormerSeed {
                name: "b".into(),
                epoch: 1,
            }];
        },
    ];
    for wait in waits {
        assert_eq!(codes(wait), patience);
    }
    assert_eq!(
        codes(|w| w.destination.as_mut().unwrap().spec.dns.defaults = vec![SeedDNSProviderConfig::default()]),
        [ErrorCode::ErrConfigurationProblem]
    );
    assert_eq!(codes(|_| ()), []);
}

#[test]
fn another_provider_needs_a_stated_reason() {
    let other = |w: &mut World| w.destination.as_mut().unwrap().spec.provider.type_ = "aws".into();
    refused("ProviderTypesDiffer", ALLOW_DIFFERENT_PROVIDER, other);
    let annotate = |w: &mut World, why: &str| {
        w.shoot.metadata.annotations = Some(BTreeMap::from([(
            ALLOW_DIFFERENT_PROVIDER.to_owned(),
            why.to_owned(),
        )]));
    };
    refused("ProviderTypesDiffer", "say why", |w| {
        other(w);
        annotate(w, " ");
    });
    let allowed = judged(|w| {
        other(w);
        annotate(w, "both reach the same cloud");
    });
    assert!(allowed.unwrap().ready);
}

/// The table of obstacles is in `extensions`; this test checks the error codes.
#[test]
fn extensions_of_the_destination() {
    let register = |kinds: &[&str]| {
        let resources: Vec<_> = kinds
            .iter()
            .map(|kind| serde_json::json!({"kind": kind, "type": "local"}))
            .collect();
        let spec = serde_json::from_value(serde_json::json!({"resources": resources})).unwrap();
        vec![std::sync::Arc::new(api::gardencore::ControllerRegistration::new(
            "local", spec,
        ))]
    };
    let change = |kinds: &'static [&'static str]| {
        move |w: &mut World| {
            w.shoot.spec.provider.type_ = "local".into();
            w.extensions.registrations = register(kinds);
        }
    };
    let all = &["Infrastructure", "ControlPlane", "BackupBucket", "BackupEntry"];
    refused(
        "DestinationExtensionsNotReady",
        "or set spec.seedName back to a",
        change(all),
    );
    refused(
        "DestinationLacksExtensions",
        "ControlPlane of type local",
        change(&all[..1]),
    );
    let codes = |kinds| judged(change(kinds)).unwrap().codes();
    assert_eq!(codes(all), [ErrorCode::ErrRetryableInfraDependencies]);
    assert_eq!(codes(&all[..1]), [ErrorCode::ErrConfigurationProblem]);
}

/// The move makes room, and the user is informed before.
#[test]
fn an_etcd_that_refuses_writes_is_reported_and_does_not_hold_the_move_back() {
    let reported = |status: ConditionStatus, reason: &str| {
        let verdict = judged(|world| {
            let healthy = Condition::new("ControlPlaneHealthy", status, reason, "m", epoch());
            world.shoot.status.as_mut().unwrap().conditions = vec![healthy];
        });
        let verdict = verdict.unwrap();
        assert!(verdict.ready, "{}", verdict.message);
        verdict.message.contains("alarm NOSPACE")
    };
    assert!(reported(ConditionStatus::False, "EtcdNoSpace"));
    assert!(!reported(ConditionStatus::False, "ControlPlaneUnhealthy"));
    assert!(!reported(ConditionStatus::True, "ControlPlaneRunning"));
}
