//! The tasks of one session: the outstanding requests of the initiator.
//!
//! What always holds: an initiator task tag names at most one task; a [`TaskTag`] of ours always names the same
//! task (slot and generation); there are at most [`TASKS_MAX`].

use base::limits;
use wire::iscsi::RESERVED_TAG;

use crate::api::{TaskManagementFunction, TaskTag};
use crate::transfer::{Collecting, Transfer};
use block::Held;

/// Slots: every command of the window, and immediate ones.
const TASKS_MAX: usize = (limits::COMMANDS_PER_SESSION_MAX + limits::IMMEDIATE_COMMANDS_MAX) as usize;
const SLOT_BITS: u32 = 8;
const _: () = assert!(TASKS_MAX <= 1 << SLOT_BITS);

pub(crate) enum Work {
    /// A write whose data is not all there.
    Collecting(Box<Collecting>),
    /// A command that the engine has.
    Running(Transfer),
    /// A task management request that the engine has.
    Management { function: TaskManagementFunction, referenced: Option<TaskTag> },
}

pub(crate) struct Task {
    pub initiator_tag: u32,
    pub lun: u64,
    /// Outside the command window.
    pub immediate: bool,
    pub work: Work,
    /// Of the shard's budget, for a command; given back with the answer.
    _held: Option<Held>,
    /// Counts up with every task: which of two came first.
    order: u64,
}

impl Task {
    pub fn is_before(&self, other: u64) -> bool {
        self.order < other
    }

    pub fn order(&self) -> u64 {
        self.order
    }

    pub fn is_command(&self) -> bool {
        !matches!(self.work, Work::Management { .. })
    }

    pub fn reserved_bytes(&self) -> usize {
        match &self.work {
            Work::Collecting(collecting) => collecting.transfer.reserved_bytes,
            Work::Running(transfer) => transfer.reserved_bytes,
            Work::Management { .. } => 0,
        }
    }
}

/// Where the tag stands. Many at once are looked at without asking in between, which is a few instructions.
fn position(tags: &[u32], wanted: u32) -> Option<usize> {
    let (groups, rest) = tags.as_chunks::<16>();
    let holds = |group: &[u32; 16]| group.iter().fold(false, |found, &tag| found | (tag == wanted));
    let place = |tags: &[u32]| tags.iter().position(|&tag| tag == wanted);
    match groups.iter().position(holds) {
        Some(group) => place(&groups[group]).map(|within| 16 * group + within),
        None => place(rest).map(|within| tags.len() - rest.len() + within),
    }
}

#[derive(Default)]
struct Slot {
    generation: u32,
    task: Option<Task>,
}

#[derive(Default)]
pub(crate) struct Tasks {
    slots: Vec<Slot>,
    /// Of each slot; [`RESERVED_TAG`] where it is free. Apart, because it is searched.
    initiator_tags: Vec<u32>,
    free: Vec<u8>,
    orders: u64,
    ordered: u32,
    immediate: u32,
}

impl Tasks {
    /// Commands inside the window that are not answered.
    pub fn ordered(&self) -> u32 {
        self.ordered
    }

    /// Commands outside it.
    pub fn immediate(&self) -> u32 {
        self.immediate
    }

    pub fn find(&self, initiator_tag: u32) -> Option<TaskTag> {
        if initiator_tag == RESERVED_TAG {
            return None;
        }
        Some(self.tag(position(&self.initiator_tags, initiator_tag)?))
    }

    /// Whether some command to this LUN is not answered.
    pub fn has_command(&self, lun: u64) -> bool {
        self.slots
            .iter()
            .filter_map(|slot| slot.task.as_ref())
            .any(|task| task.is_command() && task.lun == lun)
    }

    fn tag(&self, slot: usize) -> TaskTag {
        TaskTag(self.slots[slot].generation << SLOT_BITS | slot as u32)
    }

