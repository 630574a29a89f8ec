//! The rules of reservations: the state after each request, who is notified, and what survives a restart.

use proptest::prelude::*;

use super::*;
use crate::Notice as U;
use ReservationRequest as R;

/// Nexuses of a few initiators; the fifth is an NVMe host.
fn nexus(number: u8) -> Registrant {
    if number == 5 {
        return Registrant::NvmeHost([7; 16]);
    }
    Registrant::nexus(format!("iqn.test:h{},i,0x{:012x}", number / 2, number % 2), 1)
}

/// The ports of an initiator that are logged in, where `ports` are.
fn of_initiator(ports: &[&str]) -> impl Fn(&str) -> Vec<String> {
    let ports: Vec<String> = ports.iter().map(|&port| port.to_owned()).collect();
    move |initiator: &str| {
        let of = |port: &&String| port.split(",i,").next() == Some(initiator);
        ports.iter().filter(of).cloned().collect()
    }
}

fn register(new_key: u64) -> R {
    R::Register { key: None, new_key, names: Names::default(), persist: false }
}

struct Unit(Reservations);

impl Unit {
    /// Nexuses 1, 2, 3 are registered with keys 1, 2, 3.
    fn with_three() -> Unit {
        let mut unit = Unit(Reservations::default());
        for number in 1..=3 {
            unit.apply(number, register(u64::from(number)));
        }
        unit
    }

    fn held(kind: ReservationType, holder: u8) -> Unit {
        let mut unit = Unit::with_three();
        unit.apply(holder, R::Reserve { key: u64::from(holder), kind });
        unit
    }

    /// Whom it tells what, by their numbers.
    fn apply(&mut self, by: u8, request: R) -> Vec<(u8, U)> {
        let applied = self.0.apply(&nexus(by), &request, &of_initiator(&[])).unwrap();
        self.0 = applied.next;
        let number = |name: &Registrant| (0..9).find(|&number| nexus(number) == *name).unwrap();
        applied.notices.iter().map(|(name, notice)| (number(name), *notice)).collect()
    }

    fn refuses(&self, by: u8, request: R) -> bool {
        self.0.apply(&nexus(by), &request, &of_initiator(&[])).is_err()
    }

    fn keys(&self) -> Vec<u64> {
        self.0.registrations.iter().map(|one| one.key).collect()
    }

    fn holder(&self) -> Option<(u64, ReservationType)> {
        self.0.held_key()
    }
}

use ReservationType::*;

#[test]
fn a_release_tells_registrants_that_it_let_in() {
    for kind in ReservationType::ALL {
        let mut unit = Unit::held(kind, 1);
        let told = unit.apply(1, R::Release { key: 1, kind });
        let expected: &[(u8, U)] = match kind {
            WriteExclusive | ExclusiveAccess => &[],
            _ => &[(2, U::ReservationsReleased), (3, U::ReservationsReleased)],
        };
        assert_eq!(told, expected, "{kind:?}");
        assert_eq!((unit.holder(), unit.keys()), (None, vec![1, 2, 3]));
    }
}

#[test]
fn a_release_by_another_registrant_does_nothing() {
    let mut unit = Unit::held(WriteExclusive, 1);
    unit.apply(2, R::Release { key: 2, kind: WriteExclusive });
    assert_eq!(unit.holder(), Some((1, WriteExclusive)));
}

#[test]
fn a_reservation_ends_with_its_holders_registration() {
    for kind in ReservationType::ALL {
        let mut unit = Unit::held(kind, 1);
        let told = unit.apply(1, register(0));
        match kind {
            WriteExclusive | ExclusiveAccess => assert_eq!((told, unit.holder()), (vec![], None)),
            WriteExclusiveRegistrantsOnly | ExclusiveAccessRegistrantsOnly => {
                assert_eq!(told, [(2, U::ReservationsReleased), (3, U::ReservationsReleased)]);
                assert_eq!(unit.holder(), None);
            }
            WriteExclusiveAllRegistrants | ExclusiveAccessAllRegistrants => {
                assert_eq!((told, unit.holder()), (vec![], Some((0, kind))));
                unit.apply(2, register(0));
                unit.apply(3, register(0));
                assert_eq!(unit.holder(), None);
            }
        }
    }
}

