//! Names outside of the owner record's zone. A server compares only what is in the zone that it changes, so
//! an update cannot name the epoch. It names what was read: an update that is delivered late changes nothing
//! when the name has other values by then.
//!
//! An update whose values are those that stand there again is not noticed (from A to B and back to A).

use cloud_local::dns::{self, Records, Server};
use hickory_proto::{op::ResponseCode, rr::Name};
use runtime::{Error, Result};

/// How often the name is read again when its values change between reading and writing.
const ATTEMPTS: usize = 3;

/// Gives the name these values.
pub(super) async fn write(server: &Server, zone: &Name, records: &Records) -> Result<()> {
    for _ in 0..ATTEMPTS {
        let read = server.sets_of(records).await?;
        let Some(update) = dns::replace_while(zone, records, &read)? else {
            return Ok(());
        };
        match server.update(update).await? {
            ResponseCode::NoError => return Ok(()),
            ResponseCode::NXRRSet
            | ResponseCode::YXRRSet
            | ResponseCode::NXDomain
            | ResponseCode::YXDomain => {}
            code => return Err(server.refused(zone, code)),
        }
    }
    Err(Error::transient(format!(
        "could not write {}: its values changed {ATTEMPTS} times between reading and writing; find out which other client writes it",
        records.name
    )))
}
