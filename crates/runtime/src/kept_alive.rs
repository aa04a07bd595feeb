//! A client as kube makes it, one connection for each request that is under way, whose connections end when the other side is gone.
//! kube's own do not notice: a watch that was cut off hears nothing for five minutes, also when the road is there again. One
//! connection for everything (`multiplexed`) is not for a process that waits for many things at once: an API server takes a
//! hundred requests on one, and the next ones wait for one of these to end.

use std::time::Duration;

use hyper_util::{
    client::legacy::{Builder, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::{
    Config,
    client::{Body, ConfigExt},
};

use crate::multiplexed::{Sender, layered};

/// A connection that carries a watch is silent for minutes. After this time the other side is asked whether it is there…
const SILENT_FOR: Duration = Duration::from_secs(20);
/// …and again, so often…
const ASK_EVERY: Duration = Duration::from_secs(10);
/// …and so many times.
const ASK_TIMES: u32 = 3;
/// What was sent and is not acknowledged ends the connection, too. Longer than a busy machine stands still.
const UNACKNOWLEDGED_FOR: Duration = Duration::from_secs(40);

/// Opens nothing yet. The server must speak TLS.
pub(crate) fn sender(config: &Config) -> kube::Result<Sender> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(config.connect_timeout);
    tcp.set_keepalive(Some(SILENT_FOR));
    tcp.set_keepalive_interval(Some(ASK_EVERY));
    tcp.set_keepalive_retries(Some(ASK_TIMES));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED_FOR));
    let connector = config.rustls_https_connector_with_connector(tcp)?;
    let connections = Builder::new(TokioExecutor::new()).build::<_, Body>(connector);
    layered(config, connections, |frame| frame)
}
