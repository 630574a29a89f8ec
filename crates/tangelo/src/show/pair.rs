//! How the two heads are, for people.

use api::{
    FenceCause, FenceOutcome, FenceRecord, FenceStatus, FenceTrust, HeadRole, LossOfTheOwner, PairHead,
    PairMember, PairStatus, PartnerState,
};
use base::calendar::moment;
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
        if let Some(since_ms) = pair.maintenance_since_ms {
            line("maintenance", &maintenance_words(since_ms, pair));
        }
        line("loss of owner", pair.loss_of_the_owner.text());
        if let Some(fence) = &pair.fence {
            line("fencing", &fence_words(fence));
            if let Some(last) = &fence.last {
                line("last fencing", &fenced_words(last));
            }
        }
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

fn maintenance_words(since_ms: u64, pair: &PairStatus) -> String {
    let waits = pair.role == HeadRole::Partner && !pair.hears_the_other && pair.in_sync;
    let what = match waits {
        true => "the owner is not heard, and THIS HEAD DOES NOT TAKE OVER",
        false => "no head takes over by itself",
    };
    format!("since {}: {what}; `tangelo pair maintenance off` ends it", moment(since_ms))
}

fn fence_words(fence: &FenceStatus) -> String {
    let agent = &fence.agent;
    match fence.trust {
        FenceTrust::NotTried => format!("{agent}, not tried yet"),
        FenceTrust::Trusted => format!("{agent} says \"on\" of the other head"),
        FenceTrust::AsksOnly => format!("{agent} can be asked; nobody will know whether it has fenced"),
        FenceTrust::Doubted | FenceTrust::Unusable => format!("DOES NOT WORK: {}", fence.detail),
    }
}

fn fenced_words(last: &FenceRecord) -> String {
    let cause = match last.cause {
        FenceCause::Takeover => "after the takeover",
        FenceCause::Command => "by command",
    };
    let what = match last.outcome {
        FenceOutcome::Running => "under way".to_owned(),
        FenceOutcome::Fenced => "the other head was off".to_owned(),
        FenceOutcome::WasOff => "the other head was off already".to_owned(),
        FenceOutcome::Asked => "the agent was asked".to_owned(),
        FenceOutcome::NotNeeded => "not needed, because the other head was heard again".to_owned(),
        FenceOutcome::Maintenance => "not done, because of maintenance".to_owned(),
        FenceOutcome::Failed => format!("FAILED: {}", last.detail),
    };
    format!("{} {cause}: {what}", moment(last.at_ms))
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
