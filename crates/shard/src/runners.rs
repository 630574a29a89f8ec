//! Tasks that carry out commands, one after the other. So a command that has to wait needs no memory for its own task.
//!
//! ```text
//!   run ─► idle runner, or a new one ─► carry out ─► idle again
//! ```

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

use task::{Io, Notify};

/// Maximum number of idle runners. Further runners end with their job.
const IDLE_MAX: usize = 512;

/// The runners; see the header of this file. `J` is the job type.
pub struct Runners<J> {
    idle: RefCell<Vec<Rc<Runner<J>>>>,
}

struct Runner<J> {
    job: Cell<Option<J>>,
    given: Notify,
}

impl<J> Default for Runners<J> {
    fn default() -> Runners<J> {
        Runners { idle: RefCell::default() }
    }
}

impl<J: 'static> Runners<J> {
    /// Lets `carry_out` do a job later in this turn. All calls must pass the same function.
    pub fn run<F: Future<Output = ()> + 'static>(
        self: &Rc<Self>,
        io: &Io,
        job: J,
        carry_out: impl Fn(J) -> F + 'static,
    ) {
        let idle = self.idle.borrow_mut().pop();
        if let Some(runner) = idle {
            runner.job.set(Some(job));
            return runner.given.notify();
        }
        let runner = Rc::new(Runner { job: Cell::new(Some(job)), given: Notify::new(io) });
        let all = self.clone();
        io.spawn(async move {
            loop {
                let given = runner.given.wait();
                match runner.job.take() {
                    Some(job) => carry_out(job).await,
                    None => {
                        given.await;
                        continue;
                    }
                }
                let mut idle = all.idle.borrow_mut();
                if idle.len() == IDLE_MAX {
                    return;
                }
                idle.push(runner.clone());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_follow_each_other_share_a_task_and_those_side_by_side_do_not() {
        let mut executor = task::Executor::new();
        let (io, runners) = (executor.io().clone(), Rc::new(Runners::default()));
        let done = Rc::new(RefCell::new(Vec::new()));
        let give = |executor: &task::Executor, job: u32| {
            let (io, done) = (executor.io().clone(), done.clone());
            runners.run(&executor.io().clone(), job, move |job| {
                let (io, done) = (io.clone(), done.clone());
                async move {
                    io.yield_now().await;
                    done.borrow_mut().push(job);
                }
            });
        };
        for round in 0..3 {
            give(&executor, round);
            executor.run_ready();
        }
        assert_eq!((executor.live(), &*done.borrow()), (1, &vec![0, 1, 2]));
        (10..13).for_each(|job| give(&executor, job));
        executor.run_ready();
        assert_eq!((executor.live(), done.borrow().len()), (3, 6));
        drop(io);
    }
}
