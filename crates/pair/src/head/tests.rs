//! A head is told what happens, step by step, and says what it wants. Runs with everything that goes wrong are in `pairsim`.

use base::{HeadId, Nanos};

use super::*;
use crate::relation::CommitRule;
use crate::{Maintenance, Revision};

const A: HeadId = HeadId(1);
const B: HeadId = HeadId(2);

fn ms(time: u64) -> Nanos {
    Nanos::from_millis(time)
}

/// Owner A in term 5, B in sync.
fn in_sync() -> Register {
    Register::first(A, B, Term(5)).joined()
}

/// A head and what it wanted since it was asked last.
struct Bench {
    head: Head,
    out: Vec<Action>,
}

impl Bench {
    fn new(me: HeadId, reads: Reads) -> Bench {
        Bench { head: Head::new(me, Timing::default(), reads, ms(0)), out: Vec::new() }
    }

    /// A partner that has learned this at 10 ms.
    fn partner(register: Register) -> Bench {
        let mut bench = Bench::new(register.partner, Reads::Leased);
        bench.tick(0);
        bench.register(10, register);
        bench.take();
        bench
    }

    /// An owner of term 6 that started at 0, alone, and serves from 600 ms on.
    fn owner(reads: Reads) -> Bench {
        let mut bench = Bench::new(A, reads);
        bench.tick(0);
        bench.register(1, in_sync());
        bench.register(2, in_sync().restarted());
        bench.store(3, StoreEvent::Recovered { term: Term(6) });
        bench.tick(600);
        bench.take();
        bench
    }

    /// The same with its partner in sync since 700 ms.
    fn owner_in_sync(reads: Reads) -> Bench {
        let mut bench = Bench::owner(reads);
        bench.answer(610, 600);
        bench.store(620, StoreEvent::NearlyCopied);
        bench.store(630, StoreEvent::Covered);
        bench.register(700, in_sync().restarted().joined());
        bench.tick(700);
        bench.answer(701, 700);
        bench.take();
        bench
    }

    fn tick(&mut self, at: u64) {
        self.head.on_tick(ms(at), None, &mut self.out);
    }

    fn register(&mut self, at: u64, content: Register) {
        self.head.on_register(ms(at), content, &mut self.out);
    }

    fn heartbeat(&mut self, at: u64, register: Register) {
        self.head.on_message(ms(at), Message::Heartbeat { register, sent: ms(at) }, &mut self.out);
    }

    /// The partner's answer to the heartbeat sent at `sent`.
    fn answer(&mut self, at: u64, sent: u64) {
        let term = self.head.owned_term().expect("it is the owner");
        self.head.on_message(ms(at), Message::HeartbeatAnswer { term, sent: ms(sent) }, &mut self.out);
    }

    fn store(&mut self, at: u64, event: StoreEvent) {
        self.head.on_store(ms(at), event, &mut self.out);
    }

    fn gives_back(&mut self, at: u64) -> bool {
        self.head.give_back(ms(at), &mut self.out)
    }

    /// What it wanted, without notes and heartbeats.
    fn take(&mut self) -> Vec<Action> {
        let is_heartbeat = |action: &Action| matches!(action, Action::Send(Message::Heartbeat { .. }));
        let mut wanted = std::mem::take(&mut self.out);
        wanted.retain(|action| !is_heartbeat(action) && !matches!(action, Action::Note(_)));
        wanted
    }

    fn answers_heartbeats(&mut self, at: u64, register: Register) -> bool {
        self.take();
        self.heartbeat(at, register);
        self.take().iter().any(|action| matches!(action, Action::Send(Message::HeartbeatAnswer { .. })))
    }
}

fn swap(from: Register, new: Register) -> Action {
    Action::Ask(Question::CompareAndSet { expected: from.revision, new })
}

#[test]
fn a_head_that_boots_answers_nothing_and_asks_until_the_register_answers() {
    let mut head = Bench::new(B, Reads::Leased);
    head.tick(0);
    head.tick(199);
    assert_eq!(head.take(), [Action::Ask(Question::Read)]);
    head.heartbeat(150, in_sync());
    assert_eq!(head.take(), []);
    assert!(!head.head.accepts(Term(5)));
    head.tick(200);
    assert_eq!(head.take(), [Action::Ask(Question::Read)]);
}

