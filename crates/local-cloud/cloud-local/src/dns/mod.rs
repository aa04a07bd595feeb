//! Names in a DNS server that takes updates signed with TSIG (RFC 2136, RFC 8945).

mod server;
mod text;
mod update;

pub use server::Server;
pub use text::{Change, TextRecord, change, only_while};
pub use update::{RecordSet, Records, absolute, remove, replace, replace_while};
