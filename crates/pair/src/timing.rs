//! The times of a pair. What always holds: a lease ends before the partner may take over, also when the clocks of the
//! two heads run at different rates.

use std::fmt;

use base::Nanos;

/// All times are lengths on the head's own boot-time clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Between two heartbeats.
    pub heartbeat: Nanos,
    /// Reads are answered for this long after a heartbeat was *sent* that the partner has answered.
    pub lease: Nanos,
    /// A partner in sync takes over after this time without a heartbeat.
    pub grace: Nanos,
    /// How much faster or slower than real time a clock may run, in thousandths.
    pub clock_error_permille: u64,
    /// An owner goes on alone if its partner has answered nothing for this long.
    pub partner_silence: Nanos,
    /// An owner goes on alone if a write has waited for the partner for this long.
    pub write_wait: Nanos,
    /// A question to the register is repeated after this time.
    pub question: Nanos,
    /// Between two looks at the register when there is nothing to ask.
    pub look: Nanos,
    /// A partner whose takeover the register has not answered for this long listens to the owner again.
    pub withdraw: Nanos,
    /// A handover is given up if the log is not drained by then, or the register has not answered by then.
    pub handover: Nanos,
    /// A forwarded command is refused if the stamp that it carries is older.
    pub forward: Nanos,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            heartbeat: Nanos::from_millis(50),
            lease: Nanos::from_millis(350),
            grace: Nanos::from_millis(500),
            clock_error_permille: 50,
            partner_silence: Nanos::from_millis(400),
            write_wait: Nanos::from_millis(250),
            question: Nanos::from_millis(200),
            look: Nanos::from_millis(500),
            withdraw: Nanos::from_millis(1000),
            handover: Nanos::from_millis(500),
            forward: Nanos::from_millis(350),
        }
    }
}

/// After how long a partner takes over, in milliseconds, may be chosen.
pub const TAKEOVER_MS_MIN: u32 = 300;
pub const TAKEOVER_MS_MAX: u32 = 30_000;
pub const TAKEOVER_MS_DEFAULT: u32 = 500;

impl Timing {
    /// All times in the same proportion, so that the partner takes over after this one. `None` if that is too short or too long.
    pub fn for_takeover(takeover_ms: u32) -> Option<Timing> {
        if !(TAKEOVER_MS_MIN..=TAKEOVER_MS_MAX).contains(&takeover_ms) {
            return None;
        }
        let usual = Timing::default();
        let scaled = |time: Nanos| Nanos(time.0 * u64::from(takeover_ms) / u64::from(TAKEOVER_MS_DEFAULT));
        Some(Timing {
            heartbeat: scaled(usual.heartbeat),
            lease: scaled(usual.lease),
            grace: scaled(usual.grace),
            clock_error_permille: usual.clock_error_permille,
            partner_silence: scaled(usual.partner_silence),
            write_wait: scaled(usual.write_wait),
            question: scaled(usual.question),
            look: scaled(usual.look),
            withdraw: scaled(usual.withdraw),
            handover: scaled(usual.handover),
            forward: scaled(usual.forward),
        })
    }
}

/// Why times do not fit together. Its words say what to change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimingError {
    /// A slow clock's lease would outlast a fast clock's grace.
    LeaseTooLong {
        lease: Nanos,
        grace: Nanos,
        clock_error_permille: u64,
    },
    /// Fewer than three heartbeats in a lease.
    HeartbeatTooSeldom {
        heartbeat: Nanos,
        lease: Nanos,
    },
    /// A forwarded command could take effect after its host has given it up.
    ForwardTooLong {
        forward: Nanos,
        grace: Nanos,
    },
    ClockErrorTooLarge {
        permille: u64,
    },
}

