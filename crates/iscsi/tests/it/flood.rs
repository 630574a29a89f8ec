//! More commands than the shard has room for: they are refused with BUSY or TASK SET FULL before any data is kept, and
//! served when there is room again.

use base::Nanos;
use base::limits::COMMAND_BYTES;
use block::Payload;
use iscsi::initiator::{Event, InitiatorParams, Request};
use iscsi::{Budget, CommandResponse, Connection, ConnectionParams, TaskTag};

use crate::harness::{HOST, Pair, TARGET};

const BUSY: u8 = 0x08;
const TASK_SET_FULL: u8 = 0x28;
const WRITE_BYTES: usize = 64 << 10;

/// Two sessions of one shard with room for three writes.
fn sessions() -> (std::rc::Rc<Budget>, [Pair; 2]) {
    let budget = Budget::new(3 * (WRITE_BYTES + COMMAND_BYTES));
    let session = |isid: u8| {
        let mut params = InitiatorParams::new(HOST, Some(TARGET));
        params.isid[5] = isid;
        let mut pair = Pair::new(params);
        let local_address = "192.0.2.7:3260".parse().unwrap();
        let params = ConnectionParams { local_address, portal_group_tag: 1, budget: budget.clone() };
        pair.target = Connection::new(params, Nanos(0));
        pair.run();
        pair.events.clear();
        pair
    };
    let both = [session(1), session(2)];
    (budget, both)
}

fn write(pair: &mut Pair) {
    let mut cdb = [0; 16];
    (cdb[0], cdb[8]) = (0x2A, 128);
    let mut request = Request::new(0, cdb);
    request.data_out = Payload::from(vec![7; WRITE_BYTES]);
    pair.initiator.command(request).unwrap();
    pair.run();
}

fn statuses(pair: &mut Pair) -> Vec<u8> {
    pair.run();
    let status = |event| match event {
        Event::Completed(_, completion) => completion.status,
        other => panic!("{other:?}"),
    };
    pair.events.drain(..).map(status).collect()
}

fn finish(pair: &mut Pair, task: TaskTag) {
    pair.target.respond(task, CommandResponse::default());
}

#[test]
fn what_has_no_room_is_refused_and_comes_again() {
    let (budget, [mut one, mut other]) = sessions();
    (0..3).for_each(|_| write(&mut one));
    assert_eq!((one.commands.len(), statuses(&mut one)), (3, vec![]));
    // the first session has commands under way, the second has not
    write(&mut one);
    write(&mut other);
    assert_eq!((statuses(&mut one), statuses(&mut other)), (vec![TASK_SET_FULL], vec![BUSY]));
    assert_eq!((one.commands.len(), other.commands.len()), (3, 0));
    // nothing of what was refused is kept, and what was sent of it disturbs nobody
    assert_eq!(budget.used_bytes(), 3 * (WRITE_BYTES + COMMAND_BYTES));
    let first = one.commands.remove(0);
    assert_eq!(first.data_out.len(), WRITE_BYTES);
    finish(&mut one, first.task);
    assert_eq!(statuses(&mut one), [0]);
    write(&mut other);
    assert_eq!((other.commands.len(), statuses(&mut other)), (1, vec![]));
    // a session that ends gives back what its commands held
    drop(one);
    (0..2).for_each(|_| write(&mut other));
    assert_eq!((other.commands.len(), statuses(&mut other)), (3, vec![]));
    let tasks: Vec<TaskTag> = other.commands.drain(..).map(|command| command.task).collect();
    tasks.into_iter().for_each(|task| finish(&mut other, task));
    assert_eq!(statuses(&mut other), [0; 3]);
    assert_eq!(budget.used_bytes(), 0);
}
