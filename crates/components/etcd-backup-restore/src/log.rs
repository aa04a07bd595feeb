//! Logs of the process: JSON like the logs of all other processes, on standard error. Each line has the
//! ownership epoch and the identity of the operation, which the gardenlets of both seeds use too.

use crate::cli::Command;
use ownership::operation_id;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{Format, Json, JsonFields, Writer};
use tracing_subscriber::fmt::time::SystemTime;
use tracing_subscriber::fmt::{FmtContext, FormatEvent};
use tracing_subscriber::registry::LookupSpan;

/// The library logs each repeat; the process logs the result once.
const DEFAULT: &str = "info,object_store=warn";
/// The crate h2 logs the headers of requests, and headers hold credentials.
const GUARD: &str = "h2=info";

/// Whether the shoot leaves: logs belong to the move that ends the epoch.
static LEAVES: AtomicBool = AtomicBool::new(false);

/// From now on the logs have the identity of the move that ends the epoch of this process.
pub fn report_leaving() {
    LEAVES.store(true, Ordering::Relaxed);
}

/// The epoch and the shoot that a process works for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogScope {
    epoch: i64,
    /// Empty if the store does not belong to a shoot.
    uid: String,
}

impl LogScope {
    /// The scope of a command.
    #[must_use]
    pub fn of_command(command: &Command) -> Self {
        let (epoch, prefix, uid) = match command {
            Command::Server(args) => (
                args.ownership_epoch,
                args.store.store_prefix.as_str(),
                args.owner.shoot_uid.as_deref(),
            ),
            Command::Initialize(args) => (args.ownership_epoch, args.store.store_prefix.as_str(), None),
            Command::Prepare(args) => (args.ownership_epoch, "", None),
            Command::Copy(args) => (args.ownership_epoch, args.target.store_prefix.as_str(), None),
            Command::Follow(args) => (
                args.source_ownership_epoch,
                args.source_store.source_store_prefix.as_str(),
                None,
            ),
        };
        let uid = uid.filter(|uid| !uid.is_empty()).or_else(|| uid_of(prefix));
        Self {
            epoch,
            uid: uid.unwrap_or_default().to_owned(),
        }
    }

    /// The fields that each line begins with, as JSON without braces.
    fn fields(&self, leaves: bool) -> String {
        let mut fields = format!("\"epoch\":{}", self.epoch);
        if !self.uid.is_empty() {
            let epoch = self.epoch + i64::from(leaves);
            let id = serde_json::Value::from(operation_id(&self.uid, epoch));
            fields = format!("{fields},\"operationID\":{id}");
        }
        fields
    }
}

/// The uid in `<technical id>--<uid>/…`, the prefix of a shoot in a bucket.
fn uid_of(prefix: &str) -> Option<&str> {
    let place = prefix.trim_matches('/').split('/').next()?;
    place.rsplit_once("--").map(|(_, uid)| uid)
}

/// Begins to log.
pub fn init(scope: LogScope) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    let filter = match GUARD.parse() {
        Ok(guard) => filter.add_directive(guard),
        Err(_) => filter,
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .fmt_fields(JsonFields::new())
        .event_format(format_of(scope))
        .init();
}

fn format_of(scope: LogScope) -> ScopedJson {
    ScopedJson {
        scope,
        json: tracing_subscriber::fmt::format().json().flatten_event(true),
    }
}

/// JSON in which each line begins with the fields of the scope. A span would be lost in every spawned task.
struct ScopedJson {
    scope: LogScope,
    json: Format<Json, SystemTime>,
}

impl<S> FormatEvent<S, JsonFields> for ScopedJson
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        self.json.format_event(context, Writer::new(&mut line), event)?;
        match line.strip_prefix('{') {
            Some(rest) => {
                let fields = self.scope.fields(LEAVES.load(Ordering::Relaxed));
                write!(writer, "{{{fields},{rest}")
            }
            None => writer.write_str(&line),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    fn scope(args: &[&str]) -> LogScope {
        let args = ["etcd-backup-restore"].iter().chain(args);
        LogScope::of_command(&Cli::try_parse_from(args).unwrap().command)
    }

    #[test]
    fn the_operation_is_that_of_the_epoch_and_of_the_move_that_ends_the_epoch() {
        let copy = [
            "copy",
            "--ownership-epoch=3",
            "--store-prefix=shoot--dev--one--0841c87f-8db9/etcd-main",
            "--source-store-prefix=shoot--dev--one--0841c87f-8db9/etcd-main",
        ];
        let destination = scope(&copy);
        assert_eq!(
            destination.fields(false),
            r#""epoch":3,"operationID":"0841c87f-8db9-3""#
        );
        let source = scope(&[
            "server",
            "--ownership-epoch=2",
            "--store-prefix=shoot--dev--one--0841c87f-8db9/etcd-main",
        ]);
        assert_eq!(
            source.fields(true),
            r#""epoch":2,"operationID":"0841c87f-8db9-3""#
        );
        assert_eq!(
            scope(&["server", "--store-prefix=backups"]).fields(false),
            r#""epoch":1"#
        );
    }
}
