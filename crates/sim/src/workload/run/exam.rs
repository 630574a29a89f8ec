//! Tests the pool's report of how many failures it would survive.

use base::Nanos;

use super::{CONVERGENCE, Runner, Session};
use crate::prng::Prng;
use crate::workload::Failure;

impl Runner<'_> {
    /// A scrub finds whatever is wrong. At the moment when it ends, while some of that is still to be repaired, as many drives go
    /// as are said to be survived, and everything is read.
    pub(super) fn examine_claim(&mut self, session: &Session) -> Result<(), Failure> {
        self.bench.begin_scrub(&self.simulation.world, session);
        let deadline = self.simulation.world.now() + CONVERGENCE;
        while self.bench.is_scrubbing() {
            self.step_until(Nanos::from_micros(200), || false)
                .map_err(|why| Failure::Stuck { what: "a scrub before the exam".to_owned(), why })?;
            self.check()?;
            if self.simulation.world.now() >= deadline {
                return Err(Failure::Broken(format!("a scrub takes longer than {CONVERGENCE:?}")));
            }
        }
        // without space, a scrub does not read what was written last: what has rotted there is not known
        if self.shared.out_of_space.get() == 0 {
            let mut prng = Prng::new(self.simulation.world.events());
            self.bench.pull_claimed(&self.simulation.world, &mut prng, None);
        }
        let verified = self.start_verification(session);
        self.finish("verification without the drives that it could do without", || {
            verified.iter().all(|done| done.get())
        })?;
        self.bench.collect(session);
        Ok(())
    }
}
