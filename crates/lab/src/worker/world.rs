//! The environment of a thread, for its requests one at a time.

use std::sync::atomic::{AtomicU64, Ordering};

use base::Nanos;
use env::{Env, Event, Operation, Outcome, Token, Wait};
use uring::UringEnv;

/// A target that does not answer for this time is given up.
pub(crate) const SILENCE_MAX: Nanos = Nanos::from_secs(60);

pub type World = UringEnv<()>;

/// What a request to an environment ended with; the only one in flight.
pub(crate) fn wait_for(env: &mut World, operation: Operation) -> Result<Outcome, String> {
    wait_at_most(env, operation, SILENCE_MAX)
}

/// The same, given up after `patience`. What comes of it later counts for nothing.
pub(crate) fn wait_at_most(
    env: &mut World,
    operation: Operation,
    patience: Nanos,
) -> Result<Outcome, String> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let token = Token(u64::MAX - NEXT.fetch_add(1, Ordering::Relaxed));
    env.submit(token, operation);
    let deadline = env.now() + patience;
    let mut events = Vec::new();
    while env.now() < deadline {
        env.poll(&mut events, Wait::Until(deadline));
        for event in events.drain(..) {
            if let Event::Completion(completion) = event
                && completion.token == token
            {
                return Ok(completion.outcome);
            }
        }
    }
    Err(format!("no answer for {} ms", patience.0 / 1_000_000))
}
