//! Each default of a seed, with a shoot that depends on the default and a shoot that does not.

#![allow(clippy::unwrap_used, clippy::panic)]

use api::gardencore::{
    SeedSpec, ShootSpec,
    seed::{SeedDNS, SeedNetworks},
    shoot::{DNS, Networking},
};
use placement::Names;

use super::*;

fn at(domain: &str) -> SeedDNSProviderConfig {
    SeedDNSProviderConfig {
        domain: domain.into(),
        type_: "local".into(),
        ..SeedDNSProviderConfig::default()
    }
}

fn seed(change: impl FnOnce(&mut SeedSpec)) -> Seed {
    let mut spec = SeedSpec {
        dns: SeedDNS {
            internal: Some(at("internal.test")),
            defaults: vec![at("users.test"), at("others.test")],
            ..SeedDNS::default()
        },
        networks: SeedNetworks::default(),
        ..SeedSpec::default()
    };
    change(&mut spec);
    Seed::new("b", spec)
}

fn shoot(change: impl FnOnce(&mut ShootSpec)) -> Shoot {
    let mut spec = ShootSpec::default();
    change(&mut spec);
    Shoot::new("web", spec)
}

fn reason(shoot: &Shoot, destination: &Seed) -> Option<&'static str> {
    difference(shoot, &seed(|_| ()), destination).map(|difference| difference.reason)
}

fn with_domain(domain: &str, providers: Vec<DNSProvider>) -> Shoot {
    shoot(|spec| {
        spec.dns = Some(DNS {
            domain: Some(domain.into()),
            providers,
        });
    })
}

fn own_provider() -> DNSProvider {
    DNSProvider {
        type_: Some("local".into()),
        secret_name: Some("dns".into()),
        ..DNSProvider::default()
    }
}

#[test]
fn equal_seeds_change_nothing() {
    assert_eq!(reason(&shoot(|_| ()), &seed(|_| ())), None);
    // Credentials may differ, and a further default domain after the first is not used by any shoot.
    let other = seed(|spec| {
        spec.dns.internal.as_mut().unwrap().credentials_ref.name = Some("another".into());
        spec.dns.defaults[1] = at("more.test");
    });
    assert_eq!(reason(&shoot(|_| ()), &other), None);
}

#[test]
fn another_internal_domain_would_change_the_issuer() {
    let changes: [fn(&mut SeedSpec); 4] = [
        |spec| spec.dns.internal = Some(at("internal.else")),
        |spec| spec.dns.internal = None,
        |spec| spec.dns.internal.as_mut().unwrap().type_ = "aws-route53".into(),
        |spec| {
            spec.dns.defaults.clear();
            spec.dns.internal = Some(at("x.test"));
        },
    ];
    // A shoot that sets every possible field is still refused.
    for shoot in [shoot(|_| ()), with_domain("web.test", vec![own_provider()])] {
        for change in changes {
            assert_eq!(reason(&shoot, &seed(change)), Some("InternalDomainsDiffer"));
        }
    }
}

#[test]
fn a_zone_counts_where_both_name_one() {
    let zone =
        |name: &'static str| seed(move |spec| spec.dns.internal.as_mut().unwrap().zone = Some(name.into()));
    let shoot = shoot(|_| ());
    assert_eq!(reason(&shoot, &zone("z1")), None);
    assert_eq!(difference(&shoot, &zone("z1"), &zone("z1")), None);
    let found = difference(&shoot, &zone("z1"), &zone("z2")).unwrap();
    assert!(
        found
            .what
            .ends_with("from internal.test (local, zone z1) to internal.test (local, zone z2)"),
        "{}",
        found.what
    );
}

#[test]
fn another_default_domain_matters_to_a_shoot_that_lives_below_it() {
    let other = seed(|spec| spec.dns.defaults[0] = at("users.else"));
    let none = seed(|spec| spec.dns.defaults.clear());
    for destination in [&other, &none] {
        assert_eq!(reason(&shoot(|_| ()), destination), Some("DefaultDomainsDiffer"));
        let below = with_domain("web.users.test", Vec::new());
        assert_eq!(reason(&below, destination), Some("DefaultDomainsDiffer"));
        // A provider without a Secret leaves the record to the seed.
        let unnamed = DNSProvider {
            secret_name: None,
            ..own_provider()
        };
        assert_eq!(
            reason(&with_domain("web.users.test", vec![unnamed]), destination),
            Some("DefaultDomainsDiffer")
        );
    }
    // The order of the defaults decides the name of a shoot; a shoot with its own name only needs its domain
    // among the defaults.
    let swapped = seed(|spec| spec.dns.defaults.reverse());
    assert_eq!(reason(&shoot(|_| ()), &swapped), Some("DefaultDomainsDiffer"));
    assert_eq!(reason(&with_domain("web.users.test", Vec::new()), &swapped), None);
}

