//! How the two heads are, for people.

use api::{HeadRole, LossOfTheOwner, PairHead, PairMember, PartnerState};
use control::rest::Pair;

use super::Show;

impl Show for Pair {
    fn text(&self) -> String {
        let pair = &self.pair;
        let mut out = String::new();
        let mut line = |label: &str, text: &str| out.push_str(&format!("{label:>15}: {text}\n"));
        line("this head", &format!("{}, {}", role(pair.role), place(&pair.head)));
        let heard = if pair.hears_the_other { "heard" } else { "NOT HEARD" };
        line("other head", &format!("{}, {heard}, {}", other_role(self), place(&pair.other)));
        if !pair.link_trouble.is_empty() {
            line("link", &format!("BROKEN: {}", pair.link_trouble));
        }
        if let Some(partner) = pair.partner {
            line("partner", partner_words(partner));
        }
        line("loss of owner", pair.loss_of_the_owner.text());
        let register = match pair.register_trouble.as_str() {
            "" => format!("answers, term {}", pair.term),
            why => format!("DOES NOT ANSWER: {why}"),
        };
        line("register", &register);
        let member = |member: &PairMember| {
            let silent = if member.answers { "" } else { " (DOES NOT ANSWER)" };
            format!("{}{silent}", member.address)
        };
        let members: Vec<String> = pair.members.iter().map(member).collect();
        line("votes", &format!("etcd on {}", members.join(", ")));
        out
    }

    fn exit_code(&self) -> u8 {
        u8::from(self.pair.loss_of_the_owner != LossOfTheOwner::Survived)
    }
}

fn place(head: &PairHead) -> String {
    let addresses =
        if head.addresses.is_empty() { "has not joined".to_owned() } else { head.addresses.join(", ") };
    format!("{addresses} ({})", &head.id[..head.id.len().min(8)])
}

fn role(role: HeadRole) -> &'static str {
    match role {
        HeadRole::Starting => "starts",
        HeadRole::Owner => "owns the array",
        HeadRole::Partner => "is the partner",
        HeadRole::Outside => "IS NOT OF THE PAIR ANY MORE",
    }
}

fn other_role(pair: &Pair) -> &'static str {
    match &pair.pair.owner {
        Some(owner) if *owner == pair.pair.other.id => "owns the array",
        Some(_) => "is the partner",
        None => "role not known",
    }
}

fn partner_words(partner: PartnerState) -> &'static str {
    match partner {
        PartnerState::Away => "away; the owner goes on alone",
        PartnerState::Catching => "gets what it lacks",
        PartnerState::Joining => "has nearly everything, and joins",
        PartnerState::InSync => "in sync",
        PartnerState::Leaving => "silent; the owner is about to go on alone",
    }
}
