//! Maintenance begins and ends: either head may say so, because the register has it.

use pair::{Maintenance, Question, Register};

use crate::error::SetupError;
use crate::pair_file::PairFile;

/// Writes it to the register. Gives what that holds then. Nothing is changed if it holds that already.
pub async fn set_maintenance(
    pair: &PairFile,
    maintenance: Option<Maintenance>,
) -> Result<Register, SetupError> {
    let mut client = pair.register()?;
    let mut known = client.ask(Question::Read).await.map_err(SetupError::Register)?;
    loop {
        if known.other(pair.head).is_none() {
            return Err(SetupError::NotOfThePair);
        }
        if known.maintenance.is_some() == maintenance.is_some() {
            return Ok(known);
        }
        let new = known.with_maintenance(maintenance, pair.head);
        let question = Question::CompareAndSet { expected: known.revision, new };
        known = client.ask(question).await.map_err(SetupError::Register)?;
    }
}
