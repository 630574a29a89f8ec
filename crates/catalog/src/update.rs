//! Changes of existing objects.

use crate::initiator::Initiator;
use crate::name::Name;
use crate::secret::Chap;

/// What to do with an optional setting.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Setting<T> {
    #[default]
    Keep,
    Clear,
    Set(T),
}

/// What to change of a host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostUpdate {
    pub name: Option<Name>,
    pub initiators: Option<Vec<Initiator>>,
    pub chap: Setting<Chap>,
    pub mutual: Setting<Chap>,
}

impl<T: Clone> Setting<T> {
    pub(crate) fn apply_to(&self, value: &mut Option<T>) {
        match self {
            Setting::Keep => {}
            Setting::Clear => *value = None,
            Setting::Set(new) => *value = Some(new.clone()),
        }
    }
}
