//! A family of series: one row of a table, and how it is written.

use std::collections::BTreeSet;
use std::fmt;

use api::{AlertChannel, DriveHealth, DriveStatus, Health, LaneMetrics, Metrics, PoolStatus};
use base::LatencyHistogram;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry;

/// The unit of a family, which ends its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    None,
    Bytes,
    Seconds,
    Ratio,
    Celsius,
}

impl Unit {
    fn of_library(self) -> Option<registry::Unit> {
        match self {
            Unit::None => None,
            Unit::Bytes => Some(registry::Unit::Bytes),
            Unit::Seconds => Some(registry::Unit::Seconds),
            Unit::Ratio => Some(registry::Unit::Other("ratio".to_owned())),
            Unit::Celsius => Some(registry::Unit::Celsius),
        }
    }

    #[cfg(test)]
    pub(super) fn word(self) -> &'static str {
        match self {
            Unit::None => "",
            Unit::Bytes => "bytes",
            Unit::Seconds => "seconds",
            Unit::Ratio => "ratio",
            Unit::Celsius => "celsius",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Gauge,
    Counter,
    Histogram,
}

impl Kind {
    fn of_library(self) -> MetricType {
        match self {
            Kind::Gauge => MetricType::Gauge,
            Kind::Counter => MetricType::Counter,
            Kind::Histogram => MetricType::Histogram,
        }
    }

    #[cfg(test)]
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        }
    }
}

/// One family: see the header of this file.
pub(super) struct Family {
    /// Without the prefix `tangelo_`, the unit, and `_total`.
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
    pub(super) labels: &'static [&'static str],
    pub(super) samples: Samples,
}

/// Where all values come from, at one moment.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) array: Metrics,
    /// Of the alerts of this head.
    pub(crate) channels: Vec<AlertChannel>,
}

/// Where the values of a family come from.
pub(super) enum Samples {
    /// One value for the array.
    Array(fn(&Metrics) -> f64),
    /// One for each pool, or for those that have it.
    Pools(fn(&PoolStatus) -> u64),
    SomePools(fn(&PoolStatus) -> Option<f64>),
    /// One for each lane.
    Lanes(fn(&LaneMetrics) -> u64),
    /// One for each drive whose health is known, and has it.
    Health(fn(&DriveHealth) -> Option<Value<'static>>),
    /// One for each channel of alerts that has it.
    Channels(fn(&AlertChannel) -> Option<Value<'static>>),
    /// Any number.
    Any(fn(&Metrics, &mut Sink)),
}

impl Family {
    /// The name as queries use it: with prefix, unit and `_total`.
    #[cfg(test)]
    pub(super) fn full_name(&self) -> String {
        let unit = if self.unit == Unit::None { "" } else { "_" };
        let total = if self.kind == Kind::Counter { "_total" } else { "" };
        format!("tangelo_{}{unit}{}{total}", self.name, self.unit.word())
    }

    pub(super) fn encode(&self, figures: &Figures, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let metrics = &figures.array;
        let unit = self.unit.of_library();
        let encoder =
            encoder.encode_descriptor(self.name, self.help, unit.as_ref(), self.kind.of_library())?;
        let mut sink = Sink { family: self, encoder, result: Ok(()) };
        match self.samples {
            Samples::Array(value) => sink.put(&[], value(metrics)),
            Samples::Pools(value) => {
                metrics.pools.iter().for_each(|pool| sink.put(&[&pool.name], value(pool)));
            }
            Samples::SomePools(value) => {
                let pools = metrics.pools.iter().filter_map(|pool| Some((pool, value(pool)?)));
                pools.for_each(|(pool, value)| sink.put(&[&pool.name], value));
            }
            Samples::Lanes(value) => {
                let put = |lane: &LaneMetrics| sink.put(&[&lane.pool, &lane.lane.to_string()], value(lane));
                metrics.lanes.iter().for_each(put);
            }
            Samples::Health(value) => {
                for (drive, pool) in drives(metrics) {
                    if let Some(value) = drive.health.as_ref().and_then(value) {
                        sink.put(&[&drive.path, pool], value);
                    }
                }
            }
            Samples::Channels(value) => {
                for channel in &figures.channels {
                    if let Some(value) = value(channel) {
                        sink.put(&[&channel.name], value);
                    }
                }
            }
            Samples::Any(samples) => samples(metrics, &mut sink),
        }
        sink.result
    }
}

/// A value of a series.
pub(super) enum Value<'a> {
    Whole(u64),
    Real(f64),
    Latency(&'a LatencyHistogram),
}

impl From<u64> for Value<'_> {
    fn from(value: u64) -> Self {
        Value::Whole(value)
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Value::Whole(u64::from(value))
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Value::Real(value)
    }
}

impl<'a> From<&'a LatencyHistogram> for Value<'a> {
    fn from(value: &'a LatencyHistogram) -> Self {
        Value::Latency(value)
    }
}

/// Takes the samples of one family.
pub(super) struct Sink<'a> {
    family: &'a Family,
    encoder: MetricEncoder<'a>,
    result: fmt::Result,
}

impl Sink<'_> {
    /// A sample: the values of the family's labels in their order, and its value.
    pub(super) fn put<'v>(&mut self, values: &[&str], value: impl Into<Value<'v>>) {
        let names = self.family.labels;
        assert_eq!(names.len(), values.len(), "the labels of {}", self.family.name);
        let labels: Vec<(&str, &str)> = names.iter().copied().zip(values.iter().copied()).collect();
        if self.result.is_ok() {
            self.result = self.write(&labels, value.into());
        }
    }

    fn write(&mut self, labels: &[(&str, &str)], value: Value) -> fmt::Result {
        let mut series = self.encoder.encode_family(&labels)?;
        let counts = self.family.kind == Kind::Counter;
        match value {
            Value::Whole(value) if counts => series.encode_counter::<NoLabelSet, _, u64>(&value, None),
            Value::Whole(value) => series.encode_gauge(&value),
            Value::Real(value) => series.encode_gauge(&value),
            Value::Latency(histogram) => {
                let buckets: Vec<(f64, u64)> =
                    histogram.buckets().map(|(end, count)| (seconds_of(end), count)).collect();
                let sum = seconds_of(histogram.sum());
                series.encode_histogram::<NoLabelSet>(sum, histogram.count(), &buckets, None)
            }
        }
    }
}

/// No end is endless.
fn seconds_of(time: base::Nanos) -> f64 {
    if time == base::Nanos::MAX { f64::INFINITY } else { time.0 as f64 / 1e9 }
}

/// The drives that have a path, with the pool of each. A path is named once: one that a pool still calls its own may be
/// there again as another drive.
pub(super) fn drives(metrics: &Metrics) -> Vec<(&DriveStatus, &str)> {
    let mut seen = BTreeSet::new();
    let all = metrics.pools.iter().flat_map(|pool| &pool.drives).chain(&metrics.drives);
    let named = all.map(|drive| (drive, drive.pool.as_deref().unwrap_or_default()));
    named.filter(|(drive, pool)| !drive.path.is_empty() && seen.insert((&drive.path, *pool))).collect()
}

pub(super) fn level(health: Health) -> u64 {
    match health {
        Health::Healthy => 0,
        Health::Degraded => 1,
        Health::Offline => 2,
    }
}