    /// Panics where the tag is in use already or the caller let more in than the limits allow.
    pub fn insert(
        &mut self,
        initiator_tag: u32,
        lun: u64,
        immediate: bool,
        work: Work,
        held: Option<Held>,
    ) -> TaskTag {
        assert!(initiator_tag != RESERVED_TAG && self.find(initiator_tag).is_none());
        let slot = match self.free.pop() {
            Some(slot) => usize::from(slot),
            None => {
                assert!(self.slots.len() < TASKS_MAX, "more tasks than the window allows");
                self.slots.push(Slot::default());
                self.initiator_tags.push(RESERVED_TAG);
                self.slots.len() - 1
            }
        };
        self.orders += 1;
        let task = Task { initiator_tag, lun, immediate, work, _held: held, order: self.orders };
        self.slots[slot].task = Some(task);
        self.initiator_tags[slot] = initiator_tag;
        if immediate {
            self.immediate += 1;
        } else {
            self.ordered += 1;
        }
        self.tag(slot)
    }

    fn slot(&self, tag: TaskTag) -> usize {
        (tag.0 & ((1 << SLOT_BITS) - 1)) as usize
    }

    pub fn get(&self, tag: TaskTag) -> Option<&Task> {
        let slot = self.slots.get(self.slot(tag))?;
        slot.task.as_ref().filter(|_| slot.generation == tag.0 >> SLOT_BITS)
    }

    pub fn get_mut(&mut self, tag: TaskTag) -> Option<&mut Task> {
        let index = self.slot(tag);
        let slot = self.slots.get_mut(index)?;
        slot.task.as_mut().filter(|_| slot.generation == tag.0 >> SLOT_BITS)
    }

    pub fn remove(&mut self, tag: TaskTag) -> Option<Task> {
        self.get(tag)?;
        let index = self.slot(tag);
        let slot = &mut self.slots[index];
        let task = slot.task.take()?;
        slot.generation = (slot.generation + 1) & (u32::MAX >> SLOT_BITS);
        self.initiator_tags[index] = RESERVED_TAG;
        self.free.push(index as u8);
        if task.immediate {
            self.immediate -= 1;
        } else {
            self.ordered -= 1;
        }
        Some(task)
    }

    /// Those for which `wanted` holds, in the order in which they came.
    pub fn select(&self, wanted: impl Fn(&Task) -> bool) -> Vec<TaskTag> {
        let mut found: Vec<(u64, TaskTag)> = (0..self.slots.len())
            .filter_map(|slot| {
                self.slots[slot].task.as_ref().filter(|t| wanted(t)).map(|t| (t.order, self.tag(slot)))
            })
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, tag)| tag).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running() -> Work {
        Work::Running(Transfer {
            read: false,
            write: false,
            expected_in: 0,
            expected_out: 0,
            data_sn: 0,
            reserved_bytes: 0,
        })
    }

    #[test]
    fn a_tag_names_one_task_for_ever() {
        let mut tasks = Tasks::default();
        let first = tasks.insert(7, 0, false, running(), None);
        assert_eq!(tasks.find(7), Some(first));
        assert!(tasks.remove(first).is_some() && tasks.remove(first).is_none());
        let second = tasks.insert(7, 0, true, running(), None);
        assert_ne!(first, second);
        assert!(tasks.get(first).is_none() && tasks.get(second).is_some());
        assert_eq!((tasks.ordered(), tasks.immediate()), (0, 1));
        assert_eq!(tasks.find(RESERVED_TAG), None);
    }

    #[test]
    fn as_many_as_the_limits_say_in_order() {
        let mut tasks = Tasks::default();
        for tag in 0..limits::COMMANDS_PER_SESSION_MAX {
            tasks.insert(tag, u64::from(tag % 2), false, running(), None);
        }
        for tag in 0..limits::IMMEDIATE_COMMANDS_MAX {
            tasks.insert(1000 + tag, 9, true, running(), None);
        }
        let third = tasks.find(3).unwrap();
        tasks.remove(third);
        tasks.insert(3, 1, false, running(), None);
        let odd = tasks.select(|task| task.lun == 1);
        assert_eq!(odd.len(), limits::COMMANDS_PER_SESSION_MAX as usize / 2);
        assert_eq!(odd.last(), tasks.find(3).as_ref(), "the newest is last");
    }
}
