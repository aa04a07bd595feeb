//! What both sides say to each other besides bytes.

/// Header in which an agent says on which node it is.
pub const NODE: &str = "x-repot-node";
/// Header in which an agent says in a sentence why there is no connection.
pub const WHY: &str = "x-repot-why";
