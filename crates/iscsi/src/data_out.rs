//! Write data: unsolicited and solicited Data-Out, and the R2Ts that request it (RFC 7143 §11.7, §11.8).
//!
//! ```text
//!   offset 0 ──immediate──┬──unsolicited──┬──R2T──┬──R2T──┬─ ... ─┤ wanted
//!                         └ until F       └ received so far        └ requested so far
//! ```
//! We negotiate DataPDUInOrder and DataSequenceInOrder, so data arrives in order and is appended. An R2T is
//! sent only for a command that has room for all of its data in the session's write budget. So commands
//! never wait for each other in a circle. Data for a task that does not exist (any more) is dropped.

use base::limits;
use block::Payload;
use wire::iscsi::{DataOut, R2t, RejectReason, task_tag};

use crate::api::{Command, Effect, TaskTag};
use crate::failure::Failure;
use crate::frame::Pdu;
use crate::keys::Parameters;
use crate::link::Link;
use crate::session::Session;
use crate::tasks::Work;
use crate::transfer::{Burst, Collecting};

impl Session {
    pub fn on_data_out(&mut self, link: &mut Link, pdu: Pdu) {
        let data_out = match DataOut::parse(&pdu.header) {
            Ok(data_out) => data_out,
            Err(reason) => return link.reject(reason, &pdu.header, self.window()),
        };
        let Some(tag) = self.tasks.find(task_tag(&pdu.header)) else { return };
        let Some(Work::Collecting(collecting)) = self.tasks.get_mut(tag).map(|task| &mut task.work) else {
            return;
        };
        let taken = collecting.on_data(&data_out, pdu.data.len(), &self.parameters);
        if !pdu.data_intact {
            collecting.damaged = true;
            collecting.data = Payload::new();
        } else if !collecting.damaged {
            for piece in pdu.data.pieces() {
                collecting.data.push(piece.clone());
            }
        }
        if !pdu.data_intact {
            link.reject(RejectReason::DataDigestError, &pdu.header, self.window());
        }
        match taken {
            Ok(()) => self.advance(link, tag),
            Err(failure) => self.give_up(link, tag, failure),
        }
    }

    /// What a command that collects data does next: run, fail, ask for more, or wait.
    pub fn advance(&mut self, link: &mut Link, tag: TaskTag) {
        let Some(task) = self.tasks.get_mut(tag) else { return };
        let Work::Collecting(collecting) = &mut task.work else { return };
        if collecting.unsolicited.is_some() {
            return;
        }
        if collecting.damaged {
            if collecting.is_quiet() {
                self.give_up(link, tag, Failure::ServiceCrc);
            }
            return;
        }
        if collecting.received >= collecting.wanted {
            let running = Work::Running(collecting.transfer);
            let Work::Collecting(collecting) = std::mem::replace(&mut task.work, running) else {
                unreachable!("it was collecting a moment ago")
            };
            let Collecting { command, data, .. } = *collecting;
            return link.effect(Effect::Command(Command { task: tag, data_out: data, ..command }));
        }
        if collecting.transfer.reserved_bytes > 0 {
            self.ask(link, tag);
        } else if !self.waiting_for_room.contains(&tag) {
            self.waiting_for_room.push_back(tag);
            self.hand_out_room(link);
        }
    }

    /// Ends a command that never reached the engine with CHECK CONDITION.
    fn give_up(&mut self, link: &mut Link, tag: TaskTag, failure: Failure) {
        let Some(task) = self.drop_task(link, tag) else { return };
        let Work::Collecting(collecting) = task.work else { return };
        self.fail(link, task.initiator_tag, collecting.transfer.expected_out, failure);
    }

    /// Sends as many R2Ts as may be outstanding.
    fn ask(&mut self, link: &mut Link, tag: TaskTag) {
        let window = self.window();
        let Parameters { max_burst_bytes, max_outstanding_r2t, .. } = self.parameters;
        let target_tags = &mut self.target_tags;
        let Some(task) = self.tasks.get_mut(tag) else { return };
        let Work::Collecting(collecting) = &mut task.work else { return };
        while collecting.asked < collecting.wanted && collecting.bursts.len() < max_outstanding_r2t as usize {
            let desired = (max_burst_bytes as usize).min(collecting.wanted - collecting.asked);
            let target_tag = target_tags.next();
            let r2t = R2t {
                lun: task.lun,
                task_tag: task.initiator_tag,
                target_tag,
                numbers: link.peek_numbers(window),
                r2t_sn: collecting.transfer.data_sn,
                offset_bytes: collecting.asked as u32,
                desired_bytes: desired as u32,
            };
            link.output.push_small(&r2t.emit(), &[]);
            collecting.transfer.data_sn += 1;
            collecting.asked += desired;
            collecting.bursts.push_back(Burst { target_tag, data_sn: 0, end: collecting.asked });
        }
    }

    /// Lets commands ask for their data, first come first served, as far as the budget goes.
    pub fn hand_out_room(&mut self, link: &mut Link) {
        while let Some(&tag) = self.waiting_for_room.front() {
            let reserved = self.write_bytes_reserved;
            let Some(Work::Collecting(collecting)) = self.tasks.get_mut(tag).map(|task| &mut task.work)
            else {
                unreachable!("only commands that collect data wait, and those given up leave the queue")
            };
            if reserved + collecting.wanted > limits::WRITE_BYTES_PER_SESSION_MAX {
                return;
            }
            collecting.transfer.reserved_bytes = collecting.wanted;
            self.write_bytes_reserved += collecting.wanted;
            self.waiting_for_room.pop_front();
            self.ask(link, tag);
        }
    }
}
