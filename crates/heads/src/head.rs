//! A head as it runs: `pair::Head` with its connections, the partner's drives while another head owns, and the array while this one does.
//!
//! ```text
//!   other head ◄── connection for control ──► RunningHead ──► Surroundings: the register, the array's shards
//!                                                 │ ▲ HeadMail: what they answer
//!                                                 └──► Permit, which all shards read
//! ```
//!
//! What always holds: the permit is withdrawn before anything is asked for that would make it untrue; the array starts on drives that
//! nobody else writes to any more.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;

use base::{Nanos, ShardId};
use env::DriveHandle;
use pair::{
    Action, CommitRule, Decision, HandoverRefusal, Head, LinkError, Message, Portal, Question, Reads,
    Register, Relation, RoleName, StoreEvent, StoreOrder, Term, Timing,
};
use task::{Io, race};

use crate::center::Report;
use crate::control;
use crate::dial::PartnerAddress;
use crate::forward::Heard;
use crate::own_copy::OwnCopy;
use crate::partner::Partner;
use crate::permit::Permit;
use crate::trouble::LinkTrouble;
use crate::watch::Watch;
use crate::wire::{Identity, Wire, WireEnd};

/// How often the head looks what time it is.
const TICK: Nanos = Nanos::from_millis(10);
/// A connection for control over which nothing has come for so long is given up: after a network was away, TCP may try again only
/// after as long as that took.
const SILENCE: Nanos = Nanos::from_millis(1_500);

/// What a head is told by the threads around it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HeadMail {
    /// By shard 0 of its array.
    Report(Report),
    /// The array of this term has started: it has all its drives.
    Started(Term),
    /// The array of this term could not be started: the process ends.
    Failed(Term),
    /// The array of this term waits for its pools.
    Waits(Term),
    /// The array has been stopped in order.
    Stopped,
    /// This shard of the array takes its turns.
    Answered(ShardId),
    /// The register has answered a question of this start.
    Register(Register),
    /// The partner has said which portals it has.
    Portals(Vec<Portal>),
}

/// For shard 0 of the array that was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ToArray {
    Order(StoreOrder),
    /// Say since when the oldest request waits for the partner.
    Wait,
}

/// What a head acts on outside of its process's shards.
pub trait Surroundings {
    /// Ask the register; the answer comes as [`HeadMail::Register`].
    fn ask(&self, question: Question);
    /// Start the array on this head's drives, in this term; then say [`HeadMail::Started`], or [`HeadMail::Failed`]. As long as its pools
    /// are not there: [`HeadMail::Waits`].
    fn start_array(&self, term: Term, rule: CommitRule);
    /// Stop the array that was started in order: end hosts' commands, write checkpoints, close the drives. Then say [`HeadMail::Stopped`].
    fn stop_array(&self);
    /// This head owns nothing any more: the whole process ends, with everything that is under way in it.
    fn end(&self);
    /// Another head owns the array: what this one has kept of the catalog is old. It must not be used by a later start either.
    fn forget_catalog(&self);
    /// For logs and counts.
    fn note(&self, decision: Decision);
    /// Why [`Surroundings::end`] is called, if this head has not lost its term.
    fn note_ending(&self, _why: Ending) {}
    /// These are the partner's portals: the array is to listen there, too ([`env::Operation::ListenForwarded`]).
    fn show_portals(&self, _portals: Vec<Portal>) {}
    /// How the head is has changed.
    fn show(&self, _view: HeadView) {}
    /// What a drive holds, in words; `None`: nothing. `has_record`: it is a twin already, so its record does not count. Without a way to
    /// tell, each holds something.
    fn what_it_holds<'a>(&'a self, _io: &'a Io, _drive: DriveHandle, _has_record: bool) -> Contents<'a> {
        Box::pin(std::future::ready(Some("something unknown".to_owned())))
    }
}

/// An answer of [`Surroundings::what_it_holds`].
pub type Contents<'a> = Pin<Box<dyn Future<Output = Option<String>> + 'a>>;

/// How a head is, for administrators.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeadView {
    pub role: RoleName,
    /// The newest content of the register that this head has heard of.
    pub register: Option<Register>,
    /// How it stands to its partner, if it is the owner.
    pub relation: Option<Relation>,
    /// The connection for control is up.
    pub hears_the_other: bool,
    /// What has ended the newest connection with the other head, if none has come up since.
    pub link_trouble: Option<LinkError>,
    /// What the array says may be told: no other head owns it.
    pub answers: bool,
    /// Drives that both heads are to see, and the partner does not; known to the owner.
    pub unseen_drives: usize,
}

