//! Formats the health of a drive: what is known of it, one line for each thing.

use api::{DriveHealth, DriveSelfTest};
use base::calendar::month;
use base::units::size;

use super::moment;
use super::status::heading;

const INDENT: &str = "  ";

pub(super) fn section(health: &DriveHealth, out: &mut String) {
    let title = match health.read_ms {
        Some(read_ms) => format!("health, read {}", moment(read_ms)),
        None => "health".to_owned(),
    };
    heading(&title, out);
    let unread = health.unread.as_ref().map(|why| format!("not read the last time: {why}"));
    let firmware =
        Some(&health.firmware).filter(|text| !text.is_empty()).map(|text| format!("firmware {text}"));
    let spare = health.spare_percent.map(|percent| format!("spare blocks left: {percent} %"));
    let errors = health.media_errors.map(|count| format!("media errors in its life: {count}"));
    let cuts = health.unsafe_shutdowns.map(|count| format!("power cuts without a warning: {count}"));
    let on = health.power_on_hours.map(|hours| format!("switched on for {hours} hours"));
    let written = health.written_bytes.map(|bytes| format!("written in its life: {}", size(bytes)));
    let link = health.link.map(|link| format!("PCIe link {link}"));
    let test = health.self_test.map(test);
    let lines = [unread, firmware, heat(health), wear(health), spare, errors, cuts, on, written, link, test];
    lines.into_iter().flatten().for_each(|line| out.push_str(&format!("{INDENT}{line}\n")));
}

fn heat(health: &DriveHealth) -> Option<String> {
    let celsius = health.celsius?;
    let limits = [(health.celsius_warning, "warning"), (health.celsius_critical, "critical")];
    let limits = limits.into_iter().filter_map(|(limit, name)| Some(format!("{name} at {} °C", limit?)));
    let limits: Vec<String> = limits.collect();
    Some(match limits.is_empty() {
        true => format!("temperature {celsius} °C"),
        false => format!("temperature {celsius} °C ({})", limits.join(", ")),
    })
}

fn wear(health: &DriveHealth) -> Option<String> {
    let used = format!("rated endurance used: {} %", health.used_percent?);
    Some(match health.runs_out_ms {
        Some(ms) => format!("{used}; at this rate it lasts until about {}", month(ms)),
        None => used,
    })
}

fn test(test: DriveSelfTest) -> String {
    let verdict = if test.has_passed { "passed" } else { "FAILED" };
    match test.at_hours {
        Some(hours) => format!("newest self-test {verdict}, after {hours} hours of power-on"),
        None => format!("newest self-test {verdict}"),
    }
}

#[cfg(test)]
mod tests {
    use api::{DriveLink, HealthUnread};

    use super::*;

    #[test]
    fn only_what_is_known_is_shown() {
        let shown = |health: &DriveHealth| {
            let mut out = String::new();
            section(health, &mut out);
            out
        };
        let hung =
            DriveHealth { unread: Some(HealthUnread::TimedOut { seconds: 20 }), ..DriveHealth::default() };
        assert_eq!(
            shown(&hung),
            "\nhealth:\n  not read the last time: smartctl has not answered within 20 s\n"
        );
        let all = DriveHealth {
            read_ms: Some(1_795_694_400_000),
            unread: None,
            firmware: "GDC5602Q".to_owned(),
            celsius: Some(41),
            celsius_warning: Some(70),
            celsius_critical: Some(80),
            near_shutdown: false,
            used_percent: Some(3),
            runs_out_ms: Some(1_930_000_000_000),
            spare_percent: Some(100),
            media_errors: Some(0),
            unsafe_shutdowns: Some(34),
            power_on_hours: Some(13_113),
            written_bytes: Some(137 << 40),
            link: Some(DriveLink {
                width: 4,
                width_max: 4,
                megatransfers: 16_000,
                megatransfers_max: 16_000,
            }),
            self_test: Some(DriveSelfTest { has_passed: true, at_hours: Some(13_000) }),
        };
        let expected = "
health, read 2026-11-26 12:00Z:
  firmware GDC5602Q
  temperature 41 °C (warning at 70 °C, critical at 80 °C)
  rated endurance used: 3 %; at this rate it lasts until about February 2031
  spare blocks left: 100 %
  media errors in its life: 0
  power cuts without a warning: 34
  switched on for 13113 hours
  written in its life: 137 TiB
  PCIe link x4 16.0 GT/s
  newest self-test passed, after 13000 hours of power-on
";
        assert_eq!(shown(&all), expected);
    }
}
