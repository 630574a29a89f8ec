//! A trace of events: as one number, which must be equal for two runs of a seed, and as text for replaying a run.
//!
//! The number is always computed; the text is written only if a sink is set.

use base::Nanos;

/// Where a replayed seed's lines go.
pub type TraceSink = Box<dyn FnMut(Nanos, &str)>;

/// The running digest of all events, and the optional log.
pub struct Trace {
    digest: u64,
    sink: Option<TraceSink>,
}

impl Trace {
    pub fn new(sink: Option<TraceSink>) -> Trace {
        Trace { digest: 0x7A6E_6765_6C6F, sink }
    }

    /// Mixes an event into the digest.
    pub fn mix(&mut self, values: &[u64]) {
        for &value in values {
            self.digest = (self.digest ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        }
    }

    /// Equal for two runs exactly where every event was, in order.
    pub fn digest(&self) -> u64 {
        crate::prng::scatter(self.digest)
    }

    pub fn is_on(&self) -> bool {
        self.sink.is_some()
    }

    /// Writes a line. The text is made only if there is a sink.
    pub fn line(&mut self, now: Nanos, text: impl FnOnce() -> String) {
        if let Some(sink) = &mut self.sink {
            sink(now, &text());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[test]
    fn order_and_values_count() {
        let digest = |events: &[&[u64]]| {
            let mut trace = Trace::new(None);
            events.iter().for_each(|event| trace.mix(event));
            trace.digest()
        };
        assert_eq!(digest(&[&[1, 2], &[3]]), digest(&[&[1, 2], &[3]]));
        assert_ne!(digest(&[&[1, 2], &[3]]), digest(&[&[3], &[1, 2]]));
        assert_ne!(digest(&[&[1]]), digest(&[&[1], &[0]]));
    }

    #[test]
    fn text_is_composed_only_for_a_sink() {
        Trace::new(None).line(Nanos(0), || panic!("composed for nobody"));
        let lines = Rc::new(RefCell::new(Vec::new()));
        let log = lines.clone();
        let mut trace =
            Trace::new(Some(Box::new(move |now, text| log.borrow_mut().push((now, text.to_owned())))));
        trace.line(Nanos(5), || "hello".into());
        assert_eq!(*lines.borrow(), [(Nanos(5), "hello".to_owned())]);
    }
}
