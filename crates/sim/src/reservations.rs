//! The persistent reservation of a drive that several machines see (SPC-4 §5.13), as far as heads use it. A host is a machine.

use std::collections::BTreeMap;

use base::Nanos;
use env::{IoError, Reservation, ReservationAsk, ReservationHolder};

use crate::drive::DriveNumber;
use crate::world::{Inner, ProcessId, World};

/// See the header of this file. It is kept over a loss of power.
#[derive(Default)]
pub(crate) struct Reservations {
    /// Keys, by machine.
    registered: BTreeMap<u16, u64>,
    holder: Option<u16>,
}

impl Reservations {
    /// *Write Exclusive*: everybody may read.
    pub fn may_write(&self, machine: u16) -> bool {
        self.holder.is_none_or(|holder| holder == machine)
    }

    fn report(&self) -> Reservation {
        let holder = self.holder.and_then(|holder| self.registered.get(&holder));
        Reservation {
            keys: self.registered.values().copied().collect(),
            holder: holder.map(|&key| ReservationHolder { key, is_write_exclusive: true }),
        }
    }

    /// With the machines whose operations are aborted.
    fn change(&mut self, machine: u16, ask: ReservationAsk) -> Result<Vec<u16>, IoError> {
        let is_own = |key| self.registered.get(&machine) == Some(&key);
        match ask {
            ReservationAsk::Report => unreachable!("it is answered elsewhere"),
            ReservationAsk::Register { key } => drop(self.registered.insert(machine, key)),
            ReservationAsk::Reserve { key } if is_own(key) && self.may_write(machine) => {
                self.holder = Some(machine);
            }
            ReservationAsk::Preempt { key, other } if is_own(key) => {
                let gone = self.registered.iter().filter(|&(_, registered)| *registered == other);
                let gone: Vec<u16> = gone.map(|(&machine, _)| machine).collect();
                if gone.is_empty() {
                    return Err(IoError::Reserved);
                }
                gone.iter().filter(|&&other| other != machine).for_each(|other| {
                    self.registered.remove(other);
                });
                if self.holder.is_some_and(|holder| gone.contains(&holder)) {
                    self.holder = Some(machine);
                }
                return Ok(gone);
            }
            ReservationAsk::Unregister { key } if is_own(key) => {
                self.registered.remove(&machine);
                self.holder = self.holder.filter(|&holder| holder != machine);
            }
            _ => return Err(IoError::Reserved),
        }
        Ok(Vec::new())
    }
}

impl World {
    /// This machine does not reach the drive for so long.
    pub fn cut_path(&self, machine: u16, drive: DriveNumber, time: Nanos) {
        self.note(|| format!("machine {machine} does not reach drive {} for {time:?}", drive.0));
        let mut inner = self.0.borrow_mut();
        let until = inner.now + time;
        inner.drives[drive.0 as usize].paths_cut.push((machine, until));
    }

    /// Every machine reaches all of its drives.
    pub fn mend_paths(&self) {
        self.0.borrow_mut().drives.iter_mut().for_each(|drive| drive.paths_cut.clear());
    }

    /// Writes that drives have refused because another machine had reserved them.
    pub fn refused_writes(&self) -> u64 {
        self.0.borrow().refused_writes
    }
}

impl Inner {
    /// Whether this machine reaches the drive now.
    pub(crate) fn reaches(&self, machine: u16, number: DriveNumber) -> bool {
        let cut = &self.drives[number.0 as usize].paths_cut;
        !cut.iter().any(|&(other, until)| other == machine && until > self.now)
    }

    pub(crate) fn machine_of_process(&self, process: ProcessId) -> u16 {
        self.processes[process.0 as usize].machine
    }

    /// Only drives that several machines see have reservations.
    pub(crate) fn reserve(
        &mut self,
        process: ProcessId,
        number: DriveNumber,
        ask: ReservationAsk,
    ) -> Result<Option<Reservation>, IoError> {
        let machine = self.machine_of_process(process);
        let drive = &mut self.drives[number.0 as usize];
        if !drive.options.shared {
            return Err(IoError::Unsupported);
        }
        if ask == ReservationAsk::Report {
            return Ok(Some(drive.reservations.report()));
        }
        let aborted = drive.reservations.change(machine, ask)?;
        aborted.into_iter().filter(|&other| other != machine).for_each(|other| self.abort(other, number));
        let now = self.now;
        self.trace.line(now, || format!("machine {machine} of drive {}: {ask:?}", number.0));
        Ok(None)
    }
}
