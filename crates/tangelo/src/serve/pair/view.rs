//! How the pair is, from what the head shows.

use std::net::SocketAddr;

use api::{FenceStatus, HeadRole, LossOfTheOwner, PairHead, PairMember, PairStatus, PartnerState};
use heads::HeadView;
use pair::{Relation, RoleName};
use setup::PairFile;

/// What administrators are told.
pub fn status(
    file: &PairFile,
    votes: &[(String, bool)],
    view: Option<&HeadView>,
    register_trouble: &str,
    fence: Option<FenceStatus>,
) -> PairStatus {
    let head = |id: base::HeadId, addresses: &[SocketAddr]| PairHead {
        id: id.to_string(),
        addresses: addresses.iter().map(ToString::to_string).collect(),
    };
    let register = view.and_then(|view| view.register);
    let members: Vec<PairMember> = file.members.iter().map(|address| member(address, votes)).collect();
    PairStatus {
        head: head(file.head, &file.listen),
        role: view.map_or(HeadRole::Starting, |view| role(view.role)),
        other: head(file.partner, &file.partner_listen),
        hears_the_other: view.is_some_and(|view| view.hears_the_other),
        owner: register.map(|register| register.owner.to_string()),
        term: register.map_or(0, |register| register.term.0),
        in_sync: register.is_some_and(|register| register.in_sync),
        maintenance_since_ms: register
            .and_then(|register| register.maintenance)
            .map(|maintenance| maintenance.since_ms),
        partner: view.and_then(|view| view.relation).map(partner),
        fence,
        loss_of_the_owner: loss(file, &members, view, register_trouble),
        members,
        register_trouble: register_trouble.to_owned(),
        link_trouble: view.and_then(|view| view.link_trouble).map_or_else(String::new, |why| why.to_string()),
    }
}

fn member(address: &str, votes: &[(String, bool)]) -> PairMember {
    let answers = votes.iter().any(|(voter, answers)| voter == address && *answers);
    PairMember { address: address.to_owned(), answers }
}

/// Whether the register could be changed without the member on the owner's server.
fn votes_are_left(file: &PairFile, members: &[PairMember], owner: base::HeadId) -> bool {
    let servers = if owner == file.head { &file.listen } else { &file.partner_listen };
    let is_owners = |address: &str| {
        let address = address.parse::<SocketAddr>().ok();
        address.is_some_and(|address| servers.iter().any(|server| server.ip() == address.ip()))
    };
    let left = members.iter().filter(|member| member.answers && !is_owners(&member.address));
    left.count() > members.len() / 2
}

fn loss(
    file: &PairFile,
    members: &[PairMember],
    view: Option<&HeadView>,
    register_trouble: &str,
) -> LossOfTheOwner {
    let Some((view, register)) = view.and_then(|view| Some((view, view.register?))) else {
        return LossOfTheOwner::Unknown;
    };
    if !register_trouble.is_empty() {
        LossOfTheOwner::NoRegister
    } else if register.maintenance.is_some() {
        LossOfTheOwner::Maintenance
    } else if !register.in_sync && view.hears_the_other && view.unseen_drives > 0 {
        LossOfTheOwner::DrivesNotSeen
    } else if !register.in_sync {
        LossOfTheOwner::NotInSync
    } else if !view.hears_the_other {
        LossOfTheOwner::NoLink
    } else if !votes_are_left(file, members, register.owner) {
        LossOfTheOwner::TooFewVotes
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
