//! The daemon's log: plain lines on the standard error. Under the journal each has its priority, and the journal adds the time.

use std::os::unix::fs::MetadataExt;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// From now on.
pub fn start() {
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).with_target(false);
    if is_journal() { lines.event_format(Prioritized).init() } else { lines.init() }
}

/// Whether the standard error is the journal's (systemd.exec(5), `JOURNAL_STREAM`), and not a file behind it.
fn is_journal() -> bool {
    let Ok(journal) = std::env::var("JOURNAL_STREAM") else { return false };
    let ours = std::fs::metadata("/proc/self/fd/2");
    ours.is_ok_and(|ours| journal == format!("{}:{}", ours.dev(), ours.ino()))
}

/// As the journal takes it: `<4>what happened`, where 4 is syslog's number for a warning (sd-daemon(3)).
struct Prioritized;

fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

impl<S, N> FormatEvent<S, N> for Prioritized
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let mut fields = FormattedFields::<N>::new(String::new());
        context.format_fields(fields.as_writer(), event)?;
        // Every line is an entry of its own there.
        for line in fields.fields.lines() {
            writeln!(writer, "<{}>{line}", priority(*event.metadata().level()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_line_has_its_priority() {
        let kept = Kept::default();
        let writer = kept.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .event_format(Prioritized)
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::error!("broken");
            tracing::warn!("a warning\nof two lines");
            tracing::info!("{}", "said");
        });
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text, "<3>broken\n<4>a warning\n<4>of two lines\n<6>said\n");
    }
}
