//! The fence agent that the head's file names: whether it takes what the file gives it.

use std::path::Path;
use std::time::Duration;

use control::config::{Config, ConfigError, Fence};
use fence::{AgentError, Fencer, Means, Options};

/// Why there is no fencer.
#[derive(Debug)]
pub enum Unfit {
    /// The file gives the agent what it does not take.
    File(ConfigError),
    Agent(AgentError),
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unfit::File(error) => error.fmt(f),
            Unfit::Agent(error) => write!(f, "[fence]: {error}"),
        }
    }
}

/// Asks the agent what it takes.
pub async fn open(config: &Config, fence: &Fence) -> Result<Fencer, Unfit> {
    let parameters = fence.parameters.iter().map(|given| (given.name.clone(), given.value.clone())).collect();
    let options = Options {
        agent: fence.agent.clone(),
        parameters,
        means: if fence.stays_off { Means::Off } else { Means::Reboot },
        time: Duration::from_secs(fence.timeout_seconds),
    };
    match Fencer::open(options).await {
        Ok(Ok(fencer)) => Ok(fencer),
        Ok(Err(fault)) => {
            let given = fence.parameters.iter().find(|given| given.name == fault.name);
            Err(Unfit::File(ConfigError {
                path: config.file.clone().unwrap_or_default(),
                line: Some(given.map_or(fence.line, |given| given.line)),
                reason: format!("[fence.parameters] {fault}"),
            }))
        }
        Err(error) => Err(Unfit::Agent(error)),
    }
}

/// Before the head's file is read again: whether the agent takes what it gives, if that is another agent than before. If not, the log says so.
pub async fn fits(path: Option<&Path>, before: Option<&Fence>) -> bool {
    // what else is wrong with the file is said when it is read
    let Ok(config) = Config::load(path) else { return true };
    match config.fence.as_ref().filter(|fence| Some(*fence) != before) {
        None => true,
        Some(fence) => match open(&config, fence).await {
            Ok(_) => true,
            Err(unfit @ Unfit::Agent(_)) => {
                tracing::warn!("{unfit}");
                true
            }
            Err(Unfit::File(error)) => {
                tracing::error!("the configuration stays as it was: {error}");
                false
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[tokio::test]
    async fn what_the_agent_does_not_take_is_refused_with_file_and_line() {
        let directory = tempfile::tempdir().unwrap();
        let agent = directory.path().join("agent");
        let metadata = "<resource-agent><parameters><parameter name=\"plug\" required=\"1\"/></parameters><actions><action name=\"off\"/></actions></resource-agent>";
        std::fs::write(&agent, format!("#!/bin/sh\necho '{metadata}'\n")).unwrap();
        std::fs::set_permissions(&agent, PermissionsExt::from_mode(0o755)).unwrap();
        let path = directory.path().join("tangelo.toml");
        let write = |agent: &Path, parameter: &str| {
            let text = format!("[fence]\nagent = \"{}\"\n[fence.parameters]\n{parameter}\n", agent.display());
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
            Config::load(Some(&path)).unwrap()
        };
        let open = async |config: &Config| open(config, config.fence.as_ref().unwrap()).await.map(drop);
        let good = write(&agent, "plug = 3");
        open(&good).await.unwrap();
        assert!(fits(Some(&path), None).await);
        let unknown = open(&write(&agent, "plg = 3")).await.unwrap_err().to_string();
        assert!(
            unknown.contains("tangelo.toml:4: [fence.parameters] plg: the agent has no such"),
            "{unknown}"
        );
        assert!(!fits(Some(&path), None).await, "the file is not taken over");
        let missing = open(&write(&agent, "")).await.unwrap_err().to_string();
        assert!(
            missing.contains("tangelo.toml:2: [fence.parameters] plug: the agent needs this"),
            "{missing}"
        );
        // one that is not there yet may come
        let absent = write(&directory.path().join("nothing"), "plug = 3");
        assert!(open(&absent).await.unwrap_err().to_string().contains("is not installed"));
        assert!(fits(Some(&path), None).await);
        assert!(fits(Some(&path), absent.fence.as_ref()).await);
    }
}
