//! What is wrong with the array: how much harm it does, why it is so, and what to do.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Health;

/// Something wrong: what, why, what to do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    // Problems are told in its order; nobody is told it.
    #[serde(skip)]
    pub harm: Harm,
    pub health: Health,
    /// What it is about, such as `pool fast` or `drive /dev/sdb`.
    pub subject: String,
    pub reason: String,
    pub action: String,
}

/// What a problem does to data and hosts. Ordered: what does most harm comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Harm {
    /// Nothing is served or managed.
    Array,
    /// A pool is not served.
    Offline,
    /// Data is gone, or may be.
    Lost,
    /// Data has less redundancy than promised.
    Exposed,
    /// Writes are refused for want of space, or soon will be.
    Space,
    /// A raw volume is not served: it is one volume, and nobody counts on more.
    Raw,
    /// A drive does not do what it should; what stands on it is safe for now.
    Drive,
    /// Hosts cannot come in somewhere.
    Portal,
    /// No spare would join.
    Spare,
    /// All else.
    #[default]
    Other,
}

impl Problem {
    /// The worst first; what does the same harm stays in its order.
    pub fn sort(problems: &mut [Problem]) {
        problems.sort_by_key(|problem| (problem.harm, std::cmp::Reverse(problem.health)));
    }

    /// How well the whole is that has these.
    pub fn health_of(problems: &[Problem]) -> Health {
        problems.iter().map(|problem| problem.health).max().unwrap_or(Health::Healthy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_raw_volume_does_not_hide_a_pool() {
        let problem = |harm, health| Problem {
            harm,
            health,
            subject: format!("{harm:?}"),
            reason: String::new(),
            action: String::new(),
        };
        use Harm::*;
        let mut problems: Vec<Problem> = [Spare, Portal, Drive, Space, Exposed, Lost, Other]
            .into_iter()
            .map(|harm| problem(harm, Health::Degraded))
            .chain([problem(Raw, Health::Offline), problem(Offline, Health::Offline)])
            .collect();
        Problem::sort(&mut problems);
        let order: Vec<Harm> = problems.iter().map(|problem| problem.harm).collect();
        assert_eq!(order, [Offline, Lost, Exposed, Space, Raw, Drive, Portal, Spare, Other]);
        assert_eq!(Problem::health_of(&problems[1..]), Health::Offline, "the raw volume's");
    }
}
