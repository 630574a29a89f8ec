//! A program of the administrator's, which gets the message on its standard input.

use std::sync::Arc;
use std::time::Duration;

use base::text::printable;
use program::{Order, RunError};

use crate::deliver::{Delivered, Undelivered};
use crate::letter::{Letter, health_word};

const TIME: Duration = Duration::from_secs(30);
const OUTPUT_BYTES_MAX: u64 = 4096;
const WORDS_BYTES_MAX: usize = 200;

/// See the header of this file.
#[derive(Clone, Debug)]
pub struct Command {
    /// An absolute path.
    pub program: String,
    /// One that cannot be killed is not started again.
    gate: Arc<()>,
}

impl PartialEq for Command {
    fn eq(&self, other: &Command) -> bool {
        self.program == other.program
    }
}

impl Eq for Command {}

impl Command {
    pub fn new(program: String) -> Command {
        Command { program, gate: Arc::new(()) }
    }

    pub(crate) async fn deliver(&self, letter: &Letter) -> Delivered {
        // clones of the command share the gate, and only a run holds it weakly
        if Arc::weak_count(&self.gate) > 0 {
            return Err(Undelivered::surely("another run of it has not ended"));
        }
        let run = Arc::downgrade(&self.gate);
        let environment =
            [("TANGELO_HEALTH", health_word(letter.health)), ("TANGELO_SUMMARY", letter.subject.as_str())];
        let order = Order {
            program: &self.program,
            arguments: &[],
            input: &letter.json,
            environment: &environment,
            time: TIME,
            output_bytes_max: OUTPUT_BYTES_MAX,
        };
        match program::run(order, run).await {
            Ok(ended) if ended.code == Some(0) => Ok(String::new()),
            Ok(ended) => {
                let words = printable(ended.last_words.as_bytes(), WORDS_BYTES_MAX);
                let said = words.map(|words| format!(": {words}")).unwrap_or_default();
                Err(match ended.code {
                    Some(code) => Undelivered::surely(format!("it has ended with code {code}{said}")),
                    None => Undelivered::maybe(format!("a signal has ended it{said}")),
                })
            }
            Err(error @ (RunError::NotInstalled { .. } | RunError::NotRun { .. })) => {
                Err(Undelivered::surely(error.to_string()))
            }
            Err(error) => Err(Undelivered::maybe(error.to_string())),
        }
    }
}
