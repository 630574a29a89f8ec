//! What a head has decided, for logs, events and counts.

/// Each is noted at the moment from which it holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Decision {
    /// This head is the owner: it has taken over from a silent one.
    TookOver,
    /// This head is the owner again, after a start.
    Restarted,
    /// This head is the owner: the other one has handed over.
    ReceivedHandover,
    /// This head is the owner again: the other one had taken over, and could not serve.
    GotBack,
    /// The other head is the owner now.
    LostOwnership,
    /// The register does not name this head any more.
    Forgotten,
    /// The owner goes on without its partner.
    WentAlone,
    /// The partner is back; what it lacks is copied.
    BeganCopy,
    /// What is written waits for the partner again.
    BeganJoin,
    /// The partner did not follow; the copy goes on.
    GaveUpJoin,
    Joined,
    BeganHandover,
    GaveUpHandover,
    /// This head is the owner, and its own copy is not there: the other one is to own the array again.
    GaveBack,
    /// The owner is silent: the register was asked.
    AskedToTakeOver,
    /// The register does not answer; the owner is heard again.
    WithdrewTakeover,
    /// The owner is silent, and this head does not take over: there is maintenance.
    HeldBack,
    /// A head of an earlier term was told of the later one.
    CorrectedOldTerm,
}

impl Decision {
    pub const ALL: [Decision; 18] = [
        Decision::TookOver,
        Decision::Restarted,
        Decision::ReceivedHandover,
        Decision::GotBack,
        Decision::LostOwnership,
        Decision::Forgotten,
        Decision::WentAlone,
        Decision::BeganCopy,
        Decision::BeganJoin,
        Decision::GaveUpJoin,
        Decision::Joined,
        Decision::BeganHandover,
        Decision::GaveUpHandover,
        Decision::GaveBack,
        Decision::AskedToTakeOver,
        Decision::WithdrewTakeover,
        Decision::HeldBack,
        Decision::CorrectedOldTerm,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Decision::TookOver => "took-over",
            Decision::Restarted => "restarted",
            Decision::ReceivedHandover => "received-handover",
            Decision::GotBack => "got-back",
            Decision::LostOwnership => "lost-ownership",
            Decision::Forgotten => "forgotten",
            Decision::WentAlone => "went-alone",
            Decision::BeganCopy => "began-copy",
            Decision::BeganJoin => "began-join",
            Decision::GaveUpJoin => "gave-up-join",
            Decision::Joined => "joined",
            Decision::BeganHandover => "began-handover",
            Decision::GaveUpHandover => "gave-up-handover",
            Decision::GaveBack => "gave-back",
            Decision::AskedToTakeOver => "asked-to-take-over",
            Decision::WithdrewTakeover => "withdrew-takeover",
            Decision::HeldBack => "held-back",
            Decision::CorrectedOldTerm => "corrected-old-term",
        }
    }
}