#[test]
fn a_preempt_takes_the_reservation_over_or_registrations_away() {
    for kind in ReservationType::ALL {
        let all = all_hold(kind);
        // the holder's key
        let mut unit = Unit::held(kind, 1);
        let told = unit.apply(2, R::Preempt { key: 2, victim: 1, kind: ExclusiveAccess, abort: false });
        let mut expected = vec![(1, U::RegistrationsPreempted)];
        if !all && kind != ExclusiveAccess {
            expected.push((3, U::ReservationsReleased));
        }
        assert_eq!(told, expected, "{kind:?}");
        assert_eq!(unit.keys(), [2, 3]);
        assert_eq!(unit.holder(), Some(if all { (0, kind) } else { (2, ExclusiveAccess) }));
        // another's key
        let mut unit = Unit::held(kind, 1);
        let told = unit.apply(2, R::Preempt { key: 2, victim: 3, kind, abort: true });
        assert_eq!(told, [(3, U::RegistrationsPreempted)]);
        assert_eq!(unit.keys(), [1, 2]);
        assert_eq!(unit.holder(), Some((if all { 0 } else { 1 }, kind)));
        // nobody's key, and zero
        assert!(unit.refuses(2, R::Preempt { key: 2, victim: 99, kind, abort: false }));
        let zero = R::Preempt { key: 2, victim: 0, kind: WriteExclusive, abort: false };
        assert_eq!(unit.refuses(2, zero.clone()), !all);
        if all {
            assert_eq!(unit.apply(2, zero), [(1, U::RegistrationsPreempted)]);
            assert_eq!((unit.keys(), unit.holder()), (vec![2], Some((2, WriteExclusive))));
        }
    }
}

#[test]
fn a_holder_may_preempt_itself_to_change_the_type() {
    let mut unit = Unit::held(WriteExclusiveRegistrantsOnly, 1);
    let told = unit.apply(1, R::Preempt { key: 1, victim: 1, kind: ExclusiveAccess, abort: true });
    assert_eq!(told, [(2, U::ReservationsReleased), (3, U::ReservationsReleased)]);
    assert_eq!((unit.keys(), unit.holder()), (vec![1, 2, 3], Some((1, ExclusiveAccess))));
}

#[test]
fn preempt_and_abort_names_whose_commands_go() {
    let unit = Unit::held(ExclusiveAccess, 1);
    let request = R::Preempt { key: 2, victim: 1, kind: ExclusiveAccess, abort: true };
    let applied = unit.0.apply(&nexus(2), &request, &of_initiator(&[])).unwrap();
    assert_eq!(applied.abort, [nexus(1)]);
}

#[test]
fn a_clear_tells_all_others() {
    let mut unit = Unit::held(WriteExclusive, 1);
    let told = unit.apply(3, R::Clear { key: 3 });
    assert_eq!(told, [(1, U::ReservationsPreempted), (2, U::ReservationsPreempted)]);
    assert_eq!((unit.keys(), unit.holder()), (vec![], None));
}

#[test]
fn a_move_hands_the_reservation_to_another_nexus() {
    let to = |number| R::Move { key: 1, new_key: 9, to: nexus(number), unregister: true, persist: false };
    for kind in ReservationType::ALL {
        let mut unit = Unit::held(kind, 1);
        assert!(unit.refuses(2, to(3)), "not the holder");
        if all_hold(kind) {
            assert!(unit.refuses(1, to(4)));
            continue;
        }
        unit.apply(1, to(4));
        assert_eq!((unit.keys(), unit.holder()), (vec![2, 3, 9], Some((9, kind))));
    }
}

#[test]
fn the_generation_counts_what_the_standard_says() {
    let mut unit = Unit::held(WriteExclusive, 1);
    assert_eq!(unit.0.generation(), 3);
    unit.apply(1, R::Release { key: 1, kind: WriteExclusive });
    assert_eq!(unit.0.generation(), 3);
    unit.apply(5, register(0));
    assert_eq!(unit.0.generation(), 3, "there was nothing to do");
    unit.apply(1, R::Clear { key: 1 });
    assert_eq!(unit.0.generation(), 4);
}

#[test]
fn one_request_registers_many() {
    let names = Names {
        specified: Some(vec![
            Specified::Port("iqn.test:x,i,0x000000000007".into()),
            Specified::Device("iqn.test:y".into()),
        ]),
        all_ports: Some(vec![1, 2]),
    };
    let request = R::Register { key: Some(0), new_key: 5, names, persist: true };
    let ports_of = of_initiator(&["iqn.test:y,i,0x000000000001", "iqn.test:yy,i,0x000000000001"]);
    let next = Reservations::default().apply(&nexus(1), &request, &ports_of).unwrap().next;
    let own = nexus(1).as_nexus().unwrap().initiator.clone();
    let (x, y) = ("iqn.test:x,i,0x000000000007", "iqn.test:y,i,0x000000000001");
    let expected = [(&*own, 1), (&*own, 2), (x, 1), (x, 2), (y, 1), (y, 2)];
    let names: Vec<_> = next.registrations.iter().map(|one| one.registrant.clone()).collect();
    assert_eq!(names, expected.map(|(initiator, port)| Registrant::nexus(initiator, port)));
    let (registrations, held) = next.to_keep().unwrap();
    let kept = Reservations::kept(registrations.to_vec(), held.cloned()).unwrap();
    assert_eq!(kept.registrations, next.registrations);
    assert!(kept.persists() && kept.generation() == 0);
}

