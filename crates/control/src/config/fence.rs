//! How this head fences the other one of its pair: `[fence]`. What the agent takes is found when it is asked for that.

use std::fmt;

use super::error::ConfigError;
use super::reader::Section;

/// How long an action may take where the file does not say.
const SECONDS_DEFAULT: u64 = 60;
const SECONDS_MAX: u64 = 600;
const PARAMETERS_MAX: usize = 64;

/// What an agent is told. The value may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct FenceParameter {
    pub name: String,
    pub value: String,
    pub line: usize,
}

impl fmt::Debug for FenceParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (line {})", self.name, self.line)
    }
}

/// See the header of this file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fence {
    /// The agent's name, or its absolute path.
    pub agent: String,
    pub parameters: Vec<FenceParameter>,
    /// The other head is left off; otherwise it is switched on again.
    pub stays_off: bool,
    pub timeout_seconds: u64,
    /// Of the agent.
    pub line: usize,
}

pub(super) fn read(mut fence: Section) -> Result<Fence, ConfigError> {
    let wanted = "an agent's name in quotes, such as \"fence_ipmilan\"";
    let agent = fence.take("agent").ok_or_else(|| fence.refuse(format!("[fence] needs agent: {wanted}")))?;
    let name = agent.text(wanted)?;
    let is_path = name.starts_with('/');
    if name.is_empty() || name.contains(['\0', '\n']) || name.contains('/') && !is_path {
        return Err(agent.refuse(format!("agent must be {wanted}, or an absolute path")));
    }
    let (agent, line) = (name.to_owned(), agent.line());
    let stays_off = match fence.take("means") {
        None => false,
        Some(means) => match means.text("\"reboot\" or \"off\"")? {
            "reboot" => false,
            "off" => true,
            other => {
                return Err(means.refuse(format!("means must be \"reboot\" or \"off\", not \"{other}\"")));
            }
        },
    };
    let timeout_seconds = match fence.take("timeout_seconds") {
        Some(seconds) => seconds.integer(1, SECONDS_MAX)?,
        None => SECONDS_DEFAULT,
    };
    let mut parameters = Vec::new();
    if let Some(section) = fence.section("parameters")? {
        for (name, value) in section.entries() {
            let text = value.plain()?;
            if name.contains(['=', '\n', '\0']) || text.contains(['\n', '\0']) {
                return Err(value.refuse(format!(
                    "{name}: an agent is told one parameter a line: remove the line break"
                )));
            }
            parameters.push(FenceParameter { name: name.to_owned(), value: text, line: value.line() });
        }
        if parameters.len() > PARAMETERS_MAX {
            let count = parameters.len();
            return Err(section.refuse(format!("{PARAMETERS_MAX} parameters are possible, here are {count}")));
        }
    }
    fence.finish()?;
    Ok(Fence { agent, parameters, stays_off, timeout_seconds, line })
}
