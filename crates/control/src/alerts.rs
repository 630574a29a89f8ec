//! Alerts as the API reaches them: the channels that the head's file names.

use std::future::Future;
use std::pin::Pin;

use api::{AlertChannel, AlertTestResult, CommandError, CommandErrorKind};

/// What has become of test messages, on its way.
pub type TestAnswer<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<AlertTestResult>, CommandError>> + Send + 'a>>;

/// The channels of this head. They are there on both heads of a pair, whichever owns the array.
pub trait Alerts: Send + Sync {
    fn list(&self) -> Vec<AlertChannel>;

    /// Sends a test message by one channel, or by each.
    fn test(&self, channel: Option<String>) -> TestAnswer<'_>;
}

/// A head without channels.
pub struct NoAlerts;

impl Alerts for NoAlerts {
    fn list(&self) -> Vec<AlertChannel> {
        Vec::new()
    }

    fn test(&self, channel: Option<String>) -> TestAnswer<'_> {
        Box::pin(std::future::ready(Err(no_channel(channel.as_deref()))))
    }
}

/// Nobody can be told.
pub fn no_channel(name: Option<&str>) -> CommandError {
    let message = match name {
        Some(name) => format!("this head has no channel {name} of alerts"),
        None => "this head has no channel of alerts".to_owned(),
    };
    let hint = "name one in [alerts] of the head's file, and reload it (`systemctl reload tangelo`); docs/alerts.md tells how";
    CommandError::new(CommandErrorKind::NotFound, message, hint)
}
