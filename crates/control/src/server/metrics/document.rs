//! `docs/metrics.md`, made from the tables of families.

use super::family::{Family, Kind};
use super::{array, drives, loads, pools};

const OPENING: &str = "# Metrics

`GET /metrics` of the API has figures for Prometheus and for whatever else reads its text format or OpenMetrics:

```
curl --unix-socket /run/tangelo/tangelo.sock http://tangelo/metrics
```

A client that accepts `application/openmetrics-text` gets OpenMetrics, every other one gets the text format of Prometheus. For Prometheus,
open the API on a TCP address (`docs/configuration.md`) and give it the token:

```yaml
scrape_configs:
  - job_name: tangelo
    authorization: { credentials_file: /etc/prometheus/tangelo.token }
    static_configs: [{ targets: [\"10.0.0.1:7780\"] }]
```

- Counters begin at 0 when the program starts, and those of a lane or of a drive's operations when the pool is opened. `rate()` and `increase()` expect
  that. The errors of a drive count since it joined its pool.
- A series depends on what the array has (volumes, hosts, portals, drives), not on sessions. A host that logs in again goes on in the same series:
  when a session ends, its figures are kept with its host and its portal.
- `(other)` as volume, host or portal stands for all that are gone or have another name now. When something goes, what it counted is added
  there, so the sum over all volumes, hosts or portals never falls.
- The clock of command durations is read once in a turn of a shard's event loop. A command that begins and ends in the same turn counts as 0 s, in the first bucket. The
  durations do not contain the way through the network.
- A failure is a command that the array could not carry out: NOT READY, MEDIUM ERROR, HARDWARE ERROR, ABORTED COMMAND, COPY ABORTED, or no space. Reservation
  conflicts, wrong fields, miscompares, writes to a read-only mapping, BUSY and unit attentions are none.
- Reads are the READ commands; writes are WRITE, WRITE AND VERIFY, ORWRITE and COMPARE AND WRITE. All else is `other`, such as UNMAP, WRITE SAME,
  SYNCHRONIZE CACHE and EXTENDED COPY.
- A command that is aborted before its answer is counted nowhere. A command counts when its answer is ready, even if the connection breaks before the answer
  reaches the host.
- Histograms have a bucket for each power of two from 16.4 us to 17.2 s. A volume, host, portal or shard has 72 series of durations: 1,000 volumes
  are 72,000 series. Where that is too much, drop `tangelo_volume_command_duration_seconds_bucket` of some `operation` with `metric_relabel_configs`.

`tangelo_alert` is exactly what `tangelo status` shows: `code` is a code of `docs/problems.md`, `severity` is `notice`, `degraded` or
`offline`, `subject` says what has the problem. An alert ends when its series is gone. A rule for all of them:

```yaml
- alert: Tangelo
  expr: tangelo_alert{severity!=\"notice\"} > 0
  annotations: { summary: \"{{ $labels.subject }}: {{ $labels.code }}\" }
```

This page is made from the tables in `crates/control/src/server/metrics`: `UPDATE_DOCS=1 cargo test -p control --lib` writes it anew.
";

fn section(title: &str, families: &[&[Family]]) -> String {
    let mut text =
        format!("\n## {title}\n\n| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n");
    for family in families.iter().copied().flatten() {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let unit = match (family.unit.word(), family.kind) {
            ("", Kind::Counter) => "count",
            (unit, _) => unit,
        };
        text.push_str(&format!(
            "| `{}` | {} | {unit} | {} | {} |\n",
            family.full_name(),
            family.kind.word(),
            labels.join(", "),
            family.help
        ));
    }
    text
}

fn document() -> String {
    let mut page = OPENING.to_owned();
    page.push_str(&section("The array", &[array::FAMILIES]));
    page.push_str(&section("Channels of alerts", &[array::CHANNELS]));
    page.push_str(&section("Pools", &[pools::POOLS]));
    page.push_str(&section("Lanes", &[pools::LANES]));
    page.push_str(&section("Drives", &[drives::DRIVES, drives::HEALTH]));
    loads::TABLES.iter().for_each(|(title, tables)| page.push_str(&section(title, tables)));
    page
}

#[test]
fn the_page_has_every_metric() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let page = document();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap();
    assert!(written == page, "docs/metrics.md is old: UPDATE_DOCS=1 cargo test -p control --lib");
    for family in super::families() {
        assert!(page.contains(&format!("| `{}` |", family.full_name())), "{}", family.full_name());
    }
}
