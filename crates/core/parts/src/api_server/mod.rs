//! kube-apiserver of the shoot: process, address, and the credentials of users.

pub(crate) mod cluster_identity;
pub(crate) mod kube_apiserver;
pub(crate) mod kube_apiserver_exposure;
pub(crate) mod kubeconfig;
pub(crate) mod shoot_api;
pub(crate) mod user_kubeconfig;
