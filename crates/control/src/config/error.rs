//! Why a configuration file is refused.

use std::fmt;
use std::path::PathBuf;

/// A configuration file that is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    pub path: PathBuf,
    /// From 1; none if it is about the whole file.
    pub line: Option<usize>,
    /// What is wrong, and what to do.
    pub reason: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path.display(), self.reason),
            None => write!(f, "{}: {}", self.path.display(), self.reason),
        }
    }
}

impl std::error::Error for ConfigError {}
