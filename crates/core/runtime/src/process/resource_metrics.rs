//! Memory, processor time and open files of the process as metrics, under the usual names of Prometheus. A
//! scrape reads `/proc`.

use std::{fmt, fs};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::MetricType,
};

use crate::process::metrics::{Metrics, ScrapedSeries};

/// Units of the times in `/proc/self/stat`, in a second. Linux has this value on all processors that images
/// are built for, whatever the frequency of the timer.
const TICKS: f64 = 100.0;

/// Registers the metrics of this process.
pub(crate) fn register(metrics: &Metrics) {
    let memory = "Resident memory of the process in bytes";
    metrics.register_scraped("process_resident_memory_bytes", memory, || {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        single(resident_bytes(&status))
    });
    let files = "Number of open file descriptors of the process";
    metrics.register_scraped("process_open_fds", files, || single(open_files()));
    metrics.register(|registry| registry.register_collector(Box::new(ProcessorTime)));
}

/// The counter of the processor time, which the kernel counts.
#[derive(Debug)]
struct ProcessorTime;

impl Collector for ProcessorTime {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let Some(seconds) = processor_seconds(&stat) else {
            return Ok(());
        };
        let help = "Seconds that the process has used processors, in user and system mode";
        let mut counter =
            encoder.encode_descriptor("process_cpu_seconds", help, None, MetricType::Counter)?;
        counter.encode_counter::<NoLabelSet, _, f64>(&seconds, None)
    }
}

/// The name of the program stands in parentheses, and may have spaces and parentheses itself.
fn processor_seconds(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut times = fields.split_ascii_whitespace().skip(11);
    let user: f64 = times.next()?.parse().ok()?;
    let system: f64 = times.next()?.parse().ok()?;
    Some((user + system) / TICKS)
}

/// The series without labels; nothing where `/proc` has no value.
fn single(value: Option<f64>) -> Vec<ScrapedSeries> {
    value
        .map(|value| ScrapedSeries::new([], value))
        .into_iter()
        .collect()
}

fn resident_bytes(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u32 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(f64::from(kibibytes) * 1024.0)
}

fn open_files() -> Option<f64> {
    let entries = fs::read_dir("/proc/self/fd").ok()?;
    u32::try_from(entries.count()).ok().map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_in_bytes() {
        assert_eq!(
            resident_bytes("Name:\ta\nVmRSS:\t    1760 kB\nThreads:\t1\n"),
            Some(1_802_240.0)
        );
        assert_eq!(resident_bytes("Name:\ta\n"), None);
    }

    #[test]
    fn processor_time_is_read_in_seconds() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 2105 0 3 0 250 50 9 9 20 0 5 0 1234 1 1\n";
        assert_eq!(processor_seconds(stat), Some(3.0));
        assert_eq!(processor_seconds("7 (a) S 1"), None);
    }

    #[test]
    fn a_scrape_shows_memory_processor_time_and_open_files() {
        let metrics = Metrics::default();
        register(&metrics);
        let text = metrics.encode();
        for name in [
            "process_resident_memory_bytes",
            "process_open_fds",
            "process_cpu_seconds_total",
        ] {
            let series = text.lines().find(|line| line.starts_with(name));
            assert!(series.is_some(), "{name} is not in\n{text}");
        }
    }
}
