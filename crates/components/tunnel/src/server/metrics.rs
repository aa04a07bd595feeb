//! Metrics of the server.

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};

/// The metrics of a server.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// Agents that are connected.
    pub agents: Gauge,
    /// Connections that are open.
    pub streams: Gauge,
    /// Connections that were opened.
    pub opened: Counter,
    /// Connections that could not be opened.
    pub failed: Counter,
}

impl Numbers {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let agents = "Agents of the shoot that are connected; without one the API server reaches no node";
        registry.register("repot_tunnel_agents", agents, self.agents.clone());
        let streams = "Connections of the API server that are open";
        registry.register("repot_tunnel_streams", streams, self.streams.clone());
        let opened = "Connections of the API server that were opened";
        registry.register("repot_tunnel_opened", opened, self.opened.clone());
        let failed = "Connections of the API server that could not be opened";
        registry.register("repot_tunnel_failed", failed, self.failed.clone());
    }
}
