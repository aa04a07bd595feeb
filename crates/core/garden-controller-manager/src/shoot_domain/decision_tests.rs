//! Reservations beside each other, and in the domains of seeds.

#![allow(clippy::unwrap_used)]

use std::slice;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::runtime::reflector::ObjectRef;
use serde_json::json;

use super::*;

fn claim(uid: &str, domain: &str, is_reserved: bool, second: i64) -> DomainClaim {
    DomainClaim {
        uid: uid.to_owned(),
        shoot: ObjectRef::new(uid),
        domain: domain.to_owned(),
        is_reserved,
        created: Some(Time(jiff::Timestamp::from_second(second).unwrap())),
        is_deleting: false,
        own_prefix: Some("web.dev".to_owned()),
    }
}

fn seeds() -> Vec<Seed> {
    let dns = |domain: &str| json!({"type": "local", "domain": domain, "credentialsRef": {"kind": "Secret", "name": "dns"}});
    let seed = json!({"metadata": {"name": "a"}, "spec": {"networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
        "provider": {"type": "local", "region": "local"},
        "dns": {"internal": dns("seeds.test"), "defaults": [dns("shoots.test"), dns("dev.shoots.test")]}}});
    vec![serde_json::from_value(seed).unwrap()]
}

fn refusal(claim: &DomainClaim, others: &[DomainClaim], seeds: &[Seed]) -> Option<String> {
    let mut index = DomainIndex::default();
    for other in others {
        index.set_claim(&other.shoot, Some(other.clone()));
    }
    let seeds: Vec<_> = seeds.iter().cloned().map(Arc::new).collect();
    let found = obstacle(claim, &index, &index.older(claim), &seeds);
    found.map(|obstacle| obstacle.explain(&claim.domain))
}

fn is_free(claim: &DomainClaim, others: &[DomainClaim]) -> bool {
    refusal(claim, others, &seeds()).is_none()
}

#[test]
fn a_reserved_domain_keeps_its_tree() {
    let reserved = [claim("one", "apps.customer.test", true, 9)];
    for (domain, free) in [
        ("apps.customer.test", false),
        ("web.apps.customer.test", false),
        ("customer.test", false),
        ("other.customer.test", true),
        ("myapps.customer.test", true),
    ] {
        assert_eq!(
            is_free(&claim("two", domain, false, 1), &reserved),
            free,
            "{domain}"
        );
    }
    assert!(
        is_free(&claim("one", "apps.customer.test", false, 1), &reserved),
        "its own"
    );
}

#[test]
fn without_a_reservation_the_older_shoot_comes_first() {
    let (old, young) = (
        claim("b", "customer.test", false, 1),
        claim("a", "customer.test", false, 2),
    );
    let all = [old.clone(), young.clone()];
    assert!(is_free(&old, &all));
    assert!(!is_free(&young, &all));
    // Of the same second, the uid decides.
    let same = claim("a", "customer.test", false, 1);
    let all = [old.clone(), same.clone()];
    assert!(is_free(&same, &all));
    assert!(!is_free(&old, &all));
}

/// Else a member could create an older Shoot above a domain, and keep names below that domain from all
/// later Shoots.
#[test]
fn a_refused_shoot_blocks_no_domain() {
    let all = [
        claim("one", "apps.customer.test", true, 5),
        claim("refused", "customer.test", false, 1),
    ];
    assert!(is_free(&claim("new", "web.customer.test", false, 9), &all));
}

/// Else a member could keep the name of a shoot of a different project until the Shoot of the member is
/// gone.
#[test]
fn a_shoot_that_a_seed_refuses_blocks_no_domain() {
    let young = claim("young", "web.dev.shoots.test", false, 9);
    let mut foreign = claim("foreign", "web.dev.shoots.test", false, 1);
    assert!(!is_free(&young, slice::from_ref(&foreign)));
    foreign.own_prefix = Some("web.other".to_owned());
    assert!(is_free(&young, slice::from_ref(&foreign)));
    foreign.is_reserved = true;
    assert!(!is_free(&young, &[foreign]));
}

#[test]
fn a_shoot_in_deletion_blocks_no_domain_without_a_reservation() {
    let young = claim("young", "customer.test", false, 9);
    let mut old = claim("old", "customer.test", false, 1);
    old.is_deleting = true;
    assert!(is_free(&young, slice::from_ref(&old)));
    old.is_reserved = true;
    assert!(!is_free(&young, &[old]));
}

#[test]
fn names_of_seeds_belong_to_no_domain() {
    for (domain, free) in [
        ("web.dev.internal.seeds.test", false),
        ("internal.seeds.test", false),
        ("seeds.test", false),
        ("test", false),
        ("other.seeds.test", true),
        ("web.prod.shoots.test", false),
        ("shoots.test", false),
        ("web.dev.shoots.test", true),
        ("x.web.dev.shoots.test", false),
    ] {
        assert_eq!(is_free(&claim("two", domain, false, 1), &[]), free, "{domain}");
    }
    let text = refusal(&claim("two", "seeds.test", false, 1), &[], &seeds()).unwrap();
    assert!(
        text.contains("the domain internal.seeds.test of Seed a"),
        "{text}"
    );
}

