//! `resources.gardener.cloud/v1alpha1`: objects that are kept in a cluster, served by seeds.

mod managed_resource;

pub use managed_resource::{
    Equivalence, ManagedResource, ManagedResourceSpec, ManagedResourceStatus, ManagedResourceStatusObject,
};
