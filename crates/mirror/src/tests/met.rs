//! What a batch of runs must have met.

/// How often the interesting things happened.
#[derive(Default, Debug)]
pub struct Met {
    pub takeovers: u32,
    pub restarts: u32,
    pub joins: u32,
    pub partial_copies: u32,
    pub brief_cuts: u32,
    pub own_errors: u32,
    pub held_for_copies: u32,
    pub partner_restarts: u32,
    pub failed_drives: u32,
    pub takeovers_without_a_drive: u32,
    pub returned_drives: u32,
    /// Drives that were filled while the partner counted.
    pub filled_drives: u32,
    /// The register heard late that the partner must leave.
    pub late_leaves: u32,
    /// The owner ends before it knows that the partner has started anew.
    pub takeovers_after_a_restart: u32,
}

impl Met {
    pub fn add(&mut self, other: &Met) {
        self.takeovers += other.takeovers;
        self.restarts += other.restarts;
        self.joins += other.joins;
        self.partial_copies += other.partial_copies;
        self.brief_cuts += other.brief_cuts;
        self.own_errors += other.own_errors;
        self.held_for_copies += other.held_for_copies;
        self.partner_restarts += other.partner_restarts;
        self.failed_drives += other.failed_drives;
        self.returned_drives += other.returned_drives;
        self.filled_drives += other.filled_drives;
        self.late_leaves += other.late_leaves;
        self.takeovers_after_a_restart += other.takeovers_after_a_restart;
        self.takeovers_without_a_drive += other.takeovers_without_a_drive;
    }

    pub fn demand(&self) {
        let all = [
            self.takeovers,
            self.restarts,
            self.joins,
            self.partial_copies,
            self.brief_cuts,
            self.own_errors,
            self.held_for_copies,
            self.partner_restarts,
            self.failed_drives,
            self.returned_drives,
            self.filled_drives,
            self.takeovers_without_a_drive,
            self.late_leaves,
            self.takeovers_after_a_restart,
        ];
        assert!(all.iter().all(|&times| times >= 20), "too seldom: {self:?}");
    }
}