/// Domain `dev.shoots.test` is also `<shoot>.<project>` below `test`, for Shoot `dev` of Project `shoots`.
#[test]
fn no_shoot_takes_a_default_domain_by_its_own_name() {
    let is_free = |domain: &str, own_prefix: &str, seeds: &[Seed]| {
        let mut claim = claim("one", domain, false, 1);
        claim.own_prefix = Some(own_prefix.to_owned());
        refusal(&claim, &[], seeds).is_none()
    };
    assert!(!is_free("dev.shoots.test", "dev.shoots", &seeds()));
    let mut further = seeds();
    let mut add = |domain: &str| {
        let mut dns = further[0].spec.dns.defaults[0].clone();
        dns.domain = domain.to_owned();
        further[0].spec.dns.defaults.push(dns);
    };
    for domain in ["api.cloud.example.com", "eu.web.cloud.example.com", "example.com"] {
        add(domain);
    }
    // The rest `example.com` is a default domain, too.
    assert!(!is_free("api.cloud.example.com", "api.cloud", &further), "equal");
    assert!(!is_free("web.cloud.example.com", "web.cloud", &further), "above");
    assert!(is_free("web.prod.example.com", "web.prod", &further));
    // The name is below the default domain dev.shoots.test, and is valid below shoots.test.
    assert!(is_free("web.dev.shoots.test", "web.dev", &further));
}

#[test]
fn a_domain_of_one_label_is_refused_and_blocks_no_name() {
    let (label, name) = (
        claim("label", "de", false, 1),
        claim("name", "web.customer.de", false, 2),
    );
    let all = [label.clone(), name.clone()];
    let text = refusal(&label, &all, &seeds()).unwrap();
    assert!(text.contains("de is a top-level domain"), "{text}");
    assert!(is_free(&name, &all));
    // A reservation from before this rule stays.
    let reserved = claim("label", "de", true, 1);
    assert!(!is_free(&name, &[reserved]));
}

/// Else a Shoot in a namespace without a Project would keep the domain from all Shoots, since no domain is
/// reserved for that Shoot.
#[test]
fn a_shoot_without_a_project_blocks_no_domain() {
    let young = claim("young", "customer.test", false, 9);
    let mut old = claim("old", "customer.test", false, 1);
    assert!(!is_free(&young, slice::from_ref(&old)));
    old.own_prefix = None;
    assert!(is_free(&young, slice::from_ref(&old)));
    old.is_reserved = true;
    assert!(!is_free(&young, &[old]), "a reservation stays");
    // The name below a default domain needs the Project.
    let mut stray = claim("stray", "web.dev.shoots.test", false, 1);
    assert!(is_free(&stray, &[]));
    stray.own_prefix = None;
    assert!(!is_free(&stray, &[]));
}

#[test]
fn a_public_suffix_is_refused_and_blocks_no_name() {
    for suffix in ["co.uk", "github.io", "foo.ck", "xn--p1ai"] {
        let text = refusal(&claim("suffix", suffix, false, 1), &[], &seeds());
        assert!(text.is_some_and(|text| text.contains(suffix)), "{suffix}");
        let name = claim("name", &format!("customer.{suffix}"), false, 2);
        assert!(is_free(&name, &[claim("suffix", suffix, false, 1)]), "{suffix}");
    }
    let text = refusal(&claim("suffix", "co.uk", false, 1), &[], &seeds()).unwrap();
    assert!(text.contains("co.uk is a public suffix"), "{text}");
    for domain in ["customer.co.uk", "customer.test", "www.ck"] {
        assert!(is_free(&claim("name", domain, false, 1), &[]), "{domain}");
    }
    // A reservation from before this rule stays.
    let reserved = claim("suffix", "co.uk", true, 1);
    assert!(!is_free(&claim("name", "customer.co.uk", false, 2), &[reserved]));
}

#[test]
fn a_domain_of_the_operator_is_for_the_shoots_of_a_project() {
    let entry = |domain: &str, project: &str| ReservedDomain {
        domain: domain.to_owned(),
        project: project.to_owned(),
    };
    let reserved = [
        entry("example.com", "dev"),
        entry("example.com", "prod"),
        entry("shop.example.com", "shop"),
    ];
    for (domain, project, allowed) in [
        ("example.com", "dev", true),
        ("web.example.com", "prod", true),
        ("web.example.com", "other", false),
        ("com", "dev", false),
        ("myexample.com", "other", true),
        ("web.shop.example.com", "shop", true),
        ("web.example.com", "shop", false),
    ] {
        assert_eq!(
            is_allowed(domain, project, &reserved),
            allowed,
            "{domain} for {project}"
        );
        assert!(is_allowed(domain, project, &[]));
    }
}
