//! One session of the storm: keeps commands under way, ends some of them by every means there is, and accounts for each.
//!
//! ```text
//!   issued ─► answered                                        its blocks are what it says
//!     ├────► ended by a function of ours, or with the session  there or not, for ever
//!     └────► ended by another's reset: TASK ABORTED              the same
//! ```

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use iscsi::initiator::{Completion, Event, Tag};
use wire::iscsi::{TaskManagementFunction, TaskManagementResult};

use super::content::{Own, Place};
use super::link::Link;
use super::plan::{self, Operation, Prng, Work};
use super::tally::Shared;

/// Commands under way.
const DEPTH: usize = 8;
/// Nothing takes longer than this, on any machine.
const STUCK_AFTER: Duration = Duration::from_secs(60);

struct Outstanding {
    operation: Operation,
    sent: Instant,
}

/// See the module's words.
pub struct Session<'a> {
    shared: &'a Shared,
    pub(super) own: BTreeMap<Place, Own>,
    pub(super) prng: Prng,
    link: Link,
    outstanding: BTreeMap<Tag, Outstanding>,
    /// Task management functions under way.
    functions: BTreeMap<Tag, Instant>,
    next_trouble: Instant,
    next_version: u64,
}

impl<'a> Session<'a> {
    pub fn new(shared: &'a Shared, number: usize, seed: u64) -> Result<Session<'a>, String> {
        let link = Link::log_in(shared.address, &shared.target, number)?;
        Ok(Session {
            own: plan::own_blocks(number).into_iter().map(|place| (place, Own::new())).collect(),
            prng: Prng::new(seed ^ (number as u64) << 32),
            shared,
            link,
            outstanding: BTreeMap::new(),
            functions: BTreeMap::new(),
            next_trouble: Instant::now(),
            next_version: (number as u64 + 1) << 40,
        })
    }

    /// Until the storm is over; then nothing is left under way, and everything of one's own is read.
    pub fn run(mut self) -> Result<(), String> {
        while !self.shared.is_over() {
            self.issue();
            self.trouble()?;
            self.step()?;
        }
        self.drain()?;
        self.verify()?;
        // what would land late has had its time
        std::thread::sleep(Duration::from_secs(3));
        self.verify()?;
        self.link.log_out();
        Ok(())
    }

    fn issue(&mut self) {
        for _ in self.outstanding.len()..DEPTH {
            if !self.link.can_send() {
                return;
            }
            self.next_version += 1;
            let Some(operation) = plan::draw(self.shared, &mut self.own, &mut self.prng, self.next_version)
            else {
                return;
            };
            self.send(operation);
        }
    }

    fn send(&mut self, operation: Operation) {
        let tag = self.link.send(plan::request(&operation));
        self.outstanding.insert(tag, Outstanding { operation, sent: Instant::now() });
    }

    /// Sends, receives, and takes in what has happened.
    fn step(&mut self) -> Result<(), String> {
        if !self.link.turn()? {
            self.reconnect(false)?;
            return Ok(());
        }
        while let Some(event) = self.link.next_event() {
            match event {
                Event::Completed(tag, completion) => self.on_completion(tag, &completion)?,
                Event::TaskManagement { tag, result, ended } => self.on_function(tag, result, ended)?,
                Event::Async(_) | Event::Pong(..) => {}
                other => return Err(format!("the session ends: {other:?}")),
            }
        }
        let now = Instant::now();
        let stuck = self.outstanding.values().map(|one| one.sent).chain(self.functions.values().copied());
        match stuck.min().filter(|&sent| now - sent > STUCK_AFTER) {
            Some(_) => Err(format!("a request has had no answer for {STUCK_AFTER:?}")),
            None => Ok(()),
        }
    }

    fn on_completion(&mut self, tag: Tag, completion: &Completion) -> Result<(), String> {
        let Some(Outstanding { operation, .. }) = self.outstanding.remove(&tag) else {
            return Err("an answer to a command that was ended: it came late".to_owned());
        };
        let sense = |index: usize| completion.sense.get(index).copied().unwrap_or(0);
        let (key, code, qualifier) = (sense(2) & 0xF, sense(12), sense(13));
        match (completion.status, key) {
            (0x00, _) => plan::good(self.shared, &mut self.own, operation, completion),
            // BUSY and TASK SET FULL
            (0x08 | 0x28, _) => {
                self.shared.tally.busy.add(1);
                plan::refused(self.shared, &mut self.own, operation);
                Ok(())
            }
            // TASK ABORTED: by another session's function
            (0x40, _) => {
                self.shared.tally.ended_by_others.add(1);
                plan::unanswered(self.shared, &mut self.own, operation);
                Ok(())
            }
            (0x02, 0x6) => {
                self.shared.tally.attentions.add(1);
                plan::refused(self.shared, &mut self.own, operation);
                Ok(())
            }
            (0x02, 0xE) if operation.compares() => {
                self.shared.tally.miscompares.add(1);
                plan::refused(self.shared, &mut self.own, operation);
                Ok(())
            }
            (status, _) => {
                Err(format!("{operation:?}: status {status:02x}, sense {key:x}/{code:02x}/{qualifier:02x}"))
            }
        }
    }

    fn on_function(&mut self, tag: Tag, result: TaskManagementResult, ended: Vec<Tag>) -> Result<(), String> {
        self.functions.remove(&tag);
        match result {
            TaskManagementResult::Complete | TaskManagementResult::TaskDoesNotExist => {}
            other => return Err(format!("a task management function ended with {other:?}")),
        }
        for tag in ended {
            self.end_unanswered(tag);
        }
        Ok(())
    }

    /// The command is over, and nobody says how.
    fn end_unanswered(&mut self, tag: Tag) {
        if let Some(one) = self.outstanding.remove(&tag) {
            self.shared.tally.ended.add(1);
            plan::unanswered(self.shared, &mut self.own, one.operation);
        }
    }

    /// Now and then ends something.
    fn trouble(&mut self) -> Result<(), String> {
        if Instant::now() < self.next_trouble {
            return Ok(());
        }
        self.next_trouble = Instant::now() + Duration::from_millis(20 + self.prng.below(200));
        let lun = self.prng.below(u64::from(plan::LUNS)) as u16;
        match self.prng.below(1000) {
            0..700 => {
                let tags: Vec<Tag> = self.outstanding.keys().copied().collect();
                if !tags.is_empty() {
                    let tag = tags[self.prng.below(tags.len() as u64) as usize];
                    let lun = self.outstanding[&tag].operation.lun();
                    self.manage(TaskManagementFunction::AbortTask, lun, Some(tag));
                }
            }
            700..800 => self.manage(TaskManagementFunction::AbortTaskSet, lun, None),
            800..850 => self.manage(TaskManagementFunction::ClearTaskSet, lun, None),
            850..862 => self.manage(TaskManagementFunction::LogicalUnitReset, lun, None),
            862..865 => self.manage(TaskManagementFunction::TargetWarmReset, 0, None),
            865..866 => self.manage(TaskManagementFunction::TargetColdReset, 0, None),
            866..890 => return self.reconnect(true),
            890..914 => return self.reconnect(false),
            _ => {}
        }
        Ok(())
    }

    fn manage(&mut self, function: TaskManagementFunction, lun: u16, of: Option<Tag>) {
        self.shared.tally.function(function);
        let tag = self.link.manage(function, lun, of);
        self.functions.insert(tag, Instant::now());
    }

    /// Another connection of the same name, which replaces the session. With `while_alive` the older connection is there
    /// until the newer one has logged in; otherwise it is dropped first, in the midst of whatever it does.
    fn reconnect(&mut self, while_alive: bool) -> Result<(), String> {
        self.shared.tally.drops.add(1);
        if !while_alive {
            self.link.drop_now();
        }
        self.link = self.link.again()?;
        self.functions.clear();
        let tags: Vec<Tag> = self.outstanding.keys().copied().collect();
        tags.into_iter().for_each(|tag| self.end_unanswered(tag));
        Ok(())
    }

    fn drain(&mut self) -> Result<(), String> {
        while !self.outstanding.is_empty() || !self.functions.is_empty() {
            self.step()?;
        }
        Ok(())
    }

    /// Reads every block of one's own.
    fn verify(&mut self) -> Result<(), String> {
        let places: Vec<Place> = self.own.keys().copied().collect();
        for place in places {
            while !self.own[&place].busy {
                if self.link.can_send() {
                    self.own.get_mut(&place).expect("it is one's own").busy = true;
                    self.send(Operation { places: vec![place], work: Work::Read });
                    break;
                }
                self.step()?;
            }
            self.step_if_full()?;
        }
        self.drain()?;
        let unread = self.own.values().any(|own| own.possible.len() != 1);
        // a unit attention may have come instead
        if unread { self.verify() } else { Ok(()) }
    }

    fn step_if_full(&mut self) -> Result<(), String> {
        while self.outstanding.len() >= DEPTH {
            self.step()?;
        }
        Ok(())
    }
}
