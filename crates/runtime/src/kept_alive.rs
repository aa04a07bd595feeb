//! A client as kube makes it, one connection for each request that is under way, whose connections end when
//! the other side is gone. kube's own do not notice: a watch that was cut off hears nothing for five minutes,
//! also when the road is there again. One connection for everything (`multiplexed`) is not for a process that
//! waits for many things at once: an API server takes a hundred requests on one, and the next ones wait for
//! one of these to end.

use hyper_timeout::TimeoutConnector;
use hyper_util::{client::legacy::Builder, rt::TokioExecutor};
use kube::{
    Config,
    client::{Body, ConfigExt},
};
use permit::PermittedConnector;

use crate::multiplexed::{Sender, layered};

/// Opens nothing yet.
pub(crate) fn sender(config: &Config) -> kube::Result<Sender> {
    let tcp = PermittedConnector::new(config.connect_timeout);
    let connector = config.rustls_https_connector_with_connector(tcp)?;
    let connections = Builder::new(TokioExecutor::new()).build::<_, Body>(connector);
    layered(config, connections, |frame| frame)
}

/// The same, and a connection ends when nothing is read or written on it for as long as the configuration
/// says.
pub(crate) fn sender_with_timeouts(config: &Config) -> kube::Result<Sender> {
    let tcp = PermittedConnector::new(config.connect_timeout);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(tcp)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let connections = Builder::new(TokioExecutor::new()).build::<_, Body>(connector);
    layered(config, connections, |frame| frame)
}
