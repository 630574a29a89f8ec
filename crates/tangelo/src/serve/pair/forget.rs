//! The array goes back to one head: what that would do, and its first step. The rest is done by the next start (`setup::forget`), and by
//! the array, which erases the records of twins before it writes to a drive.

use std::collections::BTreeSet;

use api::{
    ArrayStatus, Change, ChangeStep, Command, CommandError, CommandErrorKind, DriveState, PairForgetting,
    PairStatus, PairStep, Reply,
};
use control::array::Array;
use setup::SetupError;

use super::super::mailbox::EngineArray;
use super::company::Company;
use super::twins::{is_shared_at, twin_at};

/// Forgets the other head, unless that is refused. When this has succeeded, and it is no dry run, the process is to start again.
pub async fn forget(
    company: &Company,
    engine: &EngineArray,
    pair: &PairStatus,
    how: PairForgetting,
    dry_run: bool,
) -> Result<Change, CommandError> {
    let status = match engine.call(Command::Status).await? {
        Reply::Status(status) => status,
        other => unreachable!("the array answered a status command with {other:?}"),
    };
    check(pair, how)?;
    let change = Change { dry_run, steps: steps(pair, &status), hosts_affected: hosts(&status), made: None };
    if !dry_run {
        setup::disown(&company.state_dir(), how.force).await.map_err(|error| refused(&error))?;
        tracing::warn!("the other head is forgotten; this one starts again, alone");
    }
    Ok(change)
}

fn check(pair: &PairStatus, how: PairForgetting) -> Result<(), CommandError> {
    if !pair.register_trouble.is_empty() {
        let message = format!("the register does not answer: {}", pair.register_trouble);
        let hint = "the other head might take over as long as the register names it; look at the members of etcd: `tangelo pair status`";
        return Err(CommandError::new(CommandErrorKind::Unavailable, message, hint));
    }
    match pair.in_sync && !how.force {
        true => Err(in_sync()),
        false => Ok(()),
    }
}

fn in_sync() -> CommandError {
    CommandError::new(
        CommandErrorKind::InUse,
        "the other head is in sync: without it, the array is not served if this head is lost",
        "stop the other head first (`systemctl stop tangelo` there), or add --force",
    )
}

fn refused(error: &SetupError) -> CommandError {
    match error {
        SetupError::ForgetsInSync => in_sync(),
        SetupError::NotTheOwner => CommandError::new(
            CommandErrorKind::Unavailable,
            error.to_string(),
            "`tangelo pair status` tells more",
        ),
        SetupError::Register(_) => {
            let hint = "give the command again: what was begun is finished; `tangelo pair status` names the members of etcd";
            CommandError::new(CommandErrorKind::Unavailable, error.to_string(), hint)
        }
        _ => CommandError::new(CommandErrorKind::Io, error.to_string(), "give the command again"),
    }
}

/// What is done, and what is left to do elsewhere.
fn steps(pair: &PairStatus, status: &ArrayStatus) -> Vec<ChangeStep> {
    let mut steps = vec![PairStep::ForgetHead { addresses: pair.other.addresses.clone() }];
    for (pool, drive) in
        status.pools.iter().flat_map(|pool| pool.drives.iter().map(move |drive| (pool, drive)))
    {
        let path = || drive.path.clone();
        if drive.state == DriveState::Missing {
            steps.push(PairStep::LeaveTwinRecord { drive: path(), pool: pool.name.clone() });
        } else if twin_at(&drive.path).is_some() {
            steps.push(PairStep::EndTwin { drive: path() });
        } else if is_shared_at(&drive.path) {
            steps.push(PairStep::EndReservation { drive: path() });
        }
    }
    steps.push(PairStep::EndRegisterMember {});
    steps.push(PairStep::RestartArray { alone: true });
    steps.push(PairStep::DisableRegister {});
    steps.push(PairStep::DisableOthers {});
    steps.into_iter().map(ChangeStep::from).collect()
}

/// Those that are logged in.
fn hosts(status: &ArrayStatus) -> Vec<String> {
    let hosts: BTreeSet<String> =
        status.sessions.iter().map(|session| session.host.clone()).filter(|host| !host.is_empty()).collect();
    hosts.into_iter().collect()
}
