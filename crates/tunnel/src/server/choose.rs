//! Which agent is asked. Pure.

use std::net::IpAddr;

use crate::bounds::STREAMS;

/// What counts of an agent.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Tells it from all others of this server's life.
    pub id: u64,
    /// Address of the node on which it says to be.
    pub node: Option<IpAddr>,
    /// Connections through it.
    pub streams: usize,
}

/// The agent on the target's own node, which needs no other node to be well; else the one with the fewest
/// connections. None that was tried already, and none that is full.
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
        // One after the other is tried, each once.
        assert_eq!(choose(&agents, node(1), &[1]), Some(2));
        assert_eq!(choose(&agents, node(1), &[1, 2]), Some(3));
        assert_eq!(choose(&agents, node(1), &[1, 2, 3]), None);
        // An agent that did not say where it is is nobody's neighbour.
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
