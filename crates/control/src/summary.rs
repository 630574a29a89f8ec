//! The array in a few sentences: state, reason, action, and whether the data is safe.
//!
//! A pure function of the status.

use api::{ArrayStatus, Health, LossOfTheOwner, NextFailure, PairStatus, PoolStatus};

use crate::rest::{SCHEMA, Status, Summary};
use base::units::Size;

/// The status with its summary and the lines with which to connect. `host_name` stands in for addresses that
/// mean "every address of this machine".
pub fn describe(array: ArrayStatus, host_name: &str) -> Status {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Status {
        schema: SCHEMA,
        version,
        summary: summarise(&array),
        connect: connect_lines(&array, host_name),
        array,
        pair: None,
        snapshots: None,
    }
}

/// The same for an array of two heads: one whose owner would not be replaced has less protection than promised.
pub fn describe_pair(status: &mut Status, pair: PairStatus) {
    let (summary, loss) = (&mut status.summary, pair.loss_of_the_owner);
    if loss != LossOfTheOwner::Survived {
        if status.array.problems.is_empty() {
            summary.reason = format!("If this head were lost: {}.", loss.text());
            summary.action = "`tangelo pair status` tells more.".to_owned();
        }
        summary.health = summary.health.max(Health::Degraded);
    }
    status.pair = Some(pair);
}

/// What to say first.
pub fn summarise(array: &ArrayStatus) -> Summary {
    let pools = &array.pools;
    let unharmed =
        |pool: &PoolStatus| pool.health != Health::Offline && !is_damaged(pool) && !was_damaged(pool);
    let data_safe = (!pools.is_empty()).then(|| pools.iter().all(unharmed));
    let survives = data_safe.map(|safe| safe && pools.iter().all(|pool| pool.failures_survivable > 0));
    let (reason, action) = reason_and_action(array);
    Summary {
        health: array.health,
        reason,
        action,
        data_safe,
        survives_next_failure: survives,
        data: describe_data(pools),
    }
}

/// Whether something is known to be damaged beyond repair.
fn is_damaged(pool: &PoolStatus) -> bool {
    pool.lost_bytes > 0
}

/// Whether there was something that the last scrub could neither read nor rebuild.
fn was_damaged(pool: &PoolStatus) -> bool {
    pool.scrub.last.is_some_and(|last| last.unreadable > 0)
}

fn reason_and_action(array: &ArrayStatus) -> (String, String) {
    let Some(worst) = array.problems.first() else {
        return match array.health {
            Health::Healthy if array.pools.is_empty() && array.volumes.is_empty() => (
                "The array is empty: it has no pool yet.".to_owned(),
                "Make a pool: `tangelo drive list`, then `tangelo pool create NAME --protection parity-1 DRIVES...`."
                    .to_owned(),
            ),
            Health::Healthy => ("Everything works.".to_owned(), String::new()),
            Health::Degraded => ("The array has less protection than promised.".to_owned(), String::new()),
            Health::Offline => ("The array does not serve its volumes.".to_owned(), String::new()),
        };
    };
    let more = match array.problems.len() - 1 {
        0 => String::new(),
        1 => " One more problem is listed below.".to_owned(),
        more => format!(" {more} more problems are listed below."),
    };
    (format!("{}: {}{more}", worst.subject, sentence(&worst.reason())), sentence(&worst.action()))
}

/// `text` with a full stop, unless it is empty or has an end of its own.
fn sentence(text: &str) -> String {
    let ended = text.is_empty() || text.ends_with(['.', '!', '?', '`']);
    if ended { text.to_owned() } else { format!("{text}.") }
}

/// Whether the data is safe now, and whether it would be after the next failure: each pool in one clause, the worst first.
fn describe_data(pools: &[PoolStatus]) -> String {
    if pools.is_empty() {
        return "There is no pool, so no data of its own.".to_owned();
    }
    let mut states: Vec<Safety> = pools.iter().map(Safety::of).collect();
    states.sort();
    states.dedup();
    let clause = |state: &Safety| {
        let names: Vec<&str> =
            pools.iter().filter(|pool| Safety::of(pool) == *state).map(|pool| pool.name.as_str()).collect();
        state.clause(&names, names.len() == pools.len())
    };
    let clauses: Vec<String> = states.iter().map(clause).collect();
    let afterwards: String = pools.iter().filter_map(describe_next_failure).collect();
    clauses.join(" ") + &afterwards
}

/// How safe a pool's data is; the worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Safety {
    Offline,
    Damaged {
        survives: bool,
    },
    /// The last scrub could not read all of it.
    Doubtful {
        survives: bool,
    },
    /// `bare`: it never was stored twice; else why it would not survive is the reason of a problem.
    Fragile {
        bare: bool,
    },
    Safe {
        margin: u8,
    },
}

impl Safety {
    fn of(pool: &PoolStatus) -> Safety {
        let survives = pool.failures_survivable > 0;
        match pool.health {
            Health::Offline => Safety::Offline,
            _ if is_damaged(pool) => Safety::Damaged { survives },
            _ if was_damaged(pool) => Safety::Doubtful { survives },
            _ if !survives => Safety::Fragile { bare: pool.protection == "stripe" },
            _ => Safety::Safe { margin: pool.failures_survivable },
        }
    }

