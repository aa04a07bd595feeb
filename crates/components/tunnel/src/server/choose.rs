//! Chooses the agent for a request. Pure.

use std::net::IpAddr;

use crate::limits::STREAMS;

/// The input for the choice of an agent.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Unique during the lifetime of this server.
    pub id: u64,
    /// Address of the node that the agent reported.
    pub node: Option<IpAddr>,
    /// Open connections through the agent.
    pub streams: usize,
}

/// Prefers the agent on the target's node, because that path needs no healthy second node. Else the agent
/// with the fewest connections. Agents that were tried already or are full are skipped.
#[must_use]
pub fn choose(candidates: &[Candidate], target: Option<IpAddr>, tried: &[u64]) -> Option<u64> {
    candidates
        .iter()
        .filter(|agent| !tried.contains(&agent.id) && agent.streams < STREAMS as usize)
        .min_by_key(|agent| {
            let elsewhere = target.is_none() || agent.node != target;
            (elsewhere, agent.streams, agent.id)
        })
        .map(|agent| agent.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(id: u64, node: u8, streams: usize) -> Candidate {
        let node = Some(IpAddr::from([10, 0, 0, node]));
        Candidate { id, node, streams }
    }

    #[test]
    fn the_targets_own_node_comes_first_then_the_fewest_connections() {
        let agents = [agent(1, 1, 9), agent(2, 2, 3), agent(3, 3, 4)];
        let node = |last| Some(IpAddr::from([10, 0, 0, last]));
        assert_eq!(choose(&agents, node(1), &[]), Some(1));
        assert_eq!(choose(&agents, node(9), &[]), Some(2));
        assert_eq!(choose(&agents, None, &[]), Some(2));
        // Each agent is tried once, in order.
        assert_eq!(choose(&agents, node(1), &[1]), Some(2));
        assert_eq!(choose(&agents, node(1), &[1, 2]), Some(3));
        assert_eq!(choose(&agents, node(1), &[1, 2, 3]), None);
        // An agent without a reported node is never the agent on the target's node.
        let nowhere = Candidate {
            node: None,
            ..agent(4, 0, 0)
        };
        assert_eq!(choose(&[nowhere, agent(1, 1, 9)], None, &[]), Some(4));
    }

    #[test]
    fn a_full_one_is_passed_over() {
        let full = STREAMS as usize;
        let target = Some(IpAddr::from([10, 0, 0, 1]));
        assert_eq!(choose(&[agent(1, 1, full), agent(2, 2, 7)], target, &[]), Some(2));
        assert_eq!(choose(&[agent(1, 1, full)], target, &[]), None);
    }
}
