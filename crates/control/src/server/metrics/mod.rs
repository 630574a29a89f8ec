//! The metrics of the array, for Prometheus and everything else that reads OpenMetrics.
//!
//! ```text
//!   Command::Metrics ─► api::Metrics ─► FAMILIES (one row: name, unit, type, help, samples) ─► prometheus-client ─► text
//!                                          └────► docs/metrics.md
//! ```
//!
//! A family is a row of a table in `array.rs`, `pools.rs`, `drives.rs` or `loads.rs`. What always holds: names follow
//! Prometheus' conventions (base units, `_total` for counters). A series never depends on a session, so a host that logs
//! in again makes no new series.

mod array;
#[cfg(test)]
mod document;
mod drives;
mod family;
mod loads;
mod pools;
#[cfg(test)]
mod tests;

use std::fmt;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text, text};
use prometheus_client::registry::Registry;

use self::family::Family;
pub(super) use self::family::Figures;

/// All families, in the order of the page.
fn families() -> impl Iterator<Item = &'static Family> {
    [array::FAMILIES, array::CHANNELS, pools::POOLS, pools::LANES, drives::DRIVES, drives::HEALTH]
        .into_iter()
        .flatten()
        .chain(loads::families())
}

/// All families with the values of one moment.
#[derive(Debug)]
struct Snapshot(Figures);

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        families().try_for_each(|family| family.encode(&self.0, &mut encoder))
    }
}

/// A format that scrapers read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    /// The text format of Prometheus, which every scraper reads.
    Prometheus,
    /// OpenMetrics, which names units.
    OpenMetrics,
}

impl Format {
    /// What the client accepts; Prometheus says that it accepts both.
    fn accepted(accept: &str) -> Format {
        match accept.contains("application/openmetrics-text") {
            true => Format::OpenMetrics,
            false => Format::Prometheus,
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The page for a client that accepts these formats.
pub(super) async fn page(figures: Figures, accept: &str) -> Response {
    let format = Format::accepted(accept);
    // a thousand volumes are megabytes of text: other requests are served meanwhile
    let text =
        tokio::task::spawn_blocking(move || render(figures, format)).await.expect("rendering does not panic");
    ([(header::CONTENT_TYPE, format.content_type())], text).into_response()
}

fn render(figures: Figures, format: Format) -> String {
    let mut registry = Registry::with_prefix("tangelo");
    registry.register_collector(Box::new(Snapshot(figures)));
    let mut page = String::new();
    let written = match format {
        Format::Prometheus => prometheus_text::encode(&mut page, &registry),
        Format::OpenMetrics => text::encode(&mut page, &registry),
    };
    written.expect("a string takes everything");
    page
}