#[test]
fn an_owner_that_starts_again_takes_a_new_term_alone_and_waits_for_the_grace_time() {
    let mut head = Bench::new(A, Reads::Leased);
    head.tick(0);
    head.take();
    head.register(1, in_sync());
    assert_eq!(head.take(), [swap(in_sync(), in_sync().restarted())]);
    // not won: the partner was faster
    let mut loser = Bench::new(A, Reads::Leased);
    loser.register(1, in_sync());
    loser.register(2, in_sync().taken_over(B));
    assert_eq!(loser.head.role(), RoleName::Partner);
    head.register(2, in_sync().restarted());
    let recover = Action::Store(StoreOrder::Recover { term: Term(6) });
    assert_eq!(head.take(), [recover, Action::Store(StoreOrder::Commit(CommitRule::Own))]);
    assert!(!head.head.serves(ms(600)));
    head.store(3, StoreEvent::Recovered { term: Term(5) });
    assert!(!head.head.serves(ms(600)));
    head.store(3, StoreEvent::Recovered { term: Term(6) });
    assert!(!head.head.serves(ms(499)) && head.head.serves(ms(500)));
    assert_eq!(head.head.may_read(ms(500), ms(500)), ReadPermit::Yes);
}

#[test]
fn a_partner_in_sync_takes_over_after_the_grace_time_and_answers_nothing_meanwhile() {
    let mut head = Bench::partner(in_sync());
    assert!(head.answers_heartbeats(100, in_sync()));
    assert!(head.head.accepts(Term(5)) && !head.head.accepts(Term(4)));
    head.tick(599);
    head.take();
    head.tick(801);
    assert_eq!(head.take(), [swap(in_sync(), in_sync().taken_over(B))]);
    assert!(!head.answers_heartbeats(802, in_sync()) && !head.head.accepts(Term(5)));
    // the same revision says nothing of what is on its way
    head.register(803, in_sync());
    assert!(!head.answers_heartbeats(804, in_sync()));
    head.tick(1002);
    assert_eq!(head.take(), [swap(in_sync(), in_sync().taken_over(B))]);
    head.register(1003, in_sync().taken_over(B));
    assert_eq!(head.head.owned_term(), Some(Term(6)));
    head.store(1010, StoreEvent::Recovered { term: Term(6) });
    assert!(head.head.serves(ms(1010)));
}

#[test]
fn a_partner_out_of_sync_never_takes_over() {
    let mut head = Bench::partner(in_sync().left());
    for at in (100..5000).step_by(100) {
        head.tick(at);
    }
    assert!(head.take().iter().all(|action| *action == Action::Ask(Question::Read)));
}

#[test]
fn a_partner_does_not_take_over_during_maintenance_and_says_so_once() {
    let since = Some(Maintenance { since_ms: 9 });
    let kept = in_sync().with_maintenance(since, A);
    let mut head = Bench::partner(kept);
    let mut held_back = 0;
    for at in (500..5000).step_by(10) {
        head.tick(at);
        let is_held_back = |action: &&Action| **action == Action::Note(Decision::HeldBack);
        held_back += head.out.iter().filter(is_held_back).count();
        assert!(head.take().iter().all(|action| *action == Action::Ask(Question::Read)), "at {at} ms");
    }
    assert_eq!(held_back, 1);
    // it goes on answering the owner, if that comes back
    assert!(head.answers_heartbeats(5000, kept));
    head.tick(5600);
    head.take();
    // it is ended on this head, while the owner is silent
    let ended = kept.with_maintenance(None, B);
    head.register(6000, ended);
    head.tick(6200);
    assert_eq!(head.take(), [swap(ended, ended.taken_over(B))]);
}

#[test]
fn maintenance_changes_nothing_for_an_owner() {
    let mut head = Bench::owner_in_sync(Reads::Leased);
    let known = *head.head.register().expect("it has heard of it");
    let kept = known.with_maintenance(Some(Maintenance { since_ms: 9 }), B);
    head.register(710, kept);
    assert_eq!(head.take(), []);
    assert_eq!((head.head.relation(), head.head.serves(ms(711))), (Some(Relation::InSync), true));
    // it still goes on alone, and may hand over on request
    head.answer(712, 711);
    assert_eq!(head.head.hand_over(ms(713), &mut head.out), Ok(()));
    let mut alone = Bench::owner_in_sync(Reads::Leased);
    alone.register(710, kept);
    for at in (720..1300).step_by(10) {
        alone.tick(at);
    }
    assert!(alone.take().contains(&swap(kept, kept.left())));
}

