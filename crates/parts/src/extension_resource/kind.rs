//! What kinds of extension objects can be told what to do here.

use api::extensions::ExtensionObject;
use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use runtime::apply::Object;

/// A kind of extension object that lives in a shoot's namespace.
pub trait ShootExtension: ExtensionObject + Object + Resource<Scope = NamespaceResourceScope> {}
impl<K> ShootExtension for K where K: ExtensionObject + Object + Resource<Scope = NamespaceResourceScope> {}
