//! What a batch of runs must exercise: every kind of fault, and every decision that the pool counts.

use std::collections::BTreeMap;

use sim::seed::Report;

/// What pools do not bring about. It is counted all the same: a count other than zero is news.
const UNREACHABLE: &[&str] = &[
    // a pool never reads where it is writing; the kind is for the tests of the simulated drive
    "fault: read of a write in flight",
    // positions and sequences already keep out what these two look for, as long as there is one owner at a time
    "recovery: a batch before the cut, passed over",
    "recovery: a header of another life, the segment ends",
    // the shares of docs/design/0003-space.md are there so that neither has to happen
    "log: a checkpoint's entries given up",
    "log: cleaning's entries given up",
];

/// Every count by name.
pub fn names() -> impl Iterator<Item = String> {
    let decisions = sim::counts().map(|(name, _)| name.to_owned());
    Report::default().totals().into_iter().map(|(name, _)| name).chain(decisions)
}

/// The names of what was never exercised.
pub fn missing(totals: &BTreeMap<String, u64>) -> Vec<String> {
    let never = totals.iter().filter(|&(_, &count)| count == 0).map(|(name, _)| name);
    never.filter(|name| !UNREACHABLE.contains(&name.as_str())).cloned().collect()
}

/// What this process has decided so far, of which each count is told once.
#[derive(Default)]
pub struct Decisions(BTreeMap<&'static str, u64>);

impl Decisions {
    /// Prints what has been added since the last time.
    pub fn print_new(&mut self) {
        for (name, count) in sim::counts() {
            let known = self.0.entry(name).or_default();
            if count > *known {
                println!("total {} {name}", count - *known);
                *known = count;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_exercised_is_named() {
        let mut totals: BTreeMap<String, u64> = names().map(|name| (name, 1)).collect();
        assert!(missing(&totals).is_empty());
        totals.insert("fault: bit rot".to_owned(), 0);
        totals.insert("fault: read of a write in flight".to_owned(), 0);
        assert_eq!(missing(&totals), ["fault: bit rot"]);
    }
}