#[test]
fn a_takeover_that_the_register_does_not_answer_is_withdrawn_and_may_still_win() {
    let mut head = Bench::partner(in_sync());
    head.tick(600);
    assert!(!head.answers_heartbeats(1600, in_sync()));
    head.tick(1601);
    assert!(head.answers_heartbeats(1700, in_sync()) && head.head.accepts(Term(5)));
    head.tick(2101);
    assert_eq!(head.take(), [Action::Ask(Question::Read)]);
    // it wins late: the lease that was given at 1700 ms comes first
    head.register(2150, in_sync().taken_over(B));
    head.store(2160, StoreEvent::Recovered { term: Term(6) });
    assert!(!head.head.serves(ms(2199)) && head.head.serves(ms(2200)));
}

#[test]
fn a_lease_begins_when_the_heartbeat_is_sent() {
    let mut head = Bench::owner_in_sync(Reads::Leased);
    assert_eq!(head.head.may_read(ms(1049), ms(1049)), ReadPermit::Yes);
    assert_eq!(head.head.may_read(ms(1050), ms(1050)), ReadPermit::No);
    head.answer(1060, 1050);
    assert_eq!(head.head.may_read(ms(1399), ms(1399)), ReadPermit::Yes);
    // nobody is asked where nobody can take over
    let alone = Bench::owner(Reads::Leased);
    assert_eq!(alone.head.may_read(ms(9000), ms(9000)), ReadPermit::Yes);
}

#[test]
fn a_read_is_confirmed_by_a_heartbeat_that_was_sent_after_it_came() {
    let mut head = Bench::owner_in_sync(Reads::Confirmed);
    assert_eq!(head.head.may_read(ms(720), ms(710)), ReadPermit::AfterHeartbeat);
    head.head.confirm_reads(ms(720), &mut head.out);
    assert!(matches!(head.out[..], [Action::Send(Message::Heartbeat { .. })]));
    head.answer(725, 709);
    assert_eq!(head.head.may_read(ms(726), ms(710)), ReadPermit::AfterHeartbeat);
    head.answer(727, 720);
    assert_eq!(head.head.may_read(ms(728), ms(710)), ReadPermit::Yes);
}

#[test]
fn an_owner_goes_on_alone_only_when_the_register_has_said_so() {
    let mut head = Bench::owner_in_sync(Reads::Leased);
    let known = in_sync().restarted().joined();
    head.tick(1100);
    assert_eq!(head.head.relation(), Some(Relation::InSync));
    head.take();
    head.tick(1101);
    assert_eq!(head.take(), [swap(known, known.left())]);
    // neither an old answer nor a partner that answers again settles it
    head.register(1110, known);
    head.answer(1120, 1101);
    assert_eq!(head.head.relation(), Some(Relation::Leaving));
    head.register(1130, known.left());
    let orders = [StoreOrder::StopCopying, StoreOrder::Commit(CommitRule::Own)];
    assert_eq!(head.take(), orders.map(Action::Store));
}

#[test]
fn a_write_that_waits_for_the_partner_for_long_makes_the_owner_leave() {
    let mut head = Bench::owner_in_sync(Reads::Leased);
    head.answer(1000, 999);
    head.head.on_tick(ms(1001), Some(ms(752)), &mut head.out);
    assert_eq!(head.head.relation(), Some(Relation::InSync));
    head.head.on_tick(ms(1003), Some(ms(752)), &mut head.out);
    assert_eq!(head.head.relation(), Some(Relation::Leaving));
}

#[test]
fn a_partner_that_returns_is_copied_to_then_waited_for_then_joined() {
    let mut head = Bench::owner(Reads::Leased);
    let known = in_sync().restarted();
    head.answer(610, 600);
    assert_eq!(head.take(), [Action::Store(StoreOrder::Copy)]);
    head.store(700, StoreEvent::NearlyCopied);
    assert_eq!(head.take(), [Action::Store(StoreOrder::Commit(CommitRule::Both))]);
    head.store(710, StoreEvent::Covered);
    assert_eq!(head.take(), [swap(known, known.joined())]);
    assert_eq!(head.head.may_read(ms(5000), ms(5000)), ReadPermit::No, "the swap may have won");
    // silence now needs the register, too
    head.tick(1200);
    assert_eq!(head.take(), [swap(known, known.left())]);
    head.register(1210, known.joined());
    assert_eq!(head.take(), [Action::Store(StoreOrder::Joined)]);
    assert_eq!(head.head.relation(), Some(Relation::InSync));
}

