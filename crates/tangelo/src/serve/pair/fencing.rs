//! Fences the other head after a takeover, so that one that hangs or is half dead is reset and comes back. Nobody waits for it: the register
//! and the lease keep the other head from answering.
//!
//! What always holds: nothing is fenced during maintenance, nor by an agent whose word does not count.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use api::{
    Change, CommandError, CommandErrorKind, FenceCause, FenceOutcome, FencePower, FenceRecord, FenceStatus,
    FenceTest, FenceTrust, PairStatus, PairStep,
};
use control::config::Config;
use fence::{Fencer, Outcome, Power, Trust};

use super::super::fence_agent;

/// After a takeover, the other head has so long to be heard again: a daemon that was killed is back by then, and the connection with one
/// that hangs has been given up.
const BACK_WITHIN: Duration = Duration::from_secs(5);
/// How often it is looked whether there is something to do.
const LOOK: Duration = Duration::from_millis(500);
/// How often an agent is tried that is not to be trusted yet, and one that is.
const AGAIN_AFTER: Duration = Duration::from_secs(60);
const STILL_FINE: Duration = Duration::from_secs(3600);
/// A command does not wait longer for what it has begun.
const COMMAND_TIME: Duration = Duration::from_secs(120);

/// See the header of this file.
#[derive(Clone)]
pub struct Fencing(Arc<Shared>);

struct Shared {
    /// Held while the agent is asked.
    fencer: tokio::sync::Mutex<Option<Fencer>>,
    config: Mutex<Config>,
    /// `None`: the file names no agent.
    shown: Mutex<Option<FenceStatus>>,
}

/// What of the pair matters here.
#[derive(Clone, Copy)]
struct Seen {
    is_heard: bool,
    is_maintained: bool,
}

fn seen(status: &PairStatus) -> Seen {
    Seen { is_heard: status.hears_the_other, is_maintained: status.maintenance_since_ms.is_some() }
}

impl Fencing {
    pub fn new(config: &Config) -> Fencing {
        let (fencer, config, shown) = (None.into(), Mutex::new(config.clone()), Mutex::default());
        let fencing = Fencing(Arc::new(Shared { fencer, config, shown }));
        fencing.show_anew();
        fencing
    }

    pub fn status(&self) -> Option<FenceStatus> {
        self.0.shown.lock().expect("nobody panics with it").clone()
    }

    /// The file was read again.
    pub async fn set_config(self, config: Config) {
        if self.config().fence == config.fence {
            return;
        }
        let mut fencer = self.0.fencer.lock().await;
        *self.0.config.lock().expect("nobody panics with it") = config;
        *fencer = None;
        self.show_anew();
    }

    fn config(&self) -> Config {
        self.0.config.lock().expect("nobody panics with it").clone()
    }

    fn show_anew(&self) {
        let shown = self.config().fence.map(|fence| FenceStatus {
            agent: fence.agent,
            trust: FenceTrust::NotTried,
            detail: String::new(),
            last: None,
        });
        *self.0.shown.lock().expect("nobody panics with it") = shown;
    }

    fn show(&self, change: impl FnOnce(&mut FenceStatus)) {
        if let Some(shown) = &mut *self.0.shown.lock().expect("nobody panics with it") {
            change(shown);
        }
    }

    fn show_trust(&self, trust: FenceTrust, detail: String) {
        let before = self.status().map(|status| (status.trust, status.detail));
        if before != Some((trust, detail.clone())) {
            match (trust, detail.as_str()) {
                (FenceTrust::Doubted | FenceTrust::Unusable, why) => {
                    tracing::error!("the other head could not be fenced: {why}")
                }
                (FenceTrust::Trusted, _) => {
                    tracing::info!("the fence agent says \"on\" of the other head: it is trusted")
                }
                (FenceTrust::AsksOnly, _) => tracing::warn!(
                    "the fence agent has no status: it can be asked to fence the other head, and nobody will know whether it has"
                ),
                (FenceTrust::NotTried, _) => {}
            }
        }
        self.show(|shown| (shown.trust, shown.detail) = (trust, detail));
    }

    /// Opens the agent if that is to be done, and tries it. What it says, if the file names one.
    async fn try_out(&self, look: impl Fn() -> Seen) -> Option<Power> {
        let config = self.config();
        let fence = config.fence.as_ref()?;
        let mut place = self.0.fencer.lock().await;
        if place.is_none() {
            match fence_agent::open(&config, fence).await {
                Ok(fencer) => *place = Some(fencer),
                Err(unfit) => {
                    self.show_trust(FenceTrust::Unusable, unfit.to_string());
                    return Some(Power::Unknown(unfit.to_string()));
                }
            }
        }
        let fencer = place.as_mut().expect("it was just opened");
        let power = fencer.try_out(|| look().is_heard).await;
        let (trust, detail) = match fencer.trust() {
            Trust::NotTried => (FenceTrust::NotTried, String::new()),
            Trust::Trusted => (FenceTrust::Trusted, String::new()),
            Trust::AsksOnly => (FenceTrust::AsksOnly, String::new()),
            Trust::Doubted(why) => (FenceTrust::Doubted, why.clone()),
        };
        self.show_trust(trust, detail);
        Some(power)
    }

    /// For ever: tries the agent while the other head is heard, at first and then now and again.
    pub async fn keep(self, status: impl Fn() -> PairStatus) {
        let mut due = tokio::time::Instant::now();
        loop {
            tokio::time::sleep(LOOK).await;
            let Some(shown) = self.status() else { continue };
            let is_new = shown.trust == FenceTrust::NotTried;
            let may = seen(&status()).is_heard || shown.trust == FenceTrust::Unusable;
            if may && (is_new || tokio::time::Instant::now() >= due) {
                self.try_out(|| seen(&status())).await;
                let trusted = self
                    .status()
                    .is_some_and(|shown| matches!(shown.trust, FenceTrust::Trusted | FenceTrust::AsksOnly));
                due = tokio::time::Instant::now() + if trusted { STILL_FINE } else { AGAIN_AFTER };
            }
        }
    }