    /// `all`: there are no pools but these.
    fn clause(self, names: &[&str], all: bool) -> String {
        let of = pool_list(names);
        let rest = |survives: bool| match survives {
            true => "",
            false => " The rest of it would NOT SURVIVE the failure of one more drive.",
        };
        match self {
            Safety::Offline => format!(
                "The data of {of} is NOT AVAILABLE now. The array overwrites nothing of it; it is served again when enough of its drives are back."
            ),
            Safety::Damaged { survives } => format!(
                "Some data of {of} is DAMAGED BEYOND REPAIR; hosts get errors where it cannot be read.{}",
                rest(survives)
            ),
            Safety::Doubtful { survives } => format!(
                "The last scrub found data of {of} that could neither be read nor rebuilt. None is known to be lost now; another scrub will tell.{}",
                rest(survives)
            ),
            Safety::Fragile { bare } => {
                let why = match bare {
                    false => String::new(),
                    true => format!(
                        " Of {of} nothing is stored twice: what must not be lost belongs into a pool with parity or mirrors."
                    ),
                };
                let what = match all {
                    true => format!("The data is safe now, but {of} would"),
                    false => format!("The data of {of} is safe now, but would"),
                };
                format!("{what} NOT SURVIVE the failure of one more drive.{why}")
            }
            Safety::Safe { margin } => {
                let drives = match margin {
                    1 => "any one more drive".to_owned(),
                    margin => format!("any {margin} more drives"),
                };
                let what = if all { "The data".to_owned() } else { format!("The data of {of}") };
                let each = if names.len() == 1 { "" } else { " of each pool" };
                format!("{what} is safe, and would survive the failure of {drives}{each}.")
            }
        }
    }
}

/// What would be missing to have a pool's redundancy back after the next failure, if anything.
fn describe_next_failure(pool: &PoolStatus) -> Option<String> {
    let name = &pool.name;
    match pool.next_failure? {
        NextFailure { rebuildable: false, .. } => Some(format!(
            " Pool {name} could not be rebuilt afterwards: too few drives would be left, until the lost one is back or replaced."
        )),
        NextFailure { short_bytes: 0, .. } => None,
        NextFailure { short_bytes, .. } => Some(format!(
            " Pool {name} could not be rebuilt afterwards: {} short; add a drive, or free space.",
            Size(short_bytes)
        )),
    }
}

fn pool_list(names: &[&str]) -> String {
    format!("pool{} {}", if names.len() == 1 { "" } else { "s" }, names.join(", "))
}

