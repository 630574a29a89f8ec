//! The effect of each request on reservations (SPC-4 §5.13.7 to §5.13.11).

use base::limits::REGISTRATIONS_PER_VOLUME_MAX;

use super::{
    Held, Names, Refusal, Registrant, Registration, ReservationRequest, ReservationType, Reservations,
    Specified, all_hold,
};

/// What came of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Applied {
    /// The reservations from now on.
    pub next: Reservations,
    /// Notices to send, by nexus.
    pub notices: Vec<(Registrant, Notice)>,
    /// Nexuses whose commands are to be aborted, all but the one that asked for it, before it is answered.
    pub abort: Vec<Registrant>,
}

/// The notice that a nexus gets about a request of another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Notice {
    /// A CLEAR took its registration.
    ReservationsPreempted,
    /// A reservation that let it in has ended.
    ReservationsReleased,
    /// A PREEMPT took its registration.
    RegistrationsPreempted,
}

/// A change in the making.
pub(super) struct Change<'a> {
    pub(super) next: Reservations,
    /// Who asks.
    pub(super) by: &'a Registrant,
    pub(super) notices: Vec<(Registrant, Notice)>,
    pub(super) abort: Vec<Registrant>,
}

impl Reservations {
    /// Carries out a request of `by`. `ports_of` gives the names of the ports of an initiator that are logged in.
    pub fn apply(
        &self,
        by: &Registrant,
        request: &ReservationRequest,
        ports_of: &dyn Fn(&str) -> Vec<String>,
    ) -> Result<Applied, Refusal> {
        let mut change = Change { next: self.clone(), by, notices: Vec::new(), abort: Vec::new() };
        change.carry_out(request, ports_of)?;
        assert!(change.next.is_sound(), "after {request:?}: {:?}", change.next);
        Ok(Applied { next: change.next, notices: change.notices, abort: change.abort })
    }
}

