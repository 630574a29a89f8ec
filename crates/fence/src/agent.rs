//! Runs an agent for one action.

use program::{Order, RunError};
use thiserror::Error;

use crate::Options;

/// What an agent may print; more is not read.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// What a message has of an agent's words.
const WORDS_BYTES_MAX: usize = 200;

/// Why an agent has given no answer.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum AgentError {
    #[error("{agent} is not installed; install Debian's package fence-agents, or correct the name")]
    NotInstalled { agent: String },
    #[error("{agent} cannot be run: {why}")]
    NotRun { agent: String, why: String },
    #[error("{agent} has not answered \"{action}\" within {seconds} s")]
    TimedOut { agent: String, action: &'static str, seconds: u64 },
    #[error("{agent}: {why}")]
    NotUnderstood { agent: String, why: String },
}

/// How an agent has ended.
pub(crate) struct Ended {
    /// `None`: by a signal.
    pub code: Option<i32>,
    /// The standard output.
    pub out: String,
    /// The last line that it has said, without the values of parameters.
    pub words: String,
}

/// Has the agent do this. A time-out is an error, and so is an agent that cannot be started.
pub(crate) async fn run(options: &Options, action: &'static str) -> Result<Ended, AgentError> {
    let input = input(options, action);
    let order = Order {
        program: &options.agent,
        arguments: &[],
        input: input.as_bytes(),
        environment: &[],
        time: options.time,
        output_bytes_max: OUTPUT_BYTES_MAX,
    };
    let ended = program::run(order, ()).await.map_err(|error| agent_error(error, action))?;
    let words = without_values(options, &ended.last_words);
    Ok(Ended { code: ended.code, out: String::from_utf8_lossy(&ended.out).into_owned(), words })
}

fn agent_error(error: RunError, action: &'static str) -> AgentError {
    match error {
        RunError::NotInstalled { program: agent } => AgentError::NotInstalled { agent },
        RunError::NotRun { program: agent, why } => AgentError::NotRun { agent, why },
        RunError::TimedOut { program: agent, seconds } => AgentError::TimedOut { agent, action, seconds },
        RunError::Endless { program: agent } => {
            AgentError::NotUnderstood { agent, why: "it prints without end".to_owned() }
        }
    }
}

/// One parameter a line.
fn input(options: &Options, action: &str) -> String {
    let parameters = match action {
        // it asks nobody, so it needs nothing
        "metadata" => [].iter(),
        _ => options.parameters.iter(),
    };
    let lines: String = parameters.map(|(name, value)| format!("{name}={value}\n")).collect();
    format!("action={action}\n{lines}")
}

/// Agents repeat what they were given, and some of it is secret.
fn without_values(options: &Options, words: &str) -> String {
    let mut words = words.to_owned();
    let mut values: Vec<&String> = options.parameters.iter().map(|(_, value)| value).collect();
    // a value may hold another one
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    for value in values.into_iter().filter(|value| !value.is_empty()) {
        words = words.replace(value.as_str(), "***");
    }
    let end = words.char_indices().map(|(at, _)| at).take_while(|at| *at <= WORDS_BYTES_MAX).last();
    words.truncate(if words.len() > WORDS_BYTES_MAX { end.unwrap_or(0) } else { words.len() });
    words.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::Means;

    #[test]
    fn values_of_parameters_are_in_no_message() {
        let parameters = [("password", "geheim"), ("ip", "10.0.0.9"), ("empty", "")];
        let options = Options {
            agent: "fence_x".to_owned(),
            parameters: parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            means: Means::Off,
            time: Duration::from_secs(1),
        };
        assert_eq!(without_values(&options, "login geheim@10.0.0.9 failed\u{7}"), "login ***@*** failed ");
        assert!(!format!("{options:?}").contains("geheim"));
        let long = format!("{}geheim", "ä".repeat(300));
        assert!(without_values(&options, &long).len() <= WORDS_BYTES_MAX);
        assert_eq!(input(&options, "off"), "action=off\npassword=geheim\nip=10.0.0.9\nempty=\n");
        assert_eq!(input(&options, "metadata"), "action=metadata\n");
    }
}
