//! Task management (RFC 7143 §11.5, §11.6, §4.2.3). Commands that still collect their data are handled
//! here; the engine handles the others.

use base::limits;
use wire::iscsi::{
    Header, RESERVED_TAG, RejectReason, TaskManagementFunction as Function, TaskManagementRequest,
    TaskManagementResponse as Response, TaskManagementResult as Outcome,
};

use crate::api::{
    Effect, TaskManagement, TaskManagementFunction as Asked, TaskManagementResponse as Answer, TaskTag,
};
use crate::link::Link;
use crate::session::Session;
use crate::tasks::{Task, Work};

impl Session {
    pub fn on_task_management(&mut self, link: &mut Link, header: &Header) {
        let request = match TaskManagementRequest::parse(header) {
            Ok(request) => request,
            Err(reason) => return self.reject_numbered(link, header, reason),
        };
        let refusal = if request.task_tag == RESERVED_TAG {
            Some(RejectReason::InvalidPduField)
        } else if self.tasks.find(request.task_tag).is_some() {
            Some(RejectReason::TaskInProgress)
        } else if request.immediate && self.tasks.immediate() >= limits::IMMEDIATE_COMMANDS_MAX {
            Some(RejectReason::TooManyImmediateCommands)
        } else {
            None
        };
        if let Some(reason) = refusal {
            return self.reject_numbered(link, header, reason);
        }
        if !self.is_admitted(link, header) {
            return;
        }
        match request.function {
            None => self.answer(link, request.task_tag, Outcome::NotSupported),
            Some(Function::TaskReassign) => {
                self.answer(link, request.task_tag, Outcome::ReassignmentNotSupported)
            }
            Some(Function::AbortTask) => self.abort_task(link, &request),
            Some(Function::AbortTaskSet) => self.forward(link, &request, Asked::AbortTaskSet, None),
            Some(Function::ClearAca) => self.forward(link, &request, Asked::ClearAca, None),
            Some(Function::ClearTaskSet) => self.forward(link, &request, Asked::ClearTaskSet, None),
            Some(Function::LogicalUnitReset) => self.forward(link, &request, Asked::LogicalUnitReset, None),
            Some(Function::TargetWarmReset) => self.forward(link, &request, Asked::TargetWarmReset, None),
            Some(Function::TargetColdReset) => self.forward(link, &request, Asked::TargetColdReset, None),
        }
    }

    /// A command that is not there was either answered or never came (RFC 7143 §11.5.1); both look alike
    /// on one connection, where everything sent before this request has arrived before it.
    fn abort_task(&mut self, link: &mut Link, request: &TaskManagementRequest) {
        let found = self.tasks.find(request.referenced_tag);
        match found.and_then(|tag| self.tasks.get(tag).map(|task| (tag, &task.work))) {
            None | Some((_, Work::Management { .. })) => {
                self.answer(link, request.task_tag, Outcome::TaskDoesNotExist)
            }
            Some((tag, Work::Collecting(_))) => {
                self.drop_task(link, tag);
                self.answer(link, request.task_tag, Outcome::Complete);
            }
            Some((tag, Work::Running(_))) => self.forward(link, request, Asked::AbortTask, Some(tag)),
        }
    }

    fn forward(
        &mut self,
        link: &mut Link,
        request: &TaskManagementRequest,
        function: Asked,
        referenced: Option<TaskTag>,
    ) {
        let work = Work::Management { function, referenced };
        let task = self.tasks.insert(request.task_tag, request.lun, request.immediate, work, None);
        let collecting = self.tasks.select(|other| {
            matches!(other.work, Work::Collecting(_)) && concerns(function, request.lun, other)
        });
        for tag in collecting {
            self.drop_task(link, tag);
        }
        link.effect(Effect::TaskManagement(TaskManagement { task, function, lun: request.lun, referenced }));
    }

    pub fn respond_task_management(&mut self, link: &mut Link, tag: TaskTag, answer: Answer) {
        if !matches!(self.tasks.get(tag).map(|task| &task.work), Some(Work::Management { .. })) {
            return;
        }
        let Some(task) = self.drop_task(link, tag) else { return };
        let Work::Management { function, referenced } = task.work else { return };
        if answer == Answer::Complete {
            let before = task.order();
            let concerned = self.tasks.select(|other| {
                other.is_command() && other.is_before(before) && concerns(function, task.lun, other)
            });
            for tag in concerned.into_iter().chain(referenced) {
                self.drop_task(link, tag);
            }
        }
        let outcome = match answer {
            Answer::Complete => Outcome::Complete,
            Answer::TaskDoesNotExist => Outcome::TaskDoesNotExist,
            Answer::LunDoesNotExist => Outcome::LunDoesNotExist,
            Answer::NotSupported => Outcome::NotSupported,
            Answer::AuthorizationFailed => Outcome::AuthorizationFailed,
            Answer::Rejected => Outcome::Rejected,
        };
        self.answer(link, task.initiator_tag, outcome);
    }

    /// See [`crate::Connection::end_collecting`].
    pub fn end_collecting(
        &mut self,
        link: &mut Link,
        is_its: &dyn Fn(u64) -> bool,
        status: Option<u8>,
    ) -> bool {
        let collecting =
            self.tasks.select(|task| matches!(task.work, Work::Collecting(_)) && is_its(task.lun));
        for &tag in &collecting {
            let Some(task) = self.drop_task(link, tag) else { continue };
            let (Some(status), Work::Collecting(collecting)) = (status, task.work) else { continue };
            self.end(link, task.initiator_tag, status, collecting.transfer.expected_out);
        }
        !collecting.is_empty()
    }

    fn answer(&mut self, link: &mut Link, initiator_tag: u32, result: Outcome) {
        let numbers = link.status_numbers(self.window());
        let response = Response { result, task_tag: initiator_tag, numbers };
        link.output.push_small(&response.emit(), &[]);
    }
}

/// Whether a function that is carried out ends this command (besides one that it references).
fn concerns(function: Asked, lun: u64, task: &Task) -> bool {
    match function {
        Asked::AbortTask | Asked::ClearAca => false,
        Asked::AbortTaskSet | Asked::ClearTaskSet | Asked::LogicalUnitReset => task.lun == lun,
        Asked::TargetWarmReset | Asked::TargetColdReset => true,
    }
}
