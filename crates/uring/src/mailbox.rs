//! Messages between threads. Each shard has bounded queues: one from every shard, and one for all other threads. An
//! eventfd wakes a shard that sleeps in its ring.
//!
//! What always holds:
//! - messages of one sender arrive in the order in which they were sent;
//! - no message waits for a sleeping shard: a shard announces that it will sleep, then checks that every queue is
//!   empty, and only then sleeps; a sender first queues its message, then checks for the announcement.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use base::ShardId;
use base::limits::{CONTROL_QUEUE_MAX, SHARD_QUEUE_MAX};
use env::Event;
use rustix::event::EventfdFlags;

/// Wakes one shard.
pub struct Doorbell {
    /// Blocking, or a read of it through the ring would fail instead of waiting.
    eventfd: OwnedFd,
    sleeping: AtomicBool,
}

impl Doorbell {
    pub fn new() -> std::io::Result<Doorbell> {
        let eventfd = rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?;
        Ok(Doorbell { eventfd, sleeping: AtomicBool::new(false) })
    }

    /// What the ring reads, eight bytes at a time.
    pub fn descriptor(&self) -> RawFd {
        self.eventfd.as_raw_fd()
    }

    /// To be called after something was put into a queue. A system call only where the shard sleeps.
    pub fn ring(&self) {
        if self.sleeping.load(Ordering::SeqCst) && self.sleeping.swap(false, Ordering::SeqCst) {
            // It cannot fail but by an overflow of 2^64 - 2 unread wake-ups.
            rustix::io::write(&self.eventfd, &1u64.to_ne_bytes()).expect("an eventfd takes a one");
        }
    }

    /// Announces sleep: from here on, every sender wakes this shard.
    pub fn announce_sleep(&self) {
        self.sleeping.store(true, Ordering::SeqCst);
    }

    pub fn awake(&self) {
        self.sleeping.store(false, Ordering::SeqCst);
    }
}

/// A bounded queue of messages.
struct Queue<M> {
    /// None once the shard has ended.
    messages: Mutex<Option<Vec<M>>>,
    /// Their number, to look at without the lock.
    length: AtomicUsize,
}

impl<M> Queue<M> {
    fn new() -> Queue<M> {
        Queue { messages: Mutex::new(Some(Vec::new())), length: AtomicUsize::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<M>>> {
        self.messages.lock().expect("no panic under the lock")
    }

    fn length(&self) -> usize {
        self.length.load(Ordering::SeqCst)
    }

    /// Gives the message back where there are `bound` already, or the shard has ended.
    fn push(&self, message: M, bound: usize) -> Result<(), M> {
        let mut messages = self.lock();
        match &mut *messages {
            Some(messages) if messages.len() < bound => {
                messages.push(message);
                self.length.store(messages.len(), Ordering::SeqCst);
                Ok(())
            }
            _ => Err(message),
        }
    }

    /// What a shard has gathered during its turn; it has seen to the bound. Lost where the receiver has ended.
    fn append(&self, outgoing: &mut Vec<M>) {
        match &mut *self.lock() {
            Some(messages) => {
                if messages.is_empty() {
                    std::mem::swap(messages, outgoing);
                } else {
                    messages.append(outgoing);
                }
                self.length.store(messages.len(), Ordering::SeqCst);
            }
            None => outgoing.clear(),
        }
    }

    /// All of them, through `taken`, whose memory the queue has next: moved once, and not under the lock.
    fn take(&self, taken: &mut Vec<M>, events: &mut Vec<Event<M>>) {
        if self.length() == 0 {
            return;
        }
        if let Some(messages) = &mut *self.lock() {
            std::mem::swap(messages, taken);
            self.length.store(0, Ordering::SeqCst);
        }
        events.extend(taken.drain(..).map(Event::Message));
    }

    fn close(&self) {
        let messages = self.lock().take(); // dropped after the lock is gone: they may do anything
        self.length.store(0, Ordering::SeqCst);
        drop(messages);
    }
}

/// Everything that comes to one shard.
struct Inbox<M> {
    doorbell: Arc<Doorbell>,
    from_shards: Vec<Queue<M>>,
    from_others: Queue<M>,
}

/// The way to send a message to a shard from any thread.
pub struct Mailbox<M> {
    shard: ShardId,
    inbox: Arc<Inbox<M>>,
}

impl<M> Clone for Mailbox<M> {
    fn clone(&self) -> Mailbox<M> {
        Mailbox { shard: self.shard, inbox: self.inbox.clone() }
    }
}

impl<M> std::fmt::Debug for Mailbox<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mailbox(shard {})", self.shard)
    }
}

