//! The page of a fake array.

use std::collections::BTreeSet;

use api::*;

use super::family::Kind;
use super::*;
use crate::alerts::Alerts;
use crate::fake::{FakeAlerts, degraded, healthy};
use crate::fake_metrics::metrics;
use crate::server::tests::start;

fn figures(array: Metrics) -> Figures {
    Figures { array, channels: FakeAlerts.list() }
}

fn prometheus(status: &ArrayStatus) -> String {
    render(figures(metrics(status)), Format::Prometheus)
}

/// The name and labels of each sample.
fn series(page: &str) -> Vec<&str> {
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    samples.map(|line| line.rsplit_once(' ').expect("a name and a value").0).collect()
}

/// The lines about one family.
fn lines_of(page: &str, family: &str) -> String {
    let its = |line: &&str| {
        let name =
            line.trim_start_matches("# HELP ").trim_start_matches("# TYPE ").trim_start_matches("# UNIT ");
        name.strip_prefix(family).is_some_and(|rest| rest.starts_with([' ', '{', '_']))
    };
    page.lines().filter(its).map(|line| format!("{line}\n")).collect()
}

#[test]
fn samples_are_as_expected() {
    let page = prometheus(&degraded());
    for family in
        ["tangelo_alert", "tangelo_health", "tangelo_pool_used_bytes", "tangelo_pool_repair_done_bytes"]
    {
        assert!(page.contains(&format!("# HELP {family} ")), "{family}");
    }
    let expected = "\
# HELP tangelo_alert 1 for each problem that the status shows, as long as it shows it
# TYPE tangelo_alert gauge
tangelo_alert{code=\"pool-degraded\",severity=\"degraded\",subject=\"pool fast\"} 1
";
    assert!(page.contains(expected), "{page}");
    let expected = "\
# HELP tangelo_alert_deliveries_total Messages that a channel of alerts has delivered, or beats of the heartbeat
# TYPE tangelo_alert_deliveries_total counter
tangelo_alert_deliveries_total{channel=\"mail\"} 3
";
    assert_eq!(lines_of(&page, "tangelo_alert_deliveries_total"), expected);
    assert!(
        page.contains("tangelo_alert_last_delivery_timestamp_seconds{channel=\"mail\"} 1795694400.0\n"),
        "{page}"
    );
    let expected = "\
# HELP tangelo_volume_command_bytes_total Data of blocks that commands read or stored, by volume
# TYPE tangelo_volume_command_bytes_total counter
tangelo_volume_command_bytes_total{volume=\"vm-01\",operation=\"read\"} 12288
tangelo_volume_command_bytes_total{volume=\"vm-01\",operation=\"write\"} 8192
tangelo_volume_command_bytes_total{volume=\"old-lun\",operation=\"read\"} 0
tangelo_volume_command_bytes_total{volume=\"old-lun\",operation=\"write\"} 0
tangelo_volume_command_bytes_total{volume=\"(other)\",operation=\"read\"} 0
tangelo_volume_command_bytes_total{volume=\"(other)\",operation=\"write\"} 0
";
    assert_eq!(lines_of(&page, "tangelo_volume_command_bytes_total"), expected);
    for sample in [
        "tangelo_health 1.0",
        "tangelo_uptime_seconds 93784.0",
        "tangelo_pool_used_bytes{pool=\"fast\"} 550000000000",
        "tangelo_pool_copied_by_reference_bytes{pool=\"fast\"} 85899345920",
        "tangelo_pool_repair_remaining_bytes{pool=\"fast\"} 40587440948",
        "tangelo_pool_drives_out_of_service{pool=\"fast\"} 1",
        "tangelo_lane_host_written_bytes_total{pool=\"fast\",lane=\"1\"} 1099511627776",
        "tangelo_drive_errors_total{drive=\"/dev/nvme2n1\",pool=\"fast\",kind=\"checksum\"} 12",
        "tangelo_drive_in_service{drive=\"/dev/nvme2n1\",pool=\"fast\"} 0",
        "tangelo_drive_operation_bytes_total{drive=\"/dev/nvme0n1\",pool=\"fast\",operation=\"read\"} 40960",
        "tangelo_host_logins_total{host=\"pve1\"} 7",
        "tangelo_portal_refused_logins_total{portal=\"10.0.0.1:3260\"} 2",
        "tangelo_shard_sessions{shard=\"1\"} 1",
        "tangelo_shard_data_memory_limit_bytes{shard=\"0\"} 536870912",
    ] {
        assert!(page.lines().any(|line| line == sample), "{sample} is missing:\n{page}");
    }
}

#[test]
fn durations_are_histograms_in_seconds() {
    let page = prometheus(&healthy());
    let of_writes = |line: &&str| line.contains("host=\"pve1\"") && line.contains("\"write\"");
    let family = lines_of(&page, "tangelo_host_command_duration_seconds");
    let samples: Vec<&str> = family.lines().filter(of_writes).collect();
    assert_eq!(samples.len(), 24, "{samples:?}");
    let has = |start: &str, end: &str| samples.iter().any(|line| line.contains(start) && line.ends_with(end));
    assert!(has("le=\"0.000262144\"", "} 0") && has("le=\"0.000524288\"", "} 2"), "{samples:#?}");
    assert!(has("le=\"17.179869184\"", "} 2") && has("le=\"+Inf\"", "} 2"), "{samples:#?}");
    assert!(has("_count{", "} 2") && has("_sum{", "} 0.0006"), "{samples:#?}");
}

#[test]
fn names_follow_the_conventions_and_nothing_is_given_twice() {
    let mut status = healthy();
    let missing = DriveStatus { path: String::new(), state: DriveState::Missing, ..status.drives[0].clone() };
    // two that have no path, and one that was at a path where another is now
    let again = DriveStatus { state: DriveState::Missing, ..status.pools[0].drives[0].clone() };
    status.pools[0].drives.extend([missing.clone(), missing, again]);
    let page = prometheus(&status);
    let all = series(&page);
    let distinct: BTreeSet<&&str> = all.iter().collect();
    assert_eq!(distinct.len(), all.len(), "a series is given twice: {page}");
    assert!(page.lines().any(|line| line == "tangelo_pool_drives_out_of_service{pool=\"fast\"} 3"), "{page}");
    for family in families() {
        let name = family.full_name();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        assert!(page.contains(&format!("# HELP {name} {}\n", family.help)), "{name}");
        assert!(page.contains(&format!("# TYPE {name} {}\n", family.kind.word())), "{name}");
        assert!(family.kind == Kind::Counter || !family.name.ends_with("_total"), "{name}");
        assert!(!family.help.is_empty() && !family.help.ends_with('.'), "{name}");
    }
}

#[test]
fn the_health_of_a_drive_has_series_as_far_as_it_is_known() {
    let mut status = healthy();
    status.pools[0].drives[0].health = Some(DriveHealth {
        read_ms: Some(1_795_694_400_000),
        firmware: "GDC5602Q".to_owned(),
        celsius: Some(41),
        used_percent: Some(3),
        media_errors: Some(0),
        power_on_hours: Some(2),
        ..DriveHealth::default()
    });
    let page = prometheus(&status);
    let of = "{drive=\"/dev/nvme0n1\",pool=\"fast\"}";
    for sample in [
        format!("tangelo_drive_temperature_celsius{of} 41.0"),
        format!("tangelo_drive_endurance_used_ratio{of} 0.03"),
        format!("tangelo_drive_media_errors_total{of} 0"),
        format!("tangelo_drive_power_on_seconds_total{of} 7200"),
        format!("tangelo_drive_health_read_timestamp_seconds{of} 1795694400.0"),
    ] {
        assert!(page.lines().any(|line| line == sample), "{sample} is missing:\n{page}");
    }
    let unknown = series(&page);
    assert!(!unknown.iter().any(|name| name.starts_with("tangelo_drive_spare_ratio")), "{page}");
    assert_eq!(unknown.iter().filter(|name| name.starts_with("tangelo_drive_temperature")).count(), 1);
    assert!(page.contains("bay=\"0\",firmware=\"GDC5602Q\"}"), "{page}");
}

#[test]
fn labels_are_escaped() {
    let mut status = healthy();
    status.pools[0].drives[0].path = "/dev/a\"b\\c\nd".to_owned();
    let page = prometheus(&status);
    assert!(
        page.contains("tangelo_drive_size_bytes{drive=\"/dev/a\\\"b\\\\c\\nd\",pool=\"fast\"} "),
        "{page}"
    );
}

#[test]
fn a_thousand_volumes_are_rendered() {
    let mut status = healthy();
    status.volumes = (0..1000)
        .map(|id| VolumeStatus { id, name: format!("volume-{id}"), ..status.volumes[0].clone() })
        .collect();
    let page = prometheus(&status);
    let of_one = series(&page).into_iter().filter(|series| series.contains("\"volume-999\"")).count();
    assert_eq!(of_one, 72 + 2 + 3 + 1 + 2, "the documentation says how many there are");
}

#[tokio::test]
async fn clients_get_the_format_that_they_accept() {
    let fixture = start().await;
    let page = async |accept: &str| {
        fixture.raw(&format!("GET /metrics HTTP/1.1\r\nHost: t\r\nConnection: close\r\n{accept}\r\n")).await
    };
    for accept in ["", "Accept: */*\r\n", "Accept: text/plain;version=0.0.4\r\n"] {
        let text = page(accept).await;
        assert!(text.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{text}");
        assert!(text.contains("\n# TYPE tangelo_host_logins_total counter\n"), "{text}");
    }
    let text = page("Accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1\r\n").await;
    assert!(text.contains("content-type: application/openmetrics-text; version=1.0.0"), "{text}");
    assert!(text.contains("\n# TYPE tangelo_host_logins counter\n"), "{text}");
    assert!(
        text.contains("\n# UNIT tangelo_pool_used_bytes bytes\n") && text.contains("\n# EOF\n"),
        "{text}"
    );
}
