//! Steps as the journal of events holds them. Earlier versions recorded words only: these are read as
//! [`ArrayStep::Recorded`].

use serde::{Deserialize, Deserializer};

pub use crate::worded::list::serialize;

use super::{ArrayStep, ChangeStep};

#[derive(Deserialize)]
#[serde(untagged)]
enum Recorded {
    Words(String),
    Step(ChangeStep),
}

pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<ChangeStep>, D::Error> {
    let step = |recorded| match recorded {
        Recorded::Words(words) => ArrayStep::Recorded { words }.into(),
        Recorded::Step(step) => step,
    };
    Ok(Vec::<Recorded>::deserialize(from)?.into_iter().map(step).collect())
}
