//! How the pair is, from what the head shows.

use api::{HeadRole, LossOfTheOwner, PairHead, PairStatus, PartnerState};
use heads::HeadView;
use pair::{Relation, RoleName};
use setup::PairFile;

/// What administrators are told.
pub fn status(file: &PairFile, view: Option<&HeadView>, register_trouble: &str) -> PairStatus {
    let head = |id: base::HeadId, addresses: &[std::net::SocketAddr]| PairHead {
        id: id.to_string(),
        addresses: addresses.iter().map(ToString::to_string).collect(),
    };
    let register = view.and_then(|view| view.register);
    PairStatus {
        head: head(file.head, &file.listen),
        role: view.map_or(HeadRole::Starting, |view| role(view.role)),
        other: head(file.partner, &file.partner_listen),
        hears_the_other: view.is_some_and(|view| view.hears_the_other),
        owner: register.map(|register| register.owner.to_string()),
        term: register.map_or(0, |register| register.term.0),
        in_sync: register.is_some_and(|register| register.in_sync),
        partner: view.and_then(|view| view.relation).map(partner),
        members: file.members.clone(),
        register_trouble: register_trouble.to_owned(),
        loss_of_the_owner: loss(view, register_trouble),
    }
}

fn loss(view: Option<&HeadView>, register_trouble: &str) -> LossOfTheOwner {
    let Some((view, register)) = view.and_then(|view| Some((view, view.register?))) else {
        return LossOfTheOwner::Unknown;
    };
    if !register_trouble.is_empty() {
        LossOfTheOwner::NoRegister
    } else if !register.in_sync {
        LossOfTheOwner::NotInSync
    } else if !view.hears_the_other {
        LossOfTheOwner::NoLink
    } else {
        LossOfTheOwner::Survived
    }
}

fn role(role: RoleName) -> HeadRole {
    match role {
        RoleName::Booting => HeadRole::Starting,
        RoleName::Partner => HeadRole::Partner,
        RoleName::Owner => HeadRole::Owner,
        RoleName::Outside => HeadRole::Outside,
    }
}

fn partner(relation: Relation) -> PartnerState {
    match relation {
        Relation::Alone => PartnerState::Away,
        Relation::Copying => PartnerState::Catching,
        Relation::Joining | Relation::JoinAsked => PartnerState::Joining,
        Relation::InSync => PartnerState::InSync,
        Relation::Leaving => PartnerState::Leaving,
    }
}
