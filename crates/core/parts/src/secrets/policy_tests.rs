//! Policy `gardenlet-shootstate` of the garden, and the reader of a ShootState, know each Secret that a
//! gardenlet creates once for a shoot.

use super::config;

const POLICY: &str =
    include_str!("../../../../../charts/garden/files/policies/gardenlet-project-namespace.yaml");

/// A Secret that the policy does not name could be removed from the ShootState by a hostile host.
#[test]
fn the_policy_keeps_each_carried_secret_with_its_data() {
    let begin = POLICY.find("{'ca': [").expect("the list of the policy");
    let end = POLICY[begin..].find('}').expect("the end of the list");
    let list = POLICY[begin..=begin + end].split_whitespace().collect::<String>();
    let table = config::table(&crate::names_in_tests("100.96.0.0/11"));
    let mut carried: Vec<_> = table.iter().filter(|config| config.carried).collect();
    carried.sort_by_key(|config| config.name);
    let entries = carried.iter().map(|config| {
        let keys: Vec<_> = config
            .recipe
            .keys()
            .iter()
            .map(|key| format!("'{key}'"))
            .collect();
        format!("'{}':[{}]", config.name, keys.join(","))
    });
    assert_eq!(list, format!("{{{}}}", entries.collect::<Vec<_>>().join(",")));
}

/// A key that the reader does not know would be lost in a restore.
#[test]
fn the_reader_of_a_shoot_state_knows_the_data_of_each_carried_secret() {
    for config in config::table(&crate::names_in_tests("100.96.0.0/11")) {
        let expected = config.carried.then(|| config.recipe.keys());
        assert_eq!(config::carried_keys(config.name), expected, "{}", config.name);
    }
    assert_eq!(config::carried_keys("of-extension"), None);
    assert!(
        config::CARRIED
            .iter()
            .all(|name| config::carried_keys(name).is_some())
    );
}
