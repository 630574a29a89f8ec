//! The environment of a thread, for its requests one at a time.

use base::Nanos;
use env::{Env, Event, Operation, Outcome, Token, Wait};
use uring::UringEnv;

/// A target that does not answer for this time is given up.
pub(super) const SILENCE_MAX: Nanos = Nanos::from_secs(60);

pub type World = UringEnv<()>;

/// What a request to an environment ended with; the only one in flight.
pub(crate) fn wait_for(env: &mut World, operation: Operation) -> Result<Outcome, String> {
    env.submit(Token(u64::MAX), operation);
    let deadline = env.now() + SILENCE_MAX;
    let mut events = Vec::new();
    while env.now() < deadline {
        env.poll(&mut events, Wait::Until(deadline));
        if let Some(Event::Completion(completion)) = events.pop() {
            assert_eq!(completion.token, Token(u64::MAX), "one operation at a time");
            return Ok(completion.outcome);
        }
    }
    Err("no answer for a minute".to_owned())
}
