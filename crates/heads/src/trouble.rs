//! What ends connections with the other head, for administrators: the newest reason, until a connection of this kind is up again. A
//! connection that is merely closed is none: `hears_the_other` tells of that.

use std::cell::Cell;

use pair::LinkError;

use crate::wire::WireEnd;

#[derive(Default)]
pub(crate) struct LinkTrouble {
    control: Cell<Option<LinkError>>,
    drives: Cell<Option<LinkError>>,
}

impl LinkTrouble {
    /// The newest reason; that of the connection for control first.
    pub fn newest(&self) -> Option<LinkError> {
        self.control.get().or(self.drives.get())
    }

    pub fn control_is_up(&self) {
        self.control.set(None);
    }

    pub fn drives_are_up(&self) {
        self.drives.set(None);
    }

    /// A connection for control has ended, or one that has not said what it is for. `counts`: while another one is up, a stranger is no
    /// trouble.
    pub fn on_control_ended(&self, end: WireEnd, counts: bool) {
        if let WireEnd::Link(why) = end
            && counts
        {
            self.control.set(Some(why));
        }
    }

    /// The owner's connection for drives has ended.
    pub fn on_drives_ended(&self, end: WireEnd) {
        if let WireEnd::Link(why) = end {
            self.drives.set(Some(why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_reason_stays_until_a_connection_is_up() {
        let trouble = LinkTrouble::default();
        trouble.on_control_ended(WireEnd::Closed, true);
        trouble.on_control_ended(WireEnd::Link(LinkError::NotALink), false);
        assert_eq!(trouble.newest(), None);
        trouble.on_drives_ended(WireEnd::Link(LinkError::Checksum));
        trouble.on_control_ended(WireEnd::Link(LinkError::WrongKey), true);
        trouble.on_control_ended(WireEnd::Closed, true);
        assert_eq!(trouble.newest(), Some(LinkError::WrongKey));
        trouble.control_is_up();
        assert_eq!(trouble.newest(), Some(LinkError::Checksum));
        trouble.drives_are_up();
        assert_eq!(trouble.newest(), None);
    }
}