impl Timing {
    pub fn check(&self) -> Result<(), TimingError> {
        let permille = self.clock_error_permille;
        if permille >= 500 {
            return Err(TimingError::ClockErrorTooLarge { permille });
        }
        // in real time: the lease on the slowest clock, the grace on the fastest
        let lease = u128::from(self.lease.0) * u128::from(1000 + permille);
        let grace = u128::from(self.grace.0) * u128::from(1000 - permille);
        if lease >= grace {
            let (lease, grace) = (self.lease, self.grace);
            return Err(TimingError::LeaseTooLong { lease, grace, clock_error_permille: permille });
        }
        if self.heartbeat.0 == 0 || self.heartbeat.0 * 3 > self.lease.0 {
            return Err(TimingError::HeartbeatTooSeldom { heartbeat: self.heartbeat, lease: self.lease });
        }
        if self.forward >= self.grace {
            return Err(TimingError::ForwardTooLong { forward: self.forward, grace: self.grace });
        }
        Ok(())
    }
}

impl fmt::Display for TimingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Nanos| time.0 / 1_000_000;
        match *self {
            TimingError::LeaseTooLong { lease, grace, clock_error_permille } => write!(
                f,
                "a read lease of {} ms is too long for a grace time of {} ms when clocks may be wrong by {clock_error_permille} in \
                 1,000; make the lease shorter or the grace time longer",
                ms(lease),
                ms(grace)
            ),
            TimingError::HeartbeatTooSeldom { heartbeat, lease } => write!(
                f,
                "a heartbeat every {} ms is too seldom for a read lease of {} ms; there must be three in a lease",
                ms(heartbeat),
                ms(lease)
            ),
            TimingError::ForwardTooLong { forward, grace } => write!(
                f,
                "forwarded commands may be {} ms old, which is not less than the grace time of {} ms",
                ms(forward),
                ms(grace)
            ),
            TimingError::ClockErrorTooLarge { permille } => {
                write!(f, "clocks that are wrong by {permille} in 1,000 cannot be used; 499 is the limit")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_for_any_takeover_fit_together() {
        assert_eq!(Timing::for_takeover(TAKEOVER_MS_DEFAULT), Some(Timing::default()));
        for ms in (TAKEOVER_MS_MIN..=TAKEOVER_MS_MAX).step_by(7).chain([TAKEOVER_MS_MAX]) {
            let timing = Timing::for_takeover(ms).unwrap();
            assert_eq!((timing.check(), timing.grace), (Ok(()), Nanos::from_millis(ms.into())));
        }
        assert_eq!(Timing::for_takeover(TAKEOVER_MS_MIN - 1), None);
        assert_eq!(Timing::for_takeover(TAKEOVER_MS_MAX + 1), None);
    }

    #[test]
    fn the_default_times_fit_together() {
        assert_eq!(Timing::default().check(), Ok(()));
    }

    #[test]
    fn a_lease_that_outlasts_the_grace_time_on_wrong_clocks_is_refused() {
        let lease = |ms| Timing { lease: Nanos::from_millis(ms), ..Timing::default() };
        // 500 ms on a clock that is 5 % fast are 475 ms; 452 ms on one that is 5 % slow are 474.6 ms
        assert_eq!(lease(452).check(), Ok(()));
        assert!(matches!(lease(453).check(), Err(TimingError::LeaseTooLong { .. })));
        let exact = Timing { clock_error_permille: 0, ..lease(499) };
        assert_eq!(exact.check(), Ok(()));
    }

    #[test]
    fn other_times_are_checked_too() {
        let seldom = Timing { heartbeat: Nanos::from_millis(117), ..Timing::default() };
        assert!(matches!(seldom.check(), Err(TimingError::HeartbeatTooSeldom { .. })));
        let late = Timing { forward: Nanos::from_millis(500), ..Timing::default() };
        assert!(matches!(late.check(), Err(TimingError::ForwardTooLong { .. })));
        let wild = Timing { clock_error_permille: 500, ..Timing::default() };
        assert!(matches!(wild.check(), Err(TimingError::ClockErrorTooLarge { permille: 500 })));
    }
}