impl Change<'_> {
    fn carry_out(
        &mut self,
        request: &ReservationRequest,
        ports_of: &dyn Fn(&str) -> Vec<String>,
    ) -> Result<(), Refusal> {
        use ReservationRequest as R;
        match request {
            R::ReserveUnit => return self.reserve_unit(),
            R::ReleaseUnit | R::NexusLost => {
                if self.next.reserved.as_ref() == Some(self.by) {
                    self.next.reserved = None;
                }
                return Ok(());
            }
            R::UnitReset => {
                self.next.reserved = None;
                return Ok(());
            }
            // a unit that is reserved by RESERVE knows no persistent reservations (SPC-2 §5.5.1)
            _ if self.next.reserved.is_some() => return Err(Refusal::Conflict),
            _ => {}
        }
        match request {
            R::Register { key, new_key, names, persist } => {
                if self.register(*key, *new_key, names, ports_of)? {
                    self.next.persist = *persist;
                }
            }
            R::Reserve { key, kind } => self.reserve(*key, *kind)?,
            R::Release { key, kind } => self.release(*key, *kind)?,
            R::Clear { key } => self.clear(*key)?,
            R::Preempt { key, victim, kind, abort } => self.preempt(*key, *victim, *kind, *abort)?,
            R::Move { key, new_key, to, unregister, persist } => {
                self.move_to(*key, *new_key, to, *unregister)?;
                self.next.persist = *persist;
            }
            R::ReserveUnit | R::ReleaseUnit | R::NexusLost | R::UnitReset => unreachable!("answered above"),
        }
        Ok(())
    }

    /// RESERVE, compatible with persistent reservations (SPC-4 §5.13.3).
    fn reserve_unit(&mut self) -> Result<(), Refusal> {
        let registered = self.next.key_of(self.by).is_some();
        if let Some(held) = &self.next.held {
            let member = self.next.is_holder(self.by) || (registered && super::rule(held.kind).registrants);
            return if member { Ok(()) } else { Err(Refusal::Conflict) };
        }
        let free = self.next.reserved.as_ref().is_none_or(|reserved| reserved == self.by);
        if !free || !self.next.registrations.is_empty() {
            return Err(Refusal::Conflict);
        }
        self.next.reserved = Some(self.by.clone());
        Ok(())
    }

    /// Refuses a nexus that is not registered with this key.
    pub(super) fn check_key(&self, key: u64) -> Result<(), Refusal> {
        if self.next.key_of(self.by) == Some(key) { Ok(()) } else { Err(Refusal::Conflict) }
    }

    pub(super) fn count(&mut self) {
        self.next.generation = self.next.generation.wrapping_add(1);
    }

    /// Notifies every registered nexus except the one that asks.
    pub(super) fn tell_others(&mut self, attention: Notice) {
        let others = self.next.registrations.iter().filter(|one| one.registrant != *self.by);
        self.notices.extend(others.map(|one| (one.registrant.clone(), attention)));
    }

    /// `false` where there is nothing to do.
    fn register(
        &mut self,
        key: Option<u64>,
        new_key: u64,
        names: &Names,
        ports_of: &dyn Fn(&str) -> Vec<String>,
    ) -> Result<bool, Refusal> {
        let own = self.next.key_of(self.by);
        // SPC-4 tables 43 and 44
        if let Some(key) = key
            && key != own.unwrap_or(0)
        {
            return Err(Refusal::Conflict);
        }
        if names.specified.is_some() && (own.is_some() || new_key == 0) {
            return Err(Refusal::NotForOthers);
        }
        if own.is_none() && new_key == 0 {
            return Ok(false);
        }
        let ports = names.all_ports.as_deref();
        let own_names = self.by.at_ports(ports);
        if new_key == 0 {
            for registrant in &own_names {
                self.unregister(registrant);
            }
            self.count();
            return Ok(true);
        }
        for registrant in &own_names {
            self.set_key(registrant, new_key)?;
        }
        let Registrant::Nexus(through) = self.by else {
            self.count();
            return Ok(true);
        };
        for initiator in specified_ports(names, ports_of) {
            let there = Registrant::nexus(initiator, through.port);
            for registrant in there.at_ports(ports) {
                if self.next.key_of(&registrant).is_none() {
                    self.set_key(&registrant, new_key)?;
                }
            }
        }
        self.count();
        Ok(true)
    }

    pub(super) fn set_key(&mut self, registrant: &Registrant, key: u64) -> Result<(), Refusal> {
        assert_ne!(key, 0, "a registration has a key");
        if let Some(one) = self.next.registrations.iter_mut().find(|one| one.registrant == *registrant) {
            one.key = key;
            return Ok(());
        }
        if self.next.registrations.len() >= REGISTRATIONS_PER_VOLUME_MAX {
            return Err(Refusal::NoRoom);
        }
        self.next.registrations.push(Registration { registrant: registrant.clone(), key });
        Ok(())
    }

    /// Takes a registration away; a reservation that it held is released (SPC-4 §5.13.11.3).
    pub(super) fn unregister(&mut self, registrant: &Registrant) {
        self.next.registrations.retain(|one| one.registrant != *registrant);
        let Some(held) = &self.next.held else { return };
        let ends = match &held.holder {
            Some(holder) => holder == registrant,
            None => self.next.registrations.is_empty(),
        };
        if ends {
            let kind = held.kind;
            self.next.held = None;
            self.tell_released(kind);
        }
    }

    /// A reservation for registrants gave registrants access: they are notified when it ends.
    fn tell_released(&mut self, kind: ReservationType) {
        if super::rule(kind).registrants {
            self.tell_others(Notice::ReservationsReleased);
        }
    }

    fn reserve(&mut self, key: u64, kind: ReservationType) -> Result<(), Refusal> {
        self.check_key(key)?;
        match &self.next.held {
            None => self.next.held = Some(self.hold(kind)),
            Some(held) if self.next.is_holder(self.by) && held.kind == kind => {}
            Some(_) => return Err(Refusal::Conflict),
        }
        Ok(())
    }

    pub(super) fn hold(&self, kind: ReservationType) -> Held {
        Held { kind, holder: (!all_hold(kind)).then(|| self.by.clone()) }
    }

    fn release(&mut self, key: u64, kind: ReservationType) -> Result<(), Refusal> {
        self.check_key(key)?;
        if !self.next.is_holder(self.by) {
            return Ok(());
        }
        if self.next.held.as_ref().is_some_and(|held| held.kind != kind) {
            return Err(Refusal::OtherType);
        }
        self.next.held = None;
        self.tell_released(kind);
        Ok(())
    }

    fn clear(&mut self, key: u64) -> Result<(), Refusal> {
        self.check_key(key)?;
        self.tell_others(Notice::ReservationsPreempted);
        self.next.registrations.clear();
        self.next.held = None;
        self.count();
        Ok(())
    }

    fn move_to(&mut self, key: u64, new_key: u64, to: &Registrant, unregister: bool) -> Result<(), Refusal> {
        self.check_key(key)?;
        let kind = match &self.next.held {
            Some(Held { kind, holder: Some(holder) }) if holder == self.by => *kind,
            _ => return Err(Refusal::Conflict),
        };
        self.set_key(to, new_key)?;
        self.next.held = Some(Held { kind, holder: Some(to.clone()) });
        if unregister {
            self.unregister(&self.by.clone());
        }
        self.count();
        Ok(())
    }
}

/// The initiator ports that SPEC_I_PT names.
fn specified_ports(names: &Names, ports_of: &dyn Fn(&str) -> Vec<String>) -> Vec<String> {
    let mut ports = Vec::new();
    for specified in names.specified.iter().flatten() {
        match specified {
            Specified::Port(name) => ports.push(name.clone()),
            Specified::Device(device) => ports.extend(ports_of(device)),
        }
    }
    ports
}
