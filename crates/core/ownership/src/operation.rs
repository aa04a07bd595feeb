//! The identity of an operation on a shoot.

/// The identity of the operations of an ownership epoch, in logs, Events and the status of both seeds.
///
/// A move belongs to the epoch that the move begins: the source, whose epoch ends, uses the following epoch.
/// Both seeds and the processes beside etcd derive the identity, so that no process has to be restarted to
/// learn the identity.
#[must_use]
pub fn operation_id(uid: &str, epoch: i64) -> String {
    format!("{uid}-{epoch}")
}
