//! Three clusters, three client types: a write to the wrong cluster does not compile. Each client is created
//! with a permit, and requests leave the process only while that permit is valid.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Client, Resource, core::ClusterResourceScope};
use permit::Permit;

use crate::client::Connection;

/// A cluster with an API server that processes use.
pub trait Cluster: Clone + Send + Sync + 'static {
    /// The client of this cluster.
    fn client(&self) -> &Client;

    /// The permit behind the requests to this cluster. Calls to outside systems for the same purpose need
    /// this permit too.
    fn permit(&self) -> &Permit;

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
        pub struct $name {
            connection: Connection,
            client: Client,
            permit: Permit,
        }

        impl $name {
            /// Takes a connection that is known to lead to this cluster.
            #[must_use]
            pub fn new(connection: impl Into<Connection>, permit: &Permit) -> Self {
                let connection = connection.into();
                Self {
                    client: connection.client(permit),
                    permit: permit.clone(),
                    connection,
                }
            }

            /// The same cluster for a caller that also needs the permit `further`.
            #[must_use]
            pub fn under(&self, further: &Permit) -> Self {
                Self::new(self.connection.clone(), &self.permit.and(further))
            }
        }

        impl Cluster for $name {
            fn client(&self) -> &Client {
                &self.client
            }

            fn permit(&self) -> &Permit {
                &self.permit
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
    /// A shoot: the hosted cluster.
    Shoot
);
