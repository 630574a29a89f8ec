//! How the array starts: which array this is, what belongs to it, then hosts are served.
//!
//! Nothing listens before every shard knows the array: a host never sees a LUN missing that is only late.

use std::rc::Rc;

use base::ArrayId;
use bytes::Bytes;
use catalog::Catalog;

use super::{Array, Portal};
use crate::command::{CommandError, CommandErrorKind};
use crate::message::{Answer, Call};

impl Array {
    /// Starts the array, and says how that went.
    pub(crate) async fn start(self: Rc<Self>) {
        self.began.set(self.context.io.now());
        let result = self.bring_up().await;
        if let Err(error) = &result {
            *self.failure.borrow_mut() = Some(error.clone());
        }
        self.ready.open();
        if result.is_ok() {
            self.context.io.spawn(self.clone().watch_space());
        }
        let started = self.started.borrow_mut().take().expect("an array starts once");
        started(result);
    }

    async fn bring_up(&self) -> Result<(), CommandError> {
        let kept = self.parameters.state.borrow_mut().take();
        let kept = kept.map(|bytes| decode(&bytes, "the head's state directory")).transpose()?;
        let catalog = self.open_pools(kept).await?;
        self.state.borrow_mut().catalog = match catalog {
            Some(catalog) => catalog,
            None => self.new_catalog()?,
        };
        self.settle_pools().await?;
        let bytes = Bytes::from(self.state.borrow().catalog.encode());
        (self.parameters.save_state)(bytes);
        self.open_raw_volumes().await;
        self.broadcast().await;
        self.listen().await;
        self.broadcast().await;
        Ok(())
    }

    /// The catalog of an array that did not exist before.
    fn new_catalog(&self) -> Result<Catalog, CommandError> {
        let name = self.parameters.array_name.parse()?;
        Ok(Catalog::new(ArrayId(self.context.io.random_u128()), name))
    }

    /// Listens on every portal: here first, which settles port 0, then on the other shards.
    async fn listen(&self) {
        let wanted = self.parameters.portals.clone();
        let answer = self.context.ask(self.context.shard, Call::Listen(wanted.clone())).await;
        let Answer::Listening(bound) = answer else { unreachable!("the answer to listening") };
        let addresses: Vec<_> = bound.iter().filter_map(|result| result.ok()).collect();
        let others = self.context.ask_others(|| Call::Listen(addresses.clone())).await;
        // where the system lets one shard alone have an address, that shard serves it alone
        drop(others);
        let portals = wanted.into_iter().zip(bound).map(|(address, result)| Portal { address, result });
        self.state.borrow_mut().portals = portals.collect();
    }
}

/// Reads a stored catalog.
pub(super) fn decode(bytes: &[u8], whence: &str) -> Result<Catalog, CommandError> {
    Catalog::decode(bytes).map_err(|error| {
        let hint =
            error.hint().unwrap_or_else(|| "nothing was changed; restore it, or move it away".to_owned());
        CommandError::new(CommandErrorKind::Unavailable, format!("{whence}: {error}"), hint)
    })
}
