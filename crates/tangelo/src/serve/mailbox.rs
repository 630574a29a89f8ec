//! The array as the control plane reaches it: commands go into shard 0's mailbox, and requests of transfers into that of
//! their shard, each with the channel for its answer.

use std::sync::Arc;

use api::{
    Bulk, BulkError, BulkReply, Caller, Command, CommandError, CommandErrorKind, Origin, PortalOptions,
    Reply, ReplyChannel, Upkeep,
};
use control::array::{Answer, Array, BulkAnswer};
use engine::ShardMessage;
use tokio::sync::oneshot;

use super::keeper::Keeper;
use super::locate;
use super::own_files::OwnFiles;

/// Puts a message into the mailbox of a shard; shard 0 takes the commands. `false`: it is full, or has ended.
type Send = Box<dyn Fn(usize, ShardMessage) -> bool + std::marker::Send + Sync>;

/// The array, as its shards' mailboxes.
pub struct EngineArray {
    send: Send,
    keeper: Keeper,
    own_files: OwnFiles,
}

impl EngineArray {
    pub fn new(
        send: impl Fn(usize, ShardMessage) -> bool + std::marker::Send + Sync + 'static,
        keeper: Keeper,
        own_files: OwnFiles,
    ) -> EngineArray {
        EngineArray { send: Box::new(send), keeper, own_files }
    }

    /// Stops the array in order: hosts, pools, shards.
    pub async fn shut_down(&self) -> Result<(), String> {
        match self.ask(Command::Shutdown, Origin::Daemon).await {
            Ok(Reply::Stopped) => Ok(()),
            Ok(other) => unreachable!("the array answered a shutdown with {other:?}"),
            Err(error) => Err(format!("the array did not stop in order: {}", error.message)),
        }
    }

    /// Has the array take over what the head's file says now. An event says what has changed.
    pub async fn reload(&self, portals: Vec<PortalOptions>, drives: Vec<String>) -> Result<(), String> {
        match self.ask(Command::Reload { portals, drives }, Origin::Daemon).await {
            Ok(Reply::Changed(_)) => Ok(()),
            Ok(other) => unreachable!("the array answered a reload with {other:?}"),
            Err(error) => Err(error.message),
        }
    }

    /// What needs no shard.
    fn answer_here(&self, command: &Command) -> Option<Result<Reply, CommandError>> {
        if let Err(refusal) = self.own_files.check(command) {
            return Some(Err(refusal));
        }
        match command {
            Command::DriveLocate { path, seconds } => {
                Some(locate::light(path, *seconds)?.map(Reply::Changed))
            }
            _ => None,
        }
    }

    /// The array records the event of a change that was made or refused here. Where its queue is full, there is none.
    fn report(&self, command: &Command, origin: &Origin, answer: &Result<Reply, CommandError>) {
        let asked = command.asked_change();
        if let Some((subject, facts)) = asked.and_then(|asked| asked.event(origin, answer)) {
            drop(self.ask(Command::Report { subject, facts, count: 1 }, Origin::Daemon));
        }
    }

    /// Sends at once. Where the future is dropped before the command has changed anything, it changes nothing.
    fn ask(
        &self,
        command: Command,
        origin: Origin,
    ) -> impl Future<Output = Result<Reply, CommandError>> + std::marker::Send + 'static {
        let (to, from) = oneshot::channel();
        let asking = Arc::new(());
        let waits = Arc::downgrade(&asking);
        let caller = Caller::new(origin, move || waits.strong_count() == 0);
        let answer: ReplyChannel = match &command {
            // nothing has to be saved before it
            Command::Events { .. } => Box::new(|outcome| drop(to.send(outcome))),
            command => self.keeper.answer(to, drives_to_remember(command)),
        };
        let sent = (self.send)(0, ShardMessage::Control(command, answer, caller));
        async move {
            let _asking = asking;
            let unavailable = |message: &str| {
                CommandError::new(CommandErrorKind::Unavailable, message, "try again in a moment")
            };
            if !sent {
                return Err(unavailable("the array has too many commands waiting, or is stopping"));
            }
            from.await.map_err(|_| unavailable("the array stopped before it had answered"))?
        }
    }
}

impl Array for EngineArray {
    fn call_for(&self, command: Command, origin: Origin) -> Answer {
        match self.answer_here(&command) {
            Some(answer) => {
                self.report(&command, &origin, &answer);
                Box::pin(async move { answer })
            }
            None => Box::pin(self.ask(command, origin)),
        }
    }

    fn bulk(&self, shard: u16, bulk: Bulk) -> BulkAnswer {
        let (to, from) = oneshot::channel();
        let reply: BulkReply = Box::new(|result| drop(to.send(result)));
        let sent = (self.send)(usize::from(shard), ShardMessage::Bulk(bulk, reply));
        Box::pin(async move {
            // a shard that ends drops what it has not answered
            let answer = if sent { from.await.ok() } else { None };
            answer.unwrap_or(Err(BulkError::Unavailable))
        })
    }
}

/// The drives that a command makes use of: the head looks at them from then on.
fn drives_to_remember(command: &Command) -> Vec<String> {
    match command {
        Command::PoolCreate { pool, dry_run: false } => pool.drives.clone(),
        Command::Upkeep { upkeep, dry_run: false } => match upkeep {
            Upkeep::DriveAdd { drives, .. } | Upkeep::Spare { drives, release: false, .. } => drives.clone(),
            Upkeep::DriveReplace { new, .. } => vec![new.clone()],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}
