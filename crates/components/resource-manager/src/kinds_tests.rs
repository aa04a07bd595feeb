use super::*;

fn served(kind: &str, namespaced: bool) -> Served {
    let kind = GroupVersionKind::gvk("", "v1", kind);
    Served {
        resource: ApiResource::from_gvk(&kind),
        namespaced,
        watchable: true,
    }
}

fn key(kind: &str) -> Key {
    Key {
        group: String::new(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        namespace: None,
        name: "n".to_owned(),
    }
}

#[test]
fn what_clusters_serve_alike_is_kept_once_and_each_forgets_for_itself() {
    let catalogue = Arc::new(Catalogue::default());
    let [one, other] = [(); 2].map(|()| Kinds::new(Arc::clone(&catalogue)));
    let kept = one.remember(&key("Secret"), served("Secret", true));
    let same = other.remember(&key("Secret"), served("Secret", true));
    assert!(Arc::ptr_eq(&kept, &same));
    // A cluster that serves the kind with different properties.
    let odd = other.remember(&key("Secret"), served("Secret", false));
    assert_eq!(other.find_cached(&key("Secret")), Some(odd));
    assert_eq!(one.find_cached(&key("Secret")), Some(kept));
    one.forget(&key("Secret"));
    assert_eq!(one.find_cached(&key("Secret")), None);
    assert!(other.find_cached(&key("Secret")).is_some());
    drop((one, other, same));
    catalogue.entry(served("Node", false));
    assert_eq!(
        catalogue.0.lock().unwrap_or_else(PoisonError::into_inner).len(),
        1
    );
}