#[test]
fn a_join_whose_swap_was_not_sent_is_given_up_without_the_register() {
    let mut head = Bench::owner(Reads::Leased);
    head.answer(610, 600);
    head.store(700, StoreEvent::NearlyCopied);
    head.take();
    head.tick(1200);
    let orders = [StoreOrder::StopCopying, StoreOrder::Commit(CommitRule::Own)].map(Action::Store);
    assert_eq!(head.take()[..2], orders);
    assert_eq!(head.head.relation(), Some(Relation::Alone));
}

#[test]
fn a_handover_is_refused_with_its_reason() {
    let mut out = Vec::new();
    let mut refusal = |head: &mut Bench, at: u64| head.head.hand_over(ms(at), &mut out);
    assert_eq!(refusal(&mut Bench::partner(in_sync()), 20), Err(HandoverRefusal::NotOwner));
    assert_eq!(refusal(&mut Bench::owner(Reads::Leased), 700), Err(HandoverRefusal::NotInSync));
    let mut head = Bench::owner_in_sync(Reads::Leased);
    assert_eq!(refusal(&mut head, 1050), Err(HandoverRefusal::PartnerSilent));
    head.answer(1500, 1490);
    assert_eq!(refusal(&mut head, 1500), Err(HandoverRefusal::RegisterSilent));
    head.register(1510, in_sync().restarted().joined());
    assert_eq!(refusal(&mut head, 1520), Ok(()));
    assert_eq!(refusal(&mut head, 1521), Err(HandoverRefusal::NotServing));
}

#[test]
fn a_handover_drains_swaps_and_ends_with_the_next_term() {
    let mut head = Bench::owner_in_sync(Reads::Leased);
    let known = in_sync().restarted().joined();
    assert_eq!(head.head.hand_over(ms(710), &mut head.out), Ok(()));
    assert_eq!(head.take(), [Action::Store(StoreOrder::Drain)]);
    assert!(!head.head.serves(ms(711)) && head.head.may_acknowledge(ms(711)));
    head.store(720, StoreEvent::Drained);
    assert_eq!(head.take(), [swap(known, known.handed_over()), Action::Send(Message::Look)]);
    head.register(730, known.handed_over());
    assert_eq!(head.take(), [Action::Store(StoreOrder::Demote)]);
    assert_eq!(head.head.role(), RoleName::Partner);
}

#[test]
fn a_handover_whose_outcome_stays_unknown_is_given_up_and_settled_later() {
    let mut head = Bench::owner_in_sync(Reads::Leased);
    let known = in_sync().restarted().joined();
    assert_eq!(head.head.hand_over(ms(710), &mut head.out), Ok(()));
    head.store(720, StoreEvent::Drained);
    for at in (750..1300).step_by(50) {
        head.tick(at);
        head.answer(at + 1, at);
    }
    assert!(head.head.serves(ms(1230)));
    head.take();
    head.tick(1600);
    // a swap that is still on its way loses against this one
    assert_eq!(head.take(), [swap(known, known.confirmed())]);
}

#[test]
fn the_new_owner_after_a_handover_serves_when_its_partner_holds_all() {
    let mut head = Bench::partner(in_sync());
    assert!(head.answers_heartbeats(100, in_sync()));
    let handed = in_sync().handed_over();
    head.register(110, handed);
    let recover = Action::Store(StoreOrder::Recover { term: Term(6) });
    assert_eq!(head.take(), [recover, Action::Store(StoreOrder::Commit(CommitRule::Both))]);
    head.store(120, StoreEvent::Recovered { term: Term(6) });
    assert!(!head.head.serves(ms(9000)));
    head.store(130, StoreEvent::Covered);
    assert!(head.head.serves(ms(130)));
    assert_eq!(head.take(), [Action::Store(StoreOrder::Joined)]);
    assert_eq!(head.head.may_read(ms(130), ms(130)), ReadPermit::No, "no heartbeat was answered yet");
}

#[test]
fn an_owner_of_an_earlier_term_is_corrected_and_becomes_the_partner() {
    let taken = in_sync().taken_over(B);
    let mut old = Bench::owner_in_sync(Reads::Leased);
    let newer = Register { revision: Revision(50), ..taken };
    old.head.on_message(ms(800), Message::Changed(Register { term: Term(7), ..newer }), &mut old.out);
    assert_eq!(old.take(), [Action::Store(StoreOrder::Demote)]);
    assert_eq!(old.head.role(), RoleName::Partner);
    let mut partner = Bench::partner(in_sync());
    partner.heartbeat(20, Register { term: Term(4), ..in_sync() });
    assert_eq!(partner.take(), [Action::Send(Message::Changed(in_sync()))]);
}

