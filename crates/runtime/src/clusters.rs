//! Three clusters, three types: writing to the wrong cluster does not compile.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Client, Resource, core::ClusterResourceScope};

/// A cluster that the suite talks to.
pub trait Cluster: Clone + Send + Sync + 'static {
    /// The client of this cluster.
    fn client(&self) -> &Client;

    /// The objects of a kind in one namespace.
    fn namespaced<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client().clone(), namespace)
    }

    /// The objects of a cluster-scoped kind.
    fn cluster_wide<K>(&self) -> Api<K>
    where
        K: Resource<Scope = ClusterResourceScope, DynamicType = ()>,
    {
        Api::all(self.client().clone())
    }

    /// The objects of a kind in all namespaces: to list and watch, not to write.
    fn all<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = ()>,
    {
        Api::all(self.client().clone())
    }
}

macro_rules! cluster {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name(Client);

        impl $name {
            /// Takes a client that is known to lead to this cluster.
            #[must_use]
            pub fn new(client: Client) -> Self {
                Self(client)
            }
        }

        impl Cluster for $name {
            fn client(&self) -> &Client {
                &self.0
            }
        }

        impl Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}

cluster!(
    /// The garden: where users' Shoots, Seeds and Projects live.
    Garden
);
cluster!(
    /// A seed: where control planes of shoots run.
    Seed
);
cluster!(
    /// A shoot: the hosted cluster itself.
    Shoot
);
