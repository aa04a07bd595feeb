//! Names outside of the owner record's zone. A server compares only records in the zone of the update, so an
//! update cannot require the epoch. Instead, the update requires the values that were read: a late update
//! changes nothing if the name has different values by then.
//!
//! A limit: a change from A to B and back to A between read and update goes unnoticed.

use cloud_local::dns::{self, Records, Server};
use hickory_proto::{op::ResponseCode, rr::Name};
use runtime::{Error, Result};

/// Maximum reads of the name when the values change between read and write.
const ATTEMPTS: usize = 3;

/// Sets these values of the name.
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
