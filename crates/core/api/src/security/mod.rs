//! `security.gardener.cloud/v1alpha1`, served by the garden cluster.

mod credentials_binding;

pub use credentials_binding::{CredentialsBinding, CredentialsBindingFields, CredentialsBindingProvider};
