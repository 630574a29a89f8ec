//! Channels of alerts, and what has become of tests.

use base::calendar::moment;
use base::table::Table;
use control::rest::{AlertList, AlertTested};

use super::Show;

impl Show for AlertList {
    fn text(&self) -> String {
        if self.channels.is_empty() {
            return "Nobody is told when something is wrong: name a channel in [alerts] of the head's file (docs/alerts.md).\n".to_owned();
        }
        let mut out = String::new();
        let mut table = Table::new(&["CHANNEL", "STATE", "LAST DELIVERY", "TOLD", "TO"]);
        for channel in &self.channels {
            let state = match (channel.failing_since_ms, channel.delivered_ms) {
                (Some(_), _) => "FAILS",
                (None, Some(_)) => "works",
                // nothing was to be told since the start
                (None, None) => "not tried",
            };
            let last = channel.delivered_ms.map_or("-".to_owned(), moment);
            let told = channel.told.len().to_string();
            table.row(vec![channel.name.clone(), state.to_owned(), last, told, channel.target.clone()]);
        }
        table.render("", &mut out);
        for channel in &self.channels {
            let name = &channel.name;
            match channel.failing_since_ms {
                Some(since_ms) => {
                    out.push_str(&format!("{name}: fails since {}: {}\n", moment(since_ms), channel.error));
                }
                None if !channel.error.is_empty() => out.push_str(&format!("{name}: {}\n", channel.error)),
                None => {}
            }
            for problem in &channel.told {
                let title = problem.code().row().title;
                out.push_str(&format!("{name} was told: {}: {title}\n", problem.subject));
            }
        }
        out
    }

    fn exit_code(&self) -> u8 {
        let is_well = |error: &str| error.is_empty();
        u8::from(!self.channels.iter().all(|channel| is_well(&channel.error)))
    }
}

impl Show for AlertTested {
    fn text(&self) -> String {
        let mut out = String::new();
        for result in &self.results {
            let (channel, target, seconds) =
                (&result.channel, &result.target, result.took_ms as f64 / 1000.0);
            match (result.delivered, result.error.as_str()) {
                (true, "") => out.push_str(&format!("{channel}: delivered to {target} in {seconds:.1} s\n")),
                (true, note) => out.push_str(&format!("{channel}: delivered to {target}, but {note}\n")),
                (false, error) => out.push_str(&format!("{channel}: NOT delivered to {target}: {error}\n")),
            }
        }
        out
    }

    fn exit_code(&self) -> u8 {
        u8::from(!self.results.iter().all(|result| result.delivered && result.error.is_empty()))
    }
}