/// Why an owner ends its process by itself: the other head, or the next start, does better.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    ArrayDidNotStart,
    /// What an earlier owner had sent is still under way on this head's drives.
    DrivesNotHandedBack,
    /// An owner of a later term has a drive that both heads see.
    DrivesLost,
    ShardHangs(ShardId),
}

/// How long an owner waits before it ends its process.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For the drives: until what an earlier owner has sent has ended.
    pub hand_back: Nanos,
    /// For a shard of the array to answer.
    pub shard: Nanos,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { hand_back: Nanos::from_secs(10), shard: Nanos::from_secs(5) }
    }
}

pub struct HeadOptions {
    pub identity: Identity,
    /// Where this head listens for the other one.
    pub addresses: Vec<SocketAddr>,
    pub partner: PartnerAddress,
    pub timing: Timing,
    pub reads: Reads,
    /// Paths of the drives that are twins.
    pub drives: Vec<String>,
    /// For the threads that forward.
    pub heard: Heard,
}

/// See the header of this file.
pub struct RunningHead {
    io: Io,
    options: HeadOptions,
    head: RefCell<Head>,
    partner: Rc<Partner>,
    permit: Permit,
    control: RefCell<Option<Rc<Wire>>>,
    /// When something has come over it.
    heard: Cell<Nanos>,
    surroundings: Box<dyn Surroundings>,
    /// For shard 0 of the array, once that was asked to start, in this order.
    for_array: RefCell<VecDeque<ToArray>>,
    is_array_started: Cell<bool>,
    shown: RefCell<Option<HeadView>>,
    oldest_wait: Cell<Option<Nanos>>,
    unseen_drives: Cell<usize>,
    asked_for_wait: Cell<bool>,
    /// Shards of the array.
    shards: u16,
    watch: RefCell<Watch>,
    patience: Cell<Patience>,
    own_copy: OwnCopy,
    trouble: LinkTrouble,
    has_ended: Cell<bool>,
}

impl RunningHead {
    /// A head that has just started.
    pub(crate) fn start(
        io: &Io,
        options: HeadOptions,
        shards: u16,
        permit: Permit,
        surroundings: Box<dyn Surroundings>,
    ) -> Rc<RunningHead> {
        let head = Head::new(options.identity.me, options.timing, options.reads, io.uptime());
        let running = Rc::new(RunningHead {
            io: io.clone(),
            head: RefCell::new(head),
            partner: Partner::new(io, options.drives.clone()),
            permit,
            control: RefCell::default(),
            heard: Cell::default(),
            surroundings,
            for_array: RefCell::default(),
            is_array_started: Cell::default(),
            shown: RefCell::default(),
            oldest_wait: Cell::default(),
            unseen_drives: Cell::default(),
            asked_for_wait: Cell::default(),
            shards,
            watch: RefCell::default(),
            patience: Cell::default(),
            own_copy: OwnCopy::default(),
            trouble: LinkTrouble::default(),
            has_ended: Cell::default(),
            options,
        });
        for address in &running.options.addresses {
            let head = running.clone();
            let take = move |connection| head.io.spawn(control::take(head.clone(), connection));
            io.spawn(control::keep_listening(io.clone(), *address, take));
        }
        if running.options.identity.me < running.options.identity.other {
            io.spawn(control::keep_dialing(running.clone()));
        }
        io.spawn(running.clone().keep_ticking());
        running
    }

    pub(crate) fn io(&self) -> &Io {
        &self.io
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.options.identity
    }

    pub(crate) fn partner_address(&self) -> &PartnerAddress {
        &self.options.partner
    }

    pub(crate) fn partner(&self) -> &Rc<Partner> {
        &self.partner
    }

    pub(crate) fn own_copy(&self) -> &OwnCopy {
        &self.own_copy
    }

    pub(crate) fn owned_term(&self) -> Option<Term> {
        self.head.borrow().owned_term()
    }

    pub(crate) fn surroundings(&self) -> &dyn Surroundings {
        &*self.surroundings
    }