/// A SCSI nexus and an NVMe host register for the same volume, and preempt each other.
#[test]
fn hosts_of_both_kinds_share_a_volume() {
    let host = Registrant::NvmeHost([7; 16]);
    let names = Names { specified: None, all_ports: Some(vec![1, 2]) };
    let request = R::Register { key: None, new_key: 9, names, persist: false };
    let mut unit = Unit::held(WriteExclusive, 1);
    unit.0 = unit.0.apply(&host, &request, &of_initiator(&[])).unwrap().next;
    assert_eq!(unit.keys(), [1, 2, 3, 9], "an NVMe host is one registrant at all ports");
    let writes = |unit: &Unit, who: &Registrant| !unit.0.conflicts(Use::Write, who, unit.0.standing(who));
    assert!(writes(&unit, &nexus(1)) && !writes(&unit, &host));
    let preempt = R::Preempt { key: 9, victim: 1, kind: ExclusiveAccess, abort: true };
    let applied = unit.0.apply(&host, &preempt, &of_initiator(&[])).unwrap();
    assert_eq!(applied.abort, [nexus(1)]);
    assert!(applied.notices.contains(&(nexus(1), U::RegistrationsPreempted)));
    unit.0 = applied.next;
    assert!(!writes(&unit, &nexus(1)) && writes(&unit, &host));
    let told = unit.apply(2, R::Clear { key: 2 });
    assert_eq!(told, [(3, U::ReservationsPreempted), (5, U::ReservationsPreempted)]);
}

#[test]
fn what_is_kept_must_be_sound() {
    let one = Registration { registrant: nexus(1), key: 1 };
    let held = |kind, holder| Some(Held { kind, holder });
    let cases = [
        (vec![one.clone(), one.clone()], None),
        (vec![Registration { key: 0, ..one.clone() }], None),
        (vec![one.clone()], held(WriteExclusive, Some(nexus(2)))),
        (vec![one.clone()], held(WriteExclusive, None)),
        (vec![one.clone()], held(WriteExclusiveAllRegistrants, Some(nexus(1)))),
        (vec![], held(WriteExclusiveAllRegistrants, None)),
    ];
    for (registrations, held) in cases {
        assert_eq!(Reservations::kept(registrations, held), None);
    }
}

fn any_request() -> impl Strategy<Value = R> {
    let kind = || proptest::sample::select(ReservationType::ALL.to_vec());
    let key = || 0u64..5;
    prop_oneof![
        4 => (proptest::option::of(key()), key(), any::<bool>()).prop_map(|(key, new_key, persist)| {
            R::Register { key, new_key, names: Names::default(), persist }
        }),
        3 => (key(), kind()).prop_map(|(key, kind)| R::Reserve { key, kind }),
        2 => (key(), kind()).prop_map(|(key, kind)| R::Release { key, kind }),
        1 => key().prop_map(|key| R::Clear { key }),
        3 => (key(), key(), kind(), any::<bool>())
            .prop_map(|(key, victim, kind, abort)| R::Preempt { key, victim, kind, abort }),
        1 => (key(), 1u64..5, 0u8..6, any::<bool>()).prop_map(|(key, new_key, to, unregister)| {
            R::Move { key, new_key, to: nexus(to), unregister, persist: false }
        }),
        1 => Just(R::ReserveUnit),
        1 => Just(R::ReleaseUnit),
        1 => Just(R::NexusLost),
        1 => Just(R::UnitReset),
    ]
}

proptest! {
    /// After any requests: sound (asserted in `apply`), nobody is told of what it did itself, and of two
    /// nexuses that both may write both are members of one reservation, or there is none.
    #[test]
    fn any_requests_leave_sound_reservations(requests in proptest::collection::vec((0u8..6, any_request()), 0..60)) {
        let mut now = Reservations::default();
        for (by, request) in requests {
            if matches!(&request, R::Move { to, .. } if *to == nexus(by)) {
                continue;
            }
            let Ok(applied) = now.apply(&nexus(by), &request, &of_initiator(&[])) else { continue };
            prop_assert!(applied.notices.iter().all(|(name, _)| *name != nexus(by)));
            now = applied.next;
            let writers: Vec<Registrant> = (0..6).map(nexus).filter(|name| {
                !now.conflicts(Use::Write, name, now.standing(name))
            }).collect();
            match (&now.reserved, &now.held) {
                (None, None) => prop_assert_eq!(writers.len(), 6),
                (Some(reserved), _) => prop_assert_eq!(&writers, std::slice::from_ref(reserved)),
                (None, Some(held)) if rule(held.kind).registrants => {
                    prop_assert!(writers.iter().all(|name| now.key_of(name).is_some()));
                }
                (None, Some(held)) => {
                    prop_assert!(writers.len() <= 1 && writers.iter().all(|name| Some(name) == held.holder.as_ref()));
                }
            }
        }
    }
}
