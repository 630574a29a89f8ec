//! What is counted of two heads.

use crate::counts::counted;

counted! {
    /// What runs of two heads have met.
    Seen: "two heads: " {
        InSync = "in sync",
        TookOver = "a takeover",
        BeganHandover = "a handover begun",
        HandedOver = "a handover",
        GaveUpHandover = "a handover given up",
        StartedAgain = "the owner started again, alone",
        Left = "the partner left",
        Returned = "the partner returned",
        Demoted = "an owner that learned that it was none any more",
        PartnerKilled = "the partner killed",
        PartnerLostPower = "the partner without power",
        HeadHung = "a head that stood still",
        Cut = "heads cut off from each other",
        RegisterAway = "a head cut off from the register",
        NotPermitted = "answers held back",
        ArrayDidNotStart = "an array that did not start",
        ShardHung = "a shard that hung",
        DriveStuck = "a partner's drive that answers nothing",
        DriveFailedOnce = "a partner's drive that fails once",
        DriveWent = "a partner's drive that goes and returns",
        Forwarded = "a host that was served through the partner",
        OtherArray = "an owner that has drives of another array",
        DrivesCameLate = "an owner whose drives came late",
        GaveBack = "the array given back",
        GotBack = "the array got back",
        CameWholeLate = "an owner that lacks a pool for a while",
        WrongKey = "a head with the key of another array",
        PathCut = "a partner that does not reach a shared drive",
        WriteRefused = "a write refused by a shared drive",
        DrivesLost = "an owner that found its drives taken",
    }
}