    /// This head has taken over.
    pub async fn after_takeover(self, status: impl Fn() -> PairStatus) {
        if self.status().is_none() {
            return;
        }
        self.begin(FenceCause::Takeover);
        // the connection with a head that has just begun to hang is still there
        tokio::time::sleep(BACK_WITHIN).await;
        if seen(&status()).is_heard {
            return self.end(FenceOutcome::NotNeeded, String::new());
        }
        if seen(&status()).is_maintained {
            return self.end(FenceOutcome::Maintenance, String::new());
        }
        self.fence().await;
    }

    async fn fence(&self) {
        let place = self.0.fencer.lock().await;
        let (outcome, detail) = match place.as_ref() {
            None => (FenceOutcome::Failed, "the agent cannot be used".to_owned()),
            Some(fencer) => match fencer.fence().await {
                Outcome::Fenced => (FenceOutcome::Fenced, String::new()),
                Outcome::WasOff => (FenceOutcome::WasOff, String::new()),
                Outcome::Asked => (FenceOutcome::Asked, String::new()),
                Outcome::Failed(why) => (FenceOutcome::Failed, why),
            },
        };
        drop(place);
        self.end(outcome, detail);
    }

    fn begin(&self, cause: FenceCause) {
        let at_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let record = FenceRecord { at_ms, cause, outcome: FenceOutcome::Running, detail: String::new() };
        self.show(|shown| shown.last = Some(record));
    }

    fn end(&self, outcome: FenceOutcome, detail: String) {
        match outcome {
            FenceOutcome::Running => unreachable!("it has ended"),
            FenceOutcome::Fenced => tracing::warn!("the other head was fenced"),
            FenceOutcome::WasOff => tracing::warn!("the other head is off: there is nothing to fence"),
            FenceOutcome::Asked => {
                tracing::warn!(
                    "the fence agent was asked to reset the other head; it has no way to tell whether it has"
                )
            }
            FenceOutcome::NotNeeded => tracing::info!("the other head is heard again: it is not fenced"),
            FenceOutcome::Maintenance => tracing::info!("there is maintenance: the other head is not fenced"),
            FenceOutcome::Failed => tracing::error!("the other head is not fenced: {detail}"),
        }
        self.show(|shown| {
            if let Some(last) = &mut shown.last {
                (last.outcome, last.detail) = (outcome, detail);
            }
        });
    }

    /// `pair fence test`.
    pub async fn test(
        &self,
        how: FenceTest,
        dry_run: bool,
        status: impl Fn() -> PairStatus,
    ) -> Result<Change, CommandError> {
        let power = self.try_out(|| seen(&status())).await.ok_or_else(not_configured)?;
        let shown = self.status().ok_or_else(not_configured)?;
        let is_heard = seen(&status()).is_heard;
        let refuse =
            |message: String, hint: &str| CommandError::new(CommandErrorKind::Unavailable, message, hint);
        if matches!(shown.trust, FenceTrust::Doubted | FenceTrust::Unusable) {
            return Err(refuse(
                shown.detail,
                "correct [fence] in the head's file, then `systemctl reload tangelo`",
            ));
        }
        let says = match power {
            Power::On => FencePower::On,
            Power::Off => FencePower::Off,
            Power::Unknown(why) => FencePower::Unknown { why },
        };
        let mut steps = vec![
            PairStep::TryFenceAgent { agent: shown.agent }.into(),
            PairStep::AskFenceAgent { says, is_heard }.into(),
        ];
        if how.really {
            let stays_off = self.config().fence.is_some_and(|fence| fence.stays_off);
            if seen(&status()).is_maintained {
                return Err(refuse(
                    "there is maintenance: nothing is fenced".to_owned(),
                    "end it: `tangelo pair maintenance off`",
                ));
            }
            if shown.trust == FenceTrust::NotTried {
                let message = "the agent has not yet said \"on\" of the other head while that was heard, so its word does not count";
                return Err(refuse(message.to_owned(), "do this while both heads run"));
            }
            steps.push(PairStep::FenceHead { stays_off }.into());
            if !dry_run {
                self.begin(FenceCause::Command);
                let outcome = self.fence_for_command().await?;
                steps.push(PairStep::EndFencing { outcome }.into());
            }
        }
        Ok(Change { dry_run, steps, hosts_affected: Vec::new(), made: None })
    }

    async fn fence_for_command(&self) -> Result<FenceOutcome, CommandError> {
        let fencing = self.clone();
        let work = tokio::spawn(async move { fencing.fence().await });
        if tokio::time::timeout(COMMAND_TIME, work).await.is_err() {
            return Ok(FenceOutcome::Running);
        }
        let last = self.status().and_then(|shown| shown.last);
        match last.map(|last| (last.outcome, last.detail)) {
            Some((outcome @ (FenceOutcome::Fenced | FenceOutcome::WasOff | FenceOutcome::Asked), _)) => {
                Ok(outcome)
            }
            other => {
                let why = other.map_or_else(String::new, |(_, why)| why);
                let message = format!("the other head is not fenced: {why}");
                Err(CommandError::new(
                    CommandErrorKind::Io,
                    message,
                    "`tangelo pair fence test` tells what the agent says",
                ))
            }
        }
    }
}

fn not_configured() -> CommandError {
    let hint = "docs/pair.md tells how one is named in the head's file";
    CommandError::new(
        CommandErrorKind::NotFound,
        "no fence agent is named on this head: there is no [fence]",
        hint,
    )
}
