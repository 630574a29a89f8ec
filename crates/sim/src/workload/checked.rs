//! Requests that a script makes itself, durable or not. The oracle is told before each is sent and after it is
//! answered.

use std::ops::Range;
use std::rc::Rc;

use super::{Answer, Failure, Request, Shared, Subject, VolumePlan};
use crate::oracle::{SECTOR_BYTES, Sector};

/// What a script may ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checked {
    Write {
        durable: bool,
    },
    /// Compares with what is there.
    CompareAndWrite {
        durable: bool,
    },
    /// Of the whole volume.
    Flush,
}

/// Asks for it; nothing may go wrong.
pub async fn ask_checked(
    shared: Rc<Shared>,
    subject: Rc<dyn Subject>,
    volume: VolumePlan,
    sectors: Range<u64>,
    what: Checked,
) {
    let asked = match what {
        Checked::Write { durable } => write(&shared, &*subject, volume.volume, sectors, durable).await,
        Checked::CompareAndWrite { durable } => {
            compare_and_write(&shared, &*subject, volume.volume, sectors, durable).await
        }
        Checked::Flush => flush(&shared, &*subject, volume.volume).await,
    };
    if let Err(failure) = asked {
        shared.fail(failure);
    }
}

fn refused(request: String, answer: &Answer) -> Failure {
    Failure::Refused { request, answer: format!("{answer:?}") }
}

async fn write(
    shared: &Shared,
    subject: &dyn Subject,
    volume: u32,
    sectors: Range<u64>,
    durable: bool,
) -> Result<(), Failure> {
    let ticket = shared.oracle.borrow_mut().begin_write(volume, sectors.clone());
    let versions = vec![ticket.version; (sectors.end - sectors.start) as usize];
    let data = shared.oracle.borrow().compose(volume, sectors.start, &versions);
    let request = Request::Write { volume, first: sectors.start, data, durable };
    let name = request.to_string();
    match subject.execute(request).await {
        Answer::Done => shared.oracle.borrow_mut().end_write(ticket, durable),
        answer => return Err(refused(name, &answer)),
    }
    Ok(())
}

async fn compare_and_write(
    shared: &Shared,
    subject: &dyn Subject,
    volume: u32,
    sectors: Range<u64>,
    durable: bool,
) -> Result<(), Failure> {
    let read = shared.oracle.borrow_mut().begin_read(volume, sectors.clone());
    let request = Request::Read { volume, sectors: sectors.clone() };
    let name = request.to_string();
    let seen = match subject.execute(request).await {
        Answer::Data(seen) => seen,
        answer => return Err(refused(name, &answer)),
    };
    shared.oracle.borrow_mut().end_read(&read, &seen).map_err(Failure::Violation)?;
    let mut versions = Vec::new();
    for (sector, bytes) in sectors.clone().zip(seen.chunks_exact(SECTOR_BYTES)) {
        match shared.oracle.borrow().identify(volume, sector, bytes) {
            Sector::Version(version) => versions.push(version),
            other => unreachable!("the oracle has let {other:?} pass"),
        }
    }
    let ticket = shared.oracle.borrow_mut().begin_compare(volume, sectors.clone());
    let new = vec![ticket.version; versions.len()];
    let data = shared.oracle.borrow().compose(volume, sectors.start, &new);
    let request = Request::CompareAndWrite { volume, first: sectors.start, expected: seen, data, durable };
    let name = request.to_string();
    let answer = subject.execute(request).await;
    let mut oracle = shared.oracle.borrow_mut();
    match answer {
        Answer::Done => oracle.end_compare_matched(ticket, &versions, durable),
        Answer::Miscompare => oracle.end_compare_missed(&ticket, &versions),
        answer => return Err(refused(name, &answer)),
    }
    .map_err(Failure::Violation)
}

async fn flush(shared: &Shared, subject: &dyn Subject, volume: u32) -> Result<(), Failure> {
    let ticket = shared.oracle.borrow_mut().begin_flush(volume);
    match subject.execute(Request::Flush { volume }).await {
        Answer::Done => shared.oracle.borrow_mut().end_flush(ticket),
        answer => return Err(refused(format!("flush volume {volume}"), &answer)),
    }
    Ok(())
}
