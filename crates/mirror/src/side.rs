//! The partner's side: it takes writes of one owner, in one term, over one connection.
//!
//! What always holds: a write of another term is refused; a head that takes over reads its drives only after every write that was
//! accepted has ended; a new connection is accepted only after all writes of the one before have ended.

use pair::Term;

/// See the header of this file.
#[derive(Debug, Default)]
pub struct Side {
    accepts: Option<Term>,
    in_flight: u64,
}

/// Why a request of an owner is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The term that is accepted, if any.
    pub accepts: Option<Term>,
}

impl Side {
    /// Accepts this term, over a new connection. Refused while writes of the one before are in flight.
    pub fn accept(&mut self, term: Term) -> Result<(), StillBusy> {
        if self.in_flight > 0 {
            return Err(StillBusy { in_flight: self.in_flight });
        }
        self.accepts = Some(term);
        Ok(())
    }

    /// Accepts nothing more: the connection has ended, or this head takes over.
    pub fn refuse(&mut self) {
        self.accepts = None;
    }

    /// A request of an owner: it may begin. [`Side::ended`] is due when it has ended.
    pub fn begin(&mut self, term: Term) -> Result<(), Refused> {
        if self.accepts != Some(term) {
            return Err(Refused { accepts: self.accepts });
        }
        self.in_flight += 1;
        Ok(())
    }

    pub fn ended(&mut self) {
        self.in_flight = self.in_flight.checked_sub(1).expect("a request ends once");
    }

    /// Whether the drives stay as they are now.
    pub fn is_quiet(&self) -> bool {
        self.accepts.is_none() && self.in_flight == 0
    }
}

/// Writes of an earlier connection are in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StillBusy {
    pub in_flight: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_term_and_quiet_before_the_next() {
        let mut side = Side::default();
        assert_eq!(side.begin(Term(1)), Err(Refused { accepts: None }));
        side.accept(Term(4)).unwrap();
        side.begin(Term(4)).unwrap();
        assert_eq!(side.begin(Term(3)), Err(Refused { accepts: Some(Term(4)) }));
        side.refuse();
        assert!(!side.is_quiet(), "a write is in flight");
        assert_eq!(side.accept(Term(5)), Err(StillBusy { in_flight: 1 }));
        side.ended();
        assert!(side.is_quiet());
        side.accept(Term(5)).unwrap();
        assert!(!side.is_quiet());
    }
}
