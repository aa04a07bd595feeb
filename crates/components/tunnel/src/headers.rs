//! Headers that server and agents exchange.

/// Header of an agent with the address of the agent's node.
pub const NODE: &str = "x-repot-node";
/// Header of an agent with a sentence on the reason of a failure.
pub const WHY: &str = "x-repot-why";
