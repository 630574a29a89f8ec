//! Answers of the array as people read them. What programs read is the answer's JSON itself.

mod lists;
mod status;
mod table;

use control::api::{Changed, Health};
use serde::Serialize;

/// An answer that can be shown.
pub trait Show: Serialize {
    /// As text for a terminal, with a line end.
    fn text(&self) -> String;

    /// 0 fine, 1 degraded, 2 critical.
    fn exit_code(&self) -> u8 {
        0
    }
}

/// A moment, given in milliseconds since 1970, as date and time (UTC).
fn moment(ms: u64) -> String {
    let (days, seconds) = (ms / 86_400_000, ms / 1000 % 86_400);
    // the year begins in March, so that the leap day is its last; 400 years have 146,097 days
    let since = days + 719_468;
    let (era, of_era) = (since / 146_097, since % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let (hour, minute) = (seconds / 3600, seconds / 60 % 60);
    format!("{:04}-{month:02}-{day:02} {hour:02}:{minute:02}Z", year + era * 400 + next)
}

fn health_word(health: Health) -> &'static str {
    match health {
        Health::Healthy => "healthy",
        Health::Degraded => "DEGRADED",
        Health::Offline => "OFFLINE",
    }
}

impl Show for Changed {
    fn text(&self) -> String {
        let mut out = String::new();
        if self.dry_run {
            out.push_str("This would be done:\n");
        }
        for line in &self.lines {
            out.push_str(if self.dry_run { "  " } else { "" });
            out.push_str(line);
            out.push('\n');
        }
        if !self.hosts_affected.is_empty() {
            out.push_str(&format!("Hosts affected: {}\n", self.hosts_affected.join(", ")));
        }
        if self.dry_run {
            out.push_str("Nothing was changed.\n");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::moment;

    #[test]
    fn moments() {
        let cases = [
            (0, "1970-01-01 00:00Z"),
            (951_782_400_000, "2000-02-29 00:00Z"),
            (951_868_799_999, "2000-02-29 23:59Z"),
            (951_868_800_000, "2000-03-01 00:00Z"),
            (1_700_000_000_000, "2023-11-14 22:13Z"),
            (4_107_542_399_000, "2100-02-28 23:59Z"),
            (4_107_542_400_000, "2100-03-01 00:00Z"),
        ];
        for (ms, text) in cases {
            assert_eq!(moment(ms), text);
        }
    }
}
