//! Decides which room carries out a call.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use api::{CommandError, CommandErrorKind};
use front::Front;
use manager::{Manager, StartParameters};
use shard::{Answer, Call, Context, Handler, ManagerCall, ShardMessage};

/// The rooms of one shard.
pub(crate) struct Rooms {
    pub(crate) context: Rc<Context>,
    pub(crate) front: Rc<Front>,
    /// On shard 0 only.
    manager: Option<Rc<Manager>>,
}

impl Rooms {
    /// On shard 0, this begins the start of the array with its parameters.
    pub(crate) fn new(context: Rc<Context>, parameters: Option<StartParameters>) -> Rc<Rooms> {
        let front = Front::new(&context);
        let manager = parameters.map(|parameters| Rc::new(Manager::new(&context, parameters)));
        let start = manager.clone().map(Manager::start);
        let rooms = Rc::new(Rooms { front, manager, context });
        let weak = Rc::downgrade(&rooms);
        rooms.context.set_handler(weak);
        if let Some(start) = start {
            rooms.context.io.spawn(start);
        }
        rooms
    }

    pub(crate) fn on_message(self: &Rc<Rooms>, message: ShardMessage) {
        match message {
            ShardMessage::Answer { id, answer } => self.context.mail.on_answer(id, answer),
            ShardMessage::Bulk(bulk, reply) => self.context.serve_bulk(bulk, reply),
            ShardMessage::Call { from, id, call: call @ (Call::Block(..) | Call::Lane(..)) } => {
                self.context.serve_blocks(from, id, call);
            }
            ShardMessage::Call { from, id, call } => {
                let rooms = self.clone();
                self.context.io.spawn(async move {
                    let answer = rooms.clone().carry_out(call).await;
                    rooms.context.mail.answer(from, id, answer);
                });
            }
            ShardMessage::Control(command, reply, caller) => match &self.manager {
                Some(manager) => manager.clone().on_command(command, reply, caller),
                None => reply(Err(CommandError::new(
                    CommandErrorKind::Unavailable,
                    "the command reached a shard that does not manage the array",
                    "send it to shard 0",
                ))),
            },
        }
    }

    async fn carry_out(self: Rc<Rooms>, call: Call) -> Answer {
        match call {
            Call::Block(..) | Call::Lane(..) => self.context.handle_blocks(call).await,
            Call::Shard(call) => self.context.handle(call).await,
            Call::Front(call) => self.front.clone().handle(call).await,
            Call::Manager(call) => self.manage(call).await,
            Call::Replicate(replica) => {
                self.context.take_over(&replica);
                self.front.follow(&replica).await;
                Answer::Done
            }
            Call::Spaces(spaces) => {
                self.context.units.set_spaces(&spaces.pools);
                self.front.tell_spaces(&spaces);
                Answer::Done
            }
        }
    }

    async fn manage(&self, call: ManagerCall) -> Answer {
        match &self.manager {
            Some(manager) => manager.handle(call).await,
            None => unreachable!("{call:?} is for the shard that manages the array"),
        }
    }
}

impl Handler for Rooms {
    fn handle(self: Rc<Self>, call: Call) -> Pin<Box<dyn Future<Output = Answer>>> {
        Box::pin(self.carry_out(call))
    }
}
