//! Shapes that many kinds share: operations, errors, conditions, references and free-form provider data.

mod condition;
mod gardener_info;
mod last_operation;
mod packed_extension;
mod raw_extension;
mod reference;
pub(crate) mod time;

pub use condition::{Condition, ConditionStatus, find_condition};
pub use gardener_info::GardenerInfo;
pub use last_operation::{ErrorCode, LastError, LastOperation, LastOperationState, LastOperationType};
pub use packed_extension::PackedExtension;
pub use raw_extension::RawExtension;
pub(crate) use raw_extension::{any_schema, bytes_schema, object_schema};
pub use reference::{
    CrossVersionObjectReference, Duration, LocalObjectReference, NamedResourceReference, ObjectReference,
    ResourceData, SecretReference,
};
