//! A client like kube's, with a connection for each request under way, whose connections end when the server
//! is gone. The connections of kube do not notice: after a cut, a watch receives nothing for five minutes,
//! even if the network is back. The alternative, one connection for all requests (`multiplexed`), does not
//! suit a process with many waits at once. An API server accepts 100 requests on a connection, and each
//! further request waits for the end of an earlier request.

use std::time::Duration;

use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{Builder, Client, connect::Connect},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Config,
    client::{Body, ConfigExt},
};
use permit::PermittedConnector;

use crate::client::multiplexed::{Sender, layered, loose};

/// Connections that stay open between requests. A start with hundreds of shoots opens hundreds of
/// connections at once, and each costs some 30 KiB here and more in the API server.
const IDLE: usize = 8;
/// The idle timeout of a connection: longer than the pauses of an active controller.
const IDLE_FOR: Duration = Duration::from_secs(30);

/// Opens no connection yet.
pub(crate) fn sender(config: &Config) -> kube::Result<Sender> {
    let tcp = PermittedConnector::new(config.connect_timeout);
    let connector = config.rustls_https_connector_with_connector(tcp)?;
    layered(config, pool(connector), loose, None)
}

/// As [`sender`]. In addition, a connection ends when no byte is read or written for the timeouts of the
/// configuration.
pub(crate) fn sender_with_timeouts(config: &Config) -> kube::Result<Sender> {
    let tcp = PermittedConnector::new(config.connect_timeout);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(tcp)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    layered(config, pool(connector), loose, None)
}

fn pool<C: Connect + Clone>(connector: C) -> Client<C, Body> {
    Builder::new(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_max_idle_per_host(IDLE)
        .pool_idle_timeout(IDLE_FOR)
        .build(connector)
}
