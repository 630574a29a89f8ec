//! Formats the array's answers for people. Programs read the JSON.

mod alerts;
mod events;
mod health;
mod lists;
mod one;
mod pair;
mod status;
mod users;

pub use events::event_line;
pub use users::Pem;

use api::{ChangeStep, Health, InWords};
use base::calendar::moment;
use base::units::size;
use control::rest::{Changed, Exported};
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

fn health_word(health: Health) -> &'static str {
    match health {
        Health::Healthy => "healthy",
        Health::Degraded => "DEGRADED",
        Health::Offline => "OFFLINE",
    }
}

impl Show for Exported {
    fn text(&self) -> String {
        let Exported { source, file, size_bytes, data_bytes, .. } = self;
        format!("exported {source} to {file}: {}, {} moved\n", size(*size_bytes), size(*data_bytes))
    }
}

impl Show for Changed {
    fn text(&self) -> String {
        change_text(self.dry_run, &self.steps, &self.hosts_affected)
    }
}

/// What was changed, or would be.
fn change_text(dry_run: bool, steps: &[ChangeStep], hosts_affected: &[String]) -> String {
    let mut out = String::new();
    if dry_run {
        out.push_str("This would be done:\n");
    }
    for step in steps {
        out.push_str(if dry_run { "  " } else { "" });
        out.push_str(&step.text());
        out.push('\n');
    }
    if !hosts_affected.is_empty() {
        out.push_str(&format!("Hosts affected: {}\n", hosts_affected.join(", ")));
    }
    if dry_run {
        out.push_str("Nothing was changed.\n");
    }
    out
}