impl<M: Send + 'static> Mailbox<M> {
    pub(crate) fn new(shard: ShardId, shards: u16) -> std::io::Result<Mailbox<M>> {
        let doorbell = Arc::new(Doorbell::new()?);
        let from_shards = (0..shards).map(|_| Queue::new()).collect();
        Ok(Mailbox { shard, inbox: Arc::new(Inbox { doorbell, from_shards, from_others: Queue::new() }) })
    }

    pub fn shard(&self) -> ShardId {
        self.shard
    }

    /// Sends, and wakes the shard if it sleeps. Never blocks. Gives the message back where
    /// [`CONTROL_QUEUE_MAX`] messages wait already, or the shard has ended ([`Mailbox::is_closed`]).
    pub fn try_send(&self, message: M) -> Result<(), M> {
        self.inbox.from_others.push(message, CONTROL_QUEUE_MAX)?;
        self.inbox.doorbell.ring();
        Ok(())
    }

    /// Whether the shard has ended: nothing sent will ever be read.
    pub fn is_closed(&self) -> bool {
        self.inbox.from_others.lock().is_none()
    }
}

/// One shard's end of all the queues.
pub(crate) struct Messages<M> {
    shard: ShardId,
    mailboxes: Vec<Mailbox<M>>,
    /// Gathered in this turn, by receiver.
    outgoing: Vec<Vec<M>>,
    /// Empty but while messages are received.
    taken: Vec<M>,
}

impl<M: Send + 'static> Messages<M> {
    pub fn new(shard: ShardId, mailboxes: Vec<Mailbox<M>>) -> Messages<M> {
        let outgoing = mailboxes.iter().map(|_| Vec::new()).collect();
        Messages { shard, mailboxes, outgoing, taken: Vec::new() }
    }

    pub fn shard(&self) -> ShardId {
        self.shard
    }

    pub fn shards(&self) -> u16 {
        u16::try_from(self.mailboxes.len()).expect("at most SHARDS_MAX")
    }

    pub fn doorbell(&self) -> &Arc<Doorbell> {
        &self.own().doorbell
    }

    fn own(&self) -> &Inbox<M> {
        &self.mailboxes[self.shard.0 as usize].inbox
    }

    /// Gathers a message for the end of this turn. Gives it back where [`SHARD_QUEUE_MAX`] messages of ours wait.
    pub fn send(&mut self, to: ShardId, message: M) -> Result<(), M> {
        let to = to.0 as usize;
        assert!(to < self.mailboxes.len(), "there is no shard {to}");
        let waiting = self.mailboxes[to].inbox.from_shards[self.shard.0 as usize].length();
        if waiting + self.outgoing[to].len() >= SHARD_QUEUE_MAX {
            return Err(message);
        }
        self.outgoing[to].push(message);
        Ok(())
    }

    pub fn has_incoming(&self) -> bool {
        let own = self.own();
        own.from_others.length() != 0 || own.from_shards.iter().any(|queue| queue.length() != 0)
    }

    pub fn receive(&mut self, events: &mut Vec<Event<M>>) {
        let own = &self.mailboxes[self.shard.0 as usize].inbox;
        own.from_others.take(&mut self.taken, events);
        for queue in &own.from_shards {
            queue.take(&mut self.taken, events);
        }
    }
}

impl<M> Messages<M> {
    /// Delivers what was gathered, and wakes those who sleep.
    pub fn flush(&mut self) {
        for (outgoing, mailbox) in self.outgoing.iter_mut().zip(&self.mailboxes) {
            if !outgoing.is_empty() {
                mailbox.inbox.from_shards[self.shard.0 as usize].append(outgoing);
                mailbox.inbox.doorbell.ring();
            }
        }
    }
}

impl<M> Drop for Messages<M> {
    fn drop(&mut self) {
        self.flush();
        let own = &self.mailboxes[self.shard.0 as usize].inbox;
        own.from_others.close();
        own.from_shards.iter().for_each(Queue::close);
    }
}