    /// Runs something on the head's thread.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.io.spawn(task);
    }

    /// From now on these are the drives of this head.
    pub fn set_drives(&self, paths: Vec<String>) {
        self.partner.set_paths(paths);
    }

    fn show(&self) {
        let view = HeadView {
            role: self.role(),
            register: self.head.borrow().register().copied(),
            relation: self.relation(),
            hears_the_other: self.control.borrow().is_some(),
            link_trouble: self.link_trouble(),
            answers: self.permit.allows(self.io.uptime()),
            unseen_drives: self.unseen_drives.get(),
        };
        if self.shown.borrow().as_ref() != Some(&view) {
            *self.shown.borrow_mut() = Some(view.clone());
            self.surroundings.show(view);
        }
    }

    /// What has ended the newest connection with the other head, if none has come up since.
    pub fn link_trouble(&self) -> Option<LinkError> {
        self.trouble.newest()
    }

    pub fn role(&self) -> RoleName {
        self.head.borrow().role()
    }

    /// How this head stands to its partner, if it is the owner.
    pub fn relation(&self) -> Option<Relation> {
        self.head.borrow().relation()
    }

    /// In place of the default.
    pub fn set_patience(&self, patience: Patience) {
        self.patience.set(patience);
    }

    /// Begins to hand the array over to the other head. When it has been, or if that is given up, this process ends: what it had in
    /// memory has been stopped.
    pub fn hand_over(self: &Rc<Self>) -> Result<(), HandoverRefusal> {
        let mut result = Ok(());
        self.step(|head, now, out| result = head.hand_over(now, out));
        result
    }

    async fn keep_ticking(self: Rc<Self>) {
        while !self.has_ended.get() {
            let wait = self.oldest_wait.get();
            self.step(|head, now, out| head.on_tick(now, wait, out));
            self.look_at_own_copy();
            self.give_up_a_silent_connection();
            self.show();
            let hangs = self.watch.borrow_mut().look(self.io.now(), self.patience.get().shard);
            if let Some(shard) = hangs {
                self.end(Ending::ShardHangs(shard));
            }
            if self.is_array_started.get() && !self.asked_for_wait.replace(true) {
                self.tell_array(ToArray::Wait);
            }
            self.io.sleep(TICK).await;
        }
    }

    fn give_up_a_silent_connection(&self) {
        let control = self.control.borrow().clone();
        if let Some(wire) = control.filter(|_| self.io.now().saturating_sub(self.heard.get()) > SILENCE) {
            wire.close();
        }
    }

    fn tell_array(&self, what: ToArray) {
        self.for_array.borrow_mut().push_back(what);
    }

    /// What shard 0 of the array is to be told next.
    pub(crate) fn next_for_array(&self) -> Option<ToArray> {
        self.for_array.borrow().front().copied().filter(|_| self.is_array_started.get())
    }

    /// It has been told.
    pub(crate) fn told_array(&self) {
        self.for_array.borrow_mut().pop_front();
    }

    /// Which shard of the array is to be asked whether it takes its turns.
    pub(crate) fn next_to_ask(&self) -> Option<ShardId> {
        self.watch.borrow().next()
    }

    pub(crate) fn asked(&self, shard: ShardId) {
        self.watch.borrow_mut().asked(shard);
    }

    /// The process ends, although this head has not lost its term. Nothing is answered any more.
    pub(crate) fn end(&self, why: Ending) {
        if !self.has_ended.replace(true) {
            self.permit.set(None);
            self.surroundings.note_ending(why);
            self.surroundings.end();
        }
    }

    pub(crate) fn on_mail(self: &Rc<Self>, mail: HeadMail) {
        match mail {
            HeadMail::Register(content) => self.step(|head, now, out| head.on_register(now, content, out)),
            HeadMail::Started(term) => {
                self.set_waits(term, false);
                self.on_store(StoreEvent::Recovered { term });
            }
            HeadMail::Portals(portals) => self.surroundings.show_portals(portals),
            HeadMail::Failed(term) => self.on_failed(term),
            HeadMail::Waits(term) => self.set_waits(term, true),
            HeadMail::Answered(shard) => self.watch.borrow_mut().on_answer(shard),
            HeadMail::Stopped => self.on_store(StoreEvent::Drained),
            HeadMail::Report(Report::Store(event)) => self.on_store(event),
            HeadMail::Report(Report::PartnerIsUnfit) => {
                self.step(|head, now, out| head.on_partner_unfit(now, out));
            }
            HeadMail::Report(Report::UnseenDrives(count)) => self.unseen_drives.set(count),
            HeadMail::Report(Report::OldestWait(since)) => {
                self.asked_for_wait.set(false);
                self.oldest_wait.set(since);
            }
            // whether the partner is there is for the connection for control to know; writes that wait count by themselves
            HeadMail::Report(Report::Opened) => self.trouble.drives_are_up(),
            HeadMail::Report(Report::ConnectionEnded(end)) => self.trouble.on_drives_ended(end),
            HeadMail::Report(Report::DrivesLost) => self.end(Ending::DrivesLost),
            HeadMail::Report(Report::Refused { .. }) => {}
        }
    }

    fn on_store(self: &Rc<Self>, event: StoreEvent) {
        self.step(|head, now, out| head.on_store(now, event, out));
    }

    /// A connection for control is up: it takes the place of an earlier one.
    pub(crate) fn begin_control(&self, wire: &Rc<Wire>) {
        self.heard.set(self.io.now());
        self.trouble.control_is_up();
        if let Some(earlier) = self.control.borrow_mut().replace(wire.clone()) {
            earlier.close();
        }
    }

    /// `was_up`: it was one with the other head.
    pub(crate) fn end_connection(&self, wire: &Rc<Wire>, end: WireEnd, was_up: bool) {
        if self.is_control(wire) {
            *self.control.borrow_mut() = None;
        }
        self.trouble.on_control_ended(end, was_up || self.control.borrow().is_none());
        self.partner.connection_ended(wire);
    }

    fn is_control(&self, wire: &Rc<Wire>) -> bool {
        self.control.borrow().as_ref().is_some_and(|control| Rc::ptr_eq(control, wire))
    }

    pub(crate) fn on_message(self: &Rc<Self>, wire: &Rc<Wire>, message: Message) {
        if self.is_control(wire) {
            self.heard.set(self.io.now());
            self.step(|head, now, out| head.on_message(now, message, out));
        }
    }

    /// Tells the head what has happened, and carries out what it decides.
    pub(crate) fn step(self: &Rc<Self>, happened: impl FnOnce(&mut Head, Nanos, &mut Vec<Action>)) {
        if self.has_ended.get() {
            return;
        }
        let (now, mut out) = (self.io.uptime(), Vec::new());
        happened(&mut self.head.borrow_mut(), now, &mut out);
        self.permit.set(self.head.borrow().answers_until(now));
        self.options.heard.set(self.head.borrow().stamp());
        self.forget_if_partner();
        let accepted = {
            let head = self.head.borrow();
            head.register().map(|register| register.term).filter(|&term| head.accepts(term))
        };
        self.partner.accept(accepted);
        for action in out {
            // of a head that has ended nothing follows, but what it has decided is noted
            if !self.has_ended.get() || matches!(action, Action::Note(_)) {
                self.obey(action);
            }
        }
    }

    fn obey(self: &Rc<Self>, action: Action) {
        match action {
            Action::Ask(question) => self.surroundings.ask(question),
            Action::Send(message) => {
                if let Some(wire) = &*self.control.borrow() {
                    wire.send_message(&message);
                }
            }
            Action::Store(StoreOrder::Recover { term }) => {
                self.io.spawn(self.clone().own(term));
            }
            Action::Store(StoreOrder::Drain) => {
                self.watch.borrow_mut().end();
                self.surroundings.stop_array();
            }
            Action::Store(StoreOrder::EndDrain | StoreOrder::Demote) => {
                self.has_ended.set(true);
                self.surroundings.end();
            }
            Action::Store(order) => self.tell_array(ToArray::Order(order)),
            Action::Note(decision) => self.surroundings.note(decision),
        }
    }

    /// Starts the array, when nobody writes to its drives any more.
    async fn own(self: Rc<Self>, term: Term) {
        let limit = self.io.sleep(self.patience.get().hand_back);
        if race(self.partner.hand_back(), limit).await.is_err() {
            self.end(Ending::DrivesNotHandedBack);
        }
        if self.has_ended.get() {
            return;
        }
        let rule = self.for_array.borrow().iter().rev().find_map(|what| match what {
            ToArray::Order(StoreOrder::Commit(rule)) => Some(*rule),
            _ => None,
        });
        self.surroundings.start_array(term, rule.expect("an owner begins with a rule"));
        self.is_array_started.set(true);
        self.watch.borrow_mut().begin(self.shards, self.io.now());
    }
}
