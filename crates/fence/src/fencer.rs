//! An agent that fences one head.
//!
//! ```text
//!   status ─► "on", and the head is heard ─► Trusted ─► off ─► status "off" ─► fenced
//!        └──► "off", and the head is heard: it speaks of something else ─► Doubted
//!   an agent without a status ─► AsksOnly ─► reboot ─► asked, never fenced
//! ```

use crate::agent::{AgentError, run};
use crate::metadata::{Metadata, ParameterFault};
use crate::{Means, Options};

/// What an agent's status says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Power {
    On,
    Off,
    /// It could not tell, and why.
    Unknown(String),
}

/// How far an agent's word counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trust {
    /// It was not tried while the other head was heard.
    NotTried,
    /// It has said "on" of the other head while that was heard.
    Trusted,
    /// It has no status: it can be asked to fence, and nobody knows whether it has.
    AsksOnly,
    /// It is not to be trusted, and why.
    Doubted(String),
}

/// What has become of fencing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The status says that it was off.
    Fenced,
    /// It was off already; the agent has said "on" of it before.
    WasOff,
    /// The agent was asked; nobody knows whether the head was off.
    Asked,
    /// It is not fenced, and why.
    Failed(String),
}

/// See the header of this file.
pub struct Fencer {
    options: Options,
    metadata: Metadata,
    trust: Trust,
}

impl Fencer {
    /// Asks the agent what it is. The inner error: a parameter with which it cannot work.
    pub async fn open(options: Options) -> Result<Result<Fencer, ParameterFault>, AgentError> {
        let agent = options.agent.clone();
        let ended = run(&options, "metadata").await?;
        if ended.code != Some(0) {
            let why = format!("it does not say what it is: {}", ended.words);
            return Err(AgentError::NotUnderstood { agent, why });
        }
        let metadata = Metadata::parse(&ended.out)
            .map_err(|why| AgentError::NotUnderstood { agent: agent.clone(), why })?;
        let fault = metadata.fault(options.parameters.iter().map(|(name, _)| name.as_str()));
        if let Some(fault) = fault {
            return Ok(Err(fault));
        }
        if !["off", "reboot"].into_iter().any(|action| metadata.can(action)) {
            return Err(AgentError::NotUnderstood {
                agent,
                why: "it can neither switch off nor reboot".to_owned(),
            });
        }
        let trust = if metadata.can("status") { Trust::NotTried } else { Trust::AsksOnly };
        Ok(Ok(Fencer { options, metadata, trust }))
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// What the status says now; an agent without one cannot tell.
    async fn power(&self) -> Power {
        if !self.metadata.can("status") {
            return Power::Unknown("the agent has no status".to_owned());
        }
        match run(&self.options, "status").await {
            Ok(ended) => match ended.code {
                Some(0) => Power::On,
                Some(2) => Power::Off,
                _ => Power::Unknown(format!("{} cannot tell: {}", self.options.agent, ended.words)),
            },
            Err(error) => Power::Unknown(error.to_string()),
        }
    }

    /// Asks for the status, and judges the agent by it. `is_heard` says before and after whether the other head is heard: only then it
    /// is known to be on.
    pub async fn try_out(&mut self, is_heard: impl Fn() -> bool) -> Power {
        let before = is_heard();
        let power = self.power().await;
        if before && is_heard() && self.trust != Trust::AsksOnly {
            self.trust = match &power {
                Power::On => Trust::Trusted,
                Power::Off => Trust::Doubted(format!(
                    "{} says that the other head is off, but it is heard: the parameters name something else",
                    self.options.agent
                )),
                Power::Unknown(why) => Trust::Doubted(why.clone()),
            };
        }
        power
    }

    /// Fences the other head, whatever it does now.
    pub async fn fence(&self) -> Outcome {
        match &self.trust {
            Trust::Trusted => {}
            Trust::AsksOnly => return self.ask_to_reboot().await,
            Trust::NotTried => {
                let why =
                    "the agent was never tried while the other head was heard, so its word does not count";
                return Outcome::Failed(why.to_owned());
            }
            Trust::Doubted(why) => return Outcome::Failed(why.clone()),
        }
        if self.power().await == Power::Off {
            return Outcome::WasOff;
        }
        if !self.metadata.can("off") {
            return self.ask_to_reboot().await;
        }
        if let Err(why) = self.act("off").await {
            return Outcome::Failed(why);
        }
        match self.power().await {
            Power::Off => {}
            Power::On => {
                return Outcome::Failed(format!(
                    "{} says that it is off, and then that it is on",
                    self.options.agent
                ));
            }
            Power::Unknown(why) => return Outcome::Failed(why),
        }
        if self.options.means == Means::Reboot && self.metadata.can("on") {
            // it was off, which is all that fencing is: whether it comes back is seen
            let _stays_off = self.act("on").await;
        }
        Outcome::Fenced
    }

    async fn ask_to_reboot(&self) -> Outcome {
        let action = if self.metadata.can("reboot") { "reboot" } else { "off" };
        match self.act(action).await {
            Ok(()) => Outcome::Asked,
            Err(why) => Outcome::Failed(why),
        }
    }

    async fn act(&self, action: &'static str) -> Result<(), String> {
        let agent = &self.options.agent;
        match run(&self.options, action).await {
            Ok(ended) if ended.code == Some(0) => Ok(()),
            Ok(ended) => Err(format!("{agent} could not carry out \"{action}\": {}", ended.words)),
            Err(error) => Err(error.to_string()),
        }
    }
}