/// Commands with which a Linux host finds the array and logs in.
fn connect_lines(array: &ArrayStatus, host_name: &str) -> Vec<String> {
    let Some(portal) = array.portals.iter().find(|portal| portal.error.is_none()) else { return Vec::new() };
    let address = match portal.address.parse::<std::net::SocketAddr>() {
        Ok(address) if address.ip().is_unspecified() => format!("{host_name}:{}", address.port()),
        _ => portal.address.clone(),
    };
    vec![
        format!("iscsiadm -m discovery -t sendtargets -p {address}"),
        format!("iscsiadm -m node -T {} -p {address} --login", array.target_name),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{IoError, LastScrub, PortalStatus, Problem, ProblemFacts, Subject};

    fn pool(name: &str, health: Health, failures_survivable: u8) -> PoolStatus {
        PoolStatus {
            name: name.to_owned(),
            id: "0".repeat(32),
            protection: "parity-1".to_owned(),
            format: 5,
            width: 4,
            lanes: 1,
            health,
            causes: Vec::new(),
            failures_survivable,
            next_failure: None,
            provisioned_bytes: 0,
            capacity_bytes: 1,
            used_bytes: 0,
            lost_bytes: 0,
            log_bytes: 2,
            reserve_bytes: 1,
            references: api::PoolReferences::default(),
            written: api::PoolWrites::default(),
            map: api::PoolMap::default(),
            drives: Vec::new(),
            settings: crate::fake::settings(),
            repair: None,
            scrub: crate::fake::no_scrub(),
            activity: Vec::new(),
        }
    }

    fn array(pools: Vec<PoolStatus>, problems: Vec<Problem>) -> ArrayStatus {
        ArrayStatus {
            array_id: "0".repeat(32),
            target_name: "iqn.2026-11.io.tangelo:0".to_owned(),
            health: pools.iter().map(|pool| pool.health).max().unwrap_or(Health::Healthy),
            problems,
            shards: 1,
            uptime_ms: 0,
            portals: Vec::new(),
            drives: Vec::new(),
            pools,
            volumes: Vec::new(),
            bin: Vec::new(),
            schedules: Vec::new(),
            hosts: Vec::new(),
            mappings: Vec::new(),
            sessions: Vec::new(),
        }
    }

    #[test]
    fn whether_the_data_is_safe() {
        use Health::*;
        let mut damaged = pool("a", Degraded, 1);
        damaged.lost_bytes = 4096;
        let mut doubtful = pool("a", Healthy, 1);
        let last = LastScrub { ended_ms: 1, complete: true, repaired: 0, unreadable: 2 };
        doubtful.scrub.last = Some(last);
        let found_again = LastScrub { unreadable: 0, ..last };
        let mut still = damaged.clone();
        still.scrub.last = Some(found_again);
        let after = |rebuildable, short_bytes| {
            vec![PoolStatus {
                next_failure: Some(NextFailure { rebuildable, short_bytes }),
                ..pool("a", Healthy, 1)
            }]
        };
        let table = [
            (after(true, 0), Some(true), Some(true), "any one more drive."),
            (
                after(true, 3 << 30),
                Some(true),
                Some(true),
                "Pool a could not be rebuilt afterwards: 3 GiB short",
            ),
            (
                after(false, 0),
                Some(true),
                Some(true),
                "Pool a could not be rebuilt afterwards: too few drives",
            ),
            (vec![damaged], Some(false), Some(false), "Some data of pool a is DAMAGED BEYOND REPAIR"),
            (vec![still], Some(false), Some(false), "Some data of pool a is DAMAGED BEYOND REPAIR"),
            (vec![doubtful], Some(false), Some(false), "None is known to be lost now"),
            (vec![], None, None, "There is no pool"),
            (
                vec![pool("a", Healthy, 1)],
                Some(true),
                Some(true),
                "survive the failure of any one more drive.",
            ),
            (vec![pool("a", Healthy, 2)], Some(true), Some(true), "any 2 more drives."),
            (vec![pool("a", Healthy, 0)], Some(true), Some(false), ", but pool a would NOT SURVIVE"),
        ];
        for (pools, safe, survives, words) in table {
            let summary = summarise(&array(pools, Vec::new()));
            assert_eq!((summary.data_safe, summary.survives_next_failure), (safe, survives), "{words}");
            assert!(summary.data.contains(words), "{}", summary.data);
        }
    }

    #[test]
    fn each_pool_is_spoken_of() {
        use Health::*;
        let striped = |name| PoolStatus { protection: "stripe".to_owned(), ..pool(name, Healthy, 0) };
        let table = [
            (
                vec![pool("a", Healthy, 2), pool("b", Degraded, 1)],
                Some(true),
                Some(true),
                "The data of pool b is safe, and would survive the failure of any one more drive. The data of pool a is safe, and would survive the failure of any 2 more drives.",
            ),
            (
                vec![pool("a", Healthy, 1), pool("b", Degraded, 1)],
                Some(true),
                Some(true),
                "The data is safe, and would survive the failure of any one more drive of each pool.",
            ),
            (
                vec![pool("a", Degraded, 0), pool("b", Healthy, 2), striped("c")],
                Some(true),
                Some(false),
                "The data of pool a is safe now, but would NOT SURVIVE the failure of one more drive. The data of pool c is safe now, but would NOT SURVIVE the failure of one more drive. Of pool c nothing is stored twice",
            ),
            (
                vec![pool("a", Healthy, 2), pool("b", Offline, 0), pool("c", Degraded, 0)],
                Some(false),
                Some(false),
                "back. The data of pool c is safe now, but would NOT SURVIVE the failure of one more drive. The data of pool a is safe, and",
            ),
            (
                vec![pool("a", Healthy, 2), pool("b", Offline, 0)],
                Some(false),
                Some(false),
                "The data of pool b is NOT AVAILABLE",
            ),
        ];
        for (pools, safe, survives, words) in table {
            let summary = summarise(&array(pools, Vec::new()));
            assert_eq!((summary.data_safe, summary.survives_next_failure), (safe, survives), "{words}");
            assert!(summary.data.contains(words), "{}", summary.data);
        }
    }

    #[test]
    fn the_worst_problem_is_named_with_what_to_do() {
        let slow = ProblemFacts::DriveSlow { factor: Some(9), emptying: false };
        let slow = Problem::new(Subject::drive("/dev/sdb"), slow);
        let summary = summarise(&array(vec![], vec![slow.clone(), slow.clone(), slow]));
        assert_eq!(
            summary.reason,
            "drive /dev/sdb: it is 9 times slower than its siblings; the pool cannot do without it now. 2 more problems are listed below."
        );
        assert_eq!(summary.action, "replace it, or add a drive: then it is emptied by itself.");
    }

    #[test]
    fn connecting_goes_to_a_portal_that_listens() {
        let mut status = array(vec![], vec![]);
        assert!(connect_lines(&status, "san1").is_empty());
        let portal = |address: &str, error| PortalStatus {
            address: address.to_owned(),
            group: 1,
            hosts: Vec::new(),
            forwarded: false,
            error,
        };
        status.portals =
            vec![portal("10.0.0.1:3260", Some(IoError::AddressInUse)), portal("0.0.0.0:3261", None)];
        let lines = connect_lines(&status, "san1");
        assert_eq!(lines[0], "iscsiadm -m discovery -t sendtargets -p san1:3261");
        assert_eq!(lines[1], "iscsiadm -m node -T iqn.2026-11.io.tangelo:0 -p san1:3261 --login");
    }
}
