//! Kinds of extension objects that this module can reconcile.

use api::extensions::ExtensionObject;
use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use runtime::client::apply::Object;

/// A kind of extension object with objects in a shoot's namespace.
pub trait ShootExtension: ExtensionObject + Object + Resource<Scope = NamespaceResourceScope> {}
impl<K> ShootExtension for K where K: ExtensionObject + Object + Resource<Scope = NamespaceResourceScope> {}
