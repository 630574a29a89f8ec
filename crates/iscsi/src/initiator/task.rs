//! The outstanding requests of an initiator, by tag.

use block::Payload;

use super::Tag;

/// Data of a command on its way, both directions.
pub(super) struct Transfer {
    pub data_out: Payload,
    pub data_in: Payload,
    pub expected_in: u32,
    /// Data-In and R2T PDUs seen: the next DataSN and R2TSN.
    pub data_sn: u32,
    /// Bytes of the current sequence of Data-In.
    pub burst_bytes: u32,
}

pub(super) enum Kind {
    Command(Transfer),
    TaskManagement { ends: Ends },
    Nop,
    Text,
    Logout,
}

/// Which commands a task management function ends when it is complete.
#[derive(Clone, Copy)]
pub(super) enum Ends {
    Nothing,
    One(Tag),
    OfLun(u64),
    All,
}

struct Slot {
    generation: u32,
    lun: u64,
    order: u64,
    kind: Option<Kind>,
}

#[derive(Default)]
pub(super) struct Tasks {
    slots: Vec<Slot>,
    free: Vec<u16>,
    orders: u64,
}

impl Tasks {
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Panics at 65536 requests outstanding; the window is smaller.
    pub fn insert(&mut self, kind: Kind, lun: u64) -> Tag {
        self.orders += 1;
        let order = self.orders;
        let index = match self.free.pop() {
            Some(index) => usize::from(index),
            None => {
                assert!(self.slots.len() < 1 << 16, "more requests than tags");
                self.slots.push(Slot { generation: 0, lun, order, kind: None });
                self.slots.len() - 1
            }
        };
        let slot = &mut self.slots[index];
        (slot.kind, slot.lun, slot.order) = (Some(kind), lun, order);
        Tag(slot.generation << 16 | index as u32)
    }

    pub fn command(&mut self, tag: Tag) -> Option<&mut Transfer> {
        let slot = self.slots.get_mut(tag.slot()).filter(|slot| slot.generation == tag.0 >> 16)?;
        match &mut slot.kind {
            Some(Kind::Command(transfer)) => Some(transfer),
            _ => None,
        }
    }

    pub fn lun(&self, tag: Tag) -> u64 {
        self.slots[tag.slot()].lun
    }

    /// Removes the request if it is there and of the right kind.
    pub fn take(&mut self, tag: Tag, is_right: impl Fn(&Kind) -> bool) -> Option<Kind> {
        let slot = self.slots.get_mut(tag.slot()).filter(|slot| slot.generation == tag.0 >> 16)?;
        if !slot.kind.as_ref().is_some_and(is_right) {
            return None;
        }
        slot.generation = (slot.generation + 1) & 0x7fff; // never the reserved tag
        self.free.push(tag.slot() as u16);
        slot.kind.take()
    }

    pub fn take_command(&mut self, tag: Tag) -> Option<Transfer> {
        match self.take(tag, |kind| matches!(kind, Kind::Command(_)))? {
            Kind::Command(transfer) => Some(transfer),
            _ => None,
        }
    }

    /// When the request was made, compared with others.
    pub fn order(&self, tag: Tag) -> Option<u64> {
        self.slots.get(tag.slot()).filter(|slot| slot.generation == tag.0 >> 16).map(|slot| slot.order)
    }

    /// Removes the commands that a function has ended: those made before it.
    pub fn end(&mut self, ends: Ends, before: u64) -> Vec<Tag> {
        let tags = self.slots.iter().enumerate().filter(|(_, slot)| slot.order < before);
        let tags: Vec<Tag> = tags
            .filter(|(_, slot)| matches!(slot.kind, Some(Kind::Command(_))))
            .map(|(index, slot)| (Tag(slot.generation << 16 | index as u32), slot.lun))
            .filter(|&(tag, lun)| match ends {
                Ends::Nothing => false,
                Ends::One(one) => tag == one,
                Ends::OfLun(ended) => lun == ended,
                Ends::All => true,
            })
            .map(|(tag, _)| tag)
            .collect();
        for &tag in &tags {
            self.take_command(tag);
        }
        tags
    }
}
