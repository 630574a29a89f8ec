//! Families about the array as a whole, and its alerts.

use std::collections::BTreeMap;

use api::{Health, Metrics};

use super::family::{Family, Kind, Samples, Sink, Unit, level};

fn severity(health: Health) -> &'static str {
    match health {
        Health::Healthy => "notice",
        Health::Degraded => "degraded",
        Health::Offline => "offline",
    }
}

/// The problems of the status: how many there are with the same labels, which is nearly always one.
fn alerts(metrics: &Metrics, sink: &mut Sink) {
    let mut alerts: BTreeMap<(String, &str, String), u64> = BTreeMap::new();
    for problem in &metrics.problems {
        let labels = (problem.code().to_string(), severity(problem.health()), problem.subject.to_string());
        *alerts.entry(labels).or_default() += 1;
    }
    for ((code, severity, subject), count) in alerts {
        sink.put(&[&code, severity, &subject], count);
    }
}

pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "build_info",
        unit: Unit::None,
        kind: Kind::Gauge,
        help: "Always 1. The version of the program, and which array it serves",
        labels: &["version", "array", "target"],
        samples: Samples::Any(|metrics, sink| {
            let version = env!("CARGO_PKG_VERSION");
            sink.put(&[version, &metrics.array_id, &metrics.target_name], 1u64);
        }),
    },
    Family {
        name: "uptime",
        unit: Unit::Seconds,
        kind: Kind::Gauge,
        help: "Time since the program started to serve",
        labels: &[],
        samples: Samples::Array(|metrics| metrics.uptime_ms as f64 / 1e3),
    },
    Family {
        name: "health",
        unit: Unit::None,
        kind: Kind::Gauge,
        help: "Health of the array: 0 healthy, 1 degraded, 2 offline",
        labels: &[],
        samples: Samples::Array(|metrics| level(metrics.health) as f64),
    },
    Family {
        name: "alert",
        unit: Unit::None,
        kind: Kind::Gauge,
        help: "1 for each problem that the status shows, as long as it shows it",
        labels: &["code", "severity", "subject"],
        samples: Samples::Any(alerts),
    },
];

/// Of channels of alerts, which each head has for itself.
pub(super) const CHANNELS: &[Family] = &[
    Family {
        name: "alert_deliveries",
        unit: Unit::None,
        kind: Kind::Counter,
        help: "Messages that a channel of alerts has delivered, or beats of the heartbeat",
        labels: &["channel"],
        samples: Samples::Channels(|channel| Some(channel.deliveries.into())),
    },
    Family {
        name: "alert_delivery_failures",
        unit: Unit::None,
        kind: Kind::Counter,
        help: "Attempts of a channel of alerts to deliver a message that have failed",
        labels: &["channel"],
        samples: Samples::Channels(|channel| Some(channel.failures.into())),
    },
    Family {
        name: "alert_last_delivery_timestamp",
        unit: Unit::Seconds,
        kind: Kind::Gauge,
        help: "When a channel of alerts has delivered a message last, in seconds since 1970. Missing if it has not since the program started",
        labels: &["channel"],
        samples: Samples::Channels(|channel| Some((channel.delivered_ms? as f64 / 1e3).into())),
    },
];