#[test]
fn other_default_domains_do_not_bother_a_shoot_with_a_domain_and_provider_of_its_own() {
    let other = seed(|spec| spec.dns.defaults.clear());
    let unmanaged = DNSProvider {
        type_: Some("unmanaged".into()),
        ..DNSProvider::default()
    };
    let referring = DNSProvider {
        secret_name: None,
        credentials_ref: Some(api::meta::CrossVersionObjectReference::default()),
        ..own_provider()
    };
    for provider in [own_provider(), referring, unmanaged] {
        assert_eq!(
            reason(&with_domain("web.users.test", vec![provider.clone()]), &other),
            None
        );
        // A provider alone is not a domain: the name still comes from the seed.
        let shoot = shoot(|spec| {
            spec.dns = Some(DNS {
                domain: None,
                providers: vec![provider],
            });
        });
        assert_eq!(reason(&shoot, &other), Some("DefaultDomainsDiffer"));
    }
}

#[test]
fn other_shoot_defaults_matter_where_the_shoot_names_no_network() {
    let defaults = |pods: &str, services: &str| {
        let networks = ShootNetworks {
            pods: Some(pods.into()),
            services: Some(services.into()),
        };
        seed(move |spec| spec.networks.shoot_defaults = Some(networks))
    };
    let named = |pods: bool, services: bool| {
        shoot(|spec| {
            spec.networking = Some(Networking {
                pods: pods.then(|| "10.1.0.0/16".into()),
                services: services.then(|| "10.2.0.0/16".into()),
                ..Networking::default()
            });
        })
    };
    // An explicit value that equals the implicit default is no difference.
    let same = defaults(ShootNetworks::PODS, ShootNetworks::SERVICES);
    assert_eq!(reason(&shoot(|_| ()), &same), None);
    let pods = defaults("10.9.0.0/16", ShootNetworks::SERVICES);
    let services = defaults(ShootNetworks::PODS, "10.9.0.0/16");
    let differs = Some("ShootDefaultsDiffer");
    for (names_pods, names_services, of_pods, of_services) in [
        (false, false, differs, differs),
        (true, false, None, differs),
        (false, true, differs, None),
        (true, true, None, None),
    ] {
        let shoot = named(names_pods, names_services);
        assert_eq!(reason(&shoot, &pods), of_pods);
        assert_eq!(reason(&shoot, &services), of_services);
    }
    let told = difference(&shoot(|_| ()), &seed(|_| ()), &services).unwrap().what;
    assert!(told.ends_with("from 100.64.0.0/13 to 10.9.0.0/16"), "{told}");
}

/// Separate code builds the names that the gardenlets use; this comparison and that code must stay in step.
#[test]
fn where_no_difference_is_told_all_names_stay() {
    let seeds: [fn(&mut SeedSpec); 7] = [
        |_| (),
        |spec| spec.dns.internal = Some(at("internal.else")),
        |spec| spec.dns.internal = None,
        |spec| spec.dns.defaults.reverse(),
        |spec| spec.dns.defaults.clear(),
        |spec| {
            spec.networks.shoot_defaults = Some(ShootNetworks {
                pods: Some("10.9.0.0/16".into()),
                services: None,
            });
        },
        |spec| {
            spec.networks.shoot_defaults = Some(ShootNetworks {
                pods: None,
                services: Some("10.9.0.0/16".into()),
            });
        },
    ];
    let shoots: [fn() -> Shoot; 4] = [
        || shoot(|_| ()),
        || with_domain("web.users.test", Vec::new()),
        || with_domain("web.users.test", vec![own_provider()]),
        || {
            shoot(|spec| {
                spec.networking = Some(Networking {
                    services: Some("10.2.0.0/16".into()),
                    ..Networking::default()
                });
            })
        },
    ];
    let mut equal = 0;
    for make in shoots {
        let shoot = make();
        for (from, to) in seeds
            .iter()
            .flat_map(|from| seeds.iter().map(move |to| (from, to)))
        {
            let (from, to) = (seed(from), seed(to));
            if difference(&shoot, &from, &to).is_none() {
                let names = |seed| Names::for_shoot(&shoot, "dev", seed).unwrap();
                assert_eq!(names(&from), names(&to));
                equal += 1;
            }
        }
    }
    assert!(equal > 4 * seeds.len(), "{equal}");
}