#[test]
fn a_forwarded_command_is_fresh_in_its_term_for_a_while() {
    let head = Bench::owner_in_sync(Reads::Leased);
    let stamp = |term, at| Stamp { term: Term(term), at: ms(at) };
    assert!(head.head.is_fresh(ms(1049), stamp(6, 700)) && !head.head.is_fresh(ms(1050), stamp(6, 700)));
    assert!(!head.head.is_fresh(ms(710), stamp(5, 700)), "of an earlier start of the owner");
    assert!(!head.head.is_fresh(ms(710), stamp(6, 711)), "of another clock");
    let mut partner = Bench::partner(in_sync());
    assert_eq!(partner.head.stamp(), None);
    partner.heartbeat(100, in_sync());
    assert_eq!(partner.head.stamp(), Some(stamp(5, 100)));
    partner.heartbeat(200, in_sync().restarted());
    assert_eq!(partner.head.stamp(), Some(stamp(6, 200)));
}

#[test]
fn a_head_that_the_register_does_not_name_does_nothing() {
    let mut head = Bench::owner_in_sync(Reads::Leased);
    let others = Register { revision: Revision(50), owner: B, partner: HeadId(3), ..in_sync() };
    head.register(800, others);
    assert_eq!((head.head.role(), head.take()), (RoleName::Outside, vec![Action::Store(StoreOrder::Demote)]));
    head.heartbeat(900, others);
    assert_eq!(head.take(), []);
    head.tick(5000);
    assert_eq!(head.take(), [Action::Ask(Question::Read)]);
    // it is named again
    head.register(5001, Register { revision: Revision(51), partner: A, ..others });
    assert_eq!(head.head.role(), RoleName::Partner);
}

#[test]
fn a_head_that_has_taken_over_without_its_copy_gives_the_array_back() {
    let mut bench = Bench::partner(in_sync());
    assert!(!bench.gives_back(20), "it is not the owner");
    bench.tick(600);
    let taken = in_sync().taken_over(B);
    bench.register(610, taken);
    assert!(!bench.gives_back(620), "the other head may be dead");
    bench.answer(640, 620);
    bench.take();
    assert!(bench.gives_back(650));
    let back = taken.given_back();
    assert_eq!((back.owner, back.term, back.in_sync), (A, Term(7), false));
    assert_eq!(bench.take(), [swap(taken, back)]);
    // the copy has come meanwhile, but the swap may have won
    bench.store(700, StoreEvent::Recovered { term: Term(6) });
    bench.tick(2_000);
    assert!(!bench.head.serves(ms(2_000)) && bench.head.answers_until(ms(2_000)).is_none());
    assert!(bench.take().contains(&swap(taken, back)), "asked again");
    bench.register(2_010, back);
    assert_eq!(bench.head.role(), RoleName::Partner);
    assert!(bench.take().contains(&Action::Store(StoreOrder::Demote)));
}

#[test]
fn a_head_that_has_given_back_serves_when_the_swap_has_lost() {
    let mut bench = Bench::partner(in_sync());
    bench.tick(600);
    let taken = in_sync().taken_over(B);
    bench.register(610, taken);
    bench.answer(640, 620);
    assert!(bench.gives_back(650));
    bench.store(700, StoreEvent::Recovered { term: Term(6) });
    bench.register(2_000, taken.confirmed());
    assert!(bench.head.serves(ms(2_000)));
    assert!(!bench.gives_back(2_010), "it may have answered");
}

#[test]
fn only_a_head_that_the_other_one_was_before_gives_back() {
    // an owner that starts again may have acknowledged what the other one lacks
    let mut bench = Bench::new(A, Reads::Leased);
    bench.tick(0);
    bench.register(1, in_sync());
    bench.register(2, in_sync().restarted());
    bench.answer(20, 10);
    assert!(!bench.gives_back(30));
    // one that got the array back has acknowledged nothing, and neither had the other
    let mut bench = Bench::partner(Register::first(B, A, Term(5)));
    let back = Register::first(B, A, Term(5)).given_back();
    bench.register(20, back);
    assert!(bench.out.contains(&Action::Note(Decision::GotBack)));
    bench.answer(40, 30);
    assert!(bench.gives_back(50));
}
