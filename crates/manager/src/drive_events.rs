//! What has happened to the drives of a pool, from its membership before and after a change.

use api::{DriveTrouble, EventFacts, Subject};
use pool::{DriveState, Member, Membership};

/// An event for each member whose state has changed, and for each new member.
pub(crate) fn between(before: &Membership, after: &Membership) -> Vec<(Subject, EventFacts)> {
    let event = |(index, member): (usize, &Member)| {
        let earlier = before.members.get(index);
        let pool = || after.name.clone();
        let facts = match (earlier.map(|earlier| earlier.state), member.state) {
            (None, DriveState::Online) => EventFacts::DriveJoined { pool: pool() },
            (Some(DriveState::Missing), DriveState::Online | DriveState::Draining) => {
                EventFacts::DriveReturned { pool: pool() }
            }
            (Some(DriveState::Draining), DriveState::Online) => EventFacts::DriveKept { pool: pool() },
            (Some(DriveState::Online), DriveState::Draining) => {
                EventFacts::DriveEmptying { pool: pool(), slow: member.slow }
            }
            (Some(DriveState::Online | DriveState::Draining), DriveState::Missing) => {
                EventFacts::DriveGivenUp { pool: pool(), trouble: DriveTrouble::Missing }
            }
            (Some(DriveState::Online | DriveState::Draining | DriveState::Missing), DriveState::Failed) => {
                EventFacts::DriveGivenUp { pool: pool(), trouble: DriveTrouble::Failed }
            }
            (Some(earlier), DriveState::Removed) if earlier != DriveState::Removed => {
                EventFacts::DriveLeft { pool: pool() }
            }
            _ => return None,
        };
        Some((subject(earlier, member), facts))
    };
    after.members.iter().enumerate().filter_map(event).collect()
}

/// By its path, or the last that was known, or its id.
fn subject(earlier: Option<&Member>, member: &Member) -> Subject {
    let paths = [Some(member), earlier].into_iter().flatten().map(|member| &member.path);
    let known = paths.into_iter().find(|path| !path.is_empty());
    Subject::drive(known.cloned().unwrap_or_else(|| member.id.to_string()))
}
