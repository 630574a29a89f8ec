//! How an owner stands to its partner.
//!
//! ```text
//!            answers heartbeats        nearly copied           covered, swap sent          swap won
//!   Alone ───────────────────► Copying ────────────► Joining ─────────────────► JoinAsked ────────► InSync
//!     ▲ ▲                        │                     │                           │ silent           │ silent
//!     │ └────────── silent ──────┴──────── silent ─────┘                           ▼                  ▼
//!     └─────────────────────────────── swap won: alone ───────────────────────── Leaving ◄────────────┘
//! ```
//!
//! What always holds: from the moment a swap is sent until a newer revision is seen, both outcomes are allowed for. So
//! `JoinAsked` and `Leaving` need the partner for writes, and the lease for reads.

/// See the drawing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// The register says so, and nothing that would change it is on its way.
    Alone,
    /// The partner gets what its copy lacks. Writes are acknowledged without it.
    Copying,
    /// Writes are acknowledged only with the partner; the register does not know yet.
    Joining,
    /// "In sync" may be in the register.
    JoinAsked,
    /// The register says so.
    InSync,
    /// "Alone" may be in the register, or "in sync".
    Leaving,
}

/// What a write must wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitRule {
    /// The own drives.
    Own,
    /// The own drives and the partner's.
    Both,
}

/// What happens to a relation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    PartnerAnswers,
    PartnerIsSilent,
    NearlyCopied,
    Covered,
    /// A revision of the own term that was not known yet.
    Register {
        in_sync: bool,
    },
}

impl Relation {
    pub const ALL: [Relation; 6] = [
        Relation::Alone,
        Relation::Copying,
        Relation::Joining,
        Relation::JoinAsked,
        Relation::InSync,
        Relation::Leaving,
    ];

    pub fn commit_rule(self) -> CommitRule {
        match self {
            Relation::Alone | Relation::Copying => CommitRule::Own,
            Relation::Joining | Relation::JoinAsked | Relation::InSync | Relation::Leaving => {
                CommitRule::Both
            }
        }
    }

    /// Whether the partner may become the owner, so that reads need its leave.
    pub fn reads_need_partner(self) -> bool {
        match self {
            Relation::Alone | Relation::Copying | Relation::Joining => false,
            Relation::JoinAsked | Relation::InSync | Relation::Leaving => true,
        }
    }

    /// The relation after `turn`.
    pub(crate) fn after(self, turn: Turn) -> Relation {
        match (self, turn) {
            // only the register says how a swap has ended
            (_, Turn::Register { in_sync: true }) => Relation::InSync,
            (
                Relation::JoinAsked | Relation::InSync | Relation::Leaving,
                Turn::Register { in_sync: false },
            ) => Relation::Alone,
            (Relation::Alone, Turn::PartnerAnswers) => Relation::Copying,
            (Relation::Copying, Turn::NearlyCopied) => Relation::Joining,
            (Relation::Joining, Turn::Covered) => Relation::JoinAsked,
            (Relation::Copying | Relation::Joining, Turn::PartnerIsSilent) => Relation::Alone,
            (Relation::JoinAsked | Relation::InSync, Turn::PartnerIsSilent) => Relation::Leaving,
            (same, _) => same,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_relation_after_every_turn() {
        use Relation::*;
        let turns = [
            Turn::PartnerAnswers,
            Turn::PartnerIsSilent,
            Turn::NearlyCopied,
            Turn::Covered,
            Turn::Register { in_sync: true },
            Turn::Register { in_sync: false },
        ];
        #[rustfmt::skip]
        let table = [
            //           answers    silent     nearly     covered    in sync  alone
            (Alone,     [Copying,   Alone,     Alone,     Alone,     InSync,  Alone]),
            (Copying,   [Copying,   Alone,     Joining,   Copying,   InSync,  Copying]),
            (Joining,   [Joining,   Alone,     Joining,   JoinAsked, InSync,  Joining]),
            (JoinAsked, [JoinAsked, Leaving,   JoinAsked, JoinAsked, InSync,  Alone]),
            (InSync,    [InSync,    Leaving,   InSync,    InSync,    InSync,  Alone]),
            (Leaving,   [Leaving,   Leaving,   Leaving,   Leaving,   InSync,  Alone]),
        ];
        assert_eq!(table.map(|(from, _)| from), Relation::ALL);
        for (from, to) in table {
            assert_eq!(turns.map(|turn| from.after(turn)), to, "{from:?}");
        }
    }

    #[test]
    fn while_a_swap_may_be_on_its_way_the_stricter_rule_holds() {
        for relation in [Relation::JoinAsked, Relation::Leaving] {
            assert_eq!(relation.commit_rule(), CommitRule::Both);
            assert!(relation.reads_need_partner());
        }
    }
}
