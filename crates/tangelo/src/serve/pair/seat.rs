//! What a head acts on outside of its thread.

use engine::what_it_holds;
use env::DriveHandle;
use heads::{Contents, HeadView, Surroundings};
use pair::{CommitRule, Decision, Portal, Question, Term};
use task::Io;
use tokio::sync::mpsc::UnboundedSender;

use super::Ending;

/// What the head wants of the rest of the process.
pub enum Wish {
    /// Start the array.
    Start(Term, CommitRule),
    /// Stop it in order.
    Stop,
    /// What this head has kept of the catalog is old.
    ForgetCatalog,
    Note(Decision),
    Show(HeadView),
    /// The partner has these portals.
    Portals(Vec<Portal>),
}

/// See the header of this file. Nothing here waits.
pub struct Seat {
    pub questions: UnboundedSender<Question>,
    pub wishes: UnboundedSender<Wish>,
    pub ending: Ending,
}

impl Seat {
    fn wish(&self, wish: Wish) {
        // whoever carries them out ends with the process
        drop(self.wishes.send(wish));
    }
}

impl Surroundings for Seat {
    fn ask(&self, question: Question) {
        // as above
        let _unanswered = self.questions.send(question);
    }

    fn start_array(&self, term: Term, rule: CommitRule) {
        self.wish(Wish::Start(term, rule));
    }

    fn stop_array(&self) {
        self.wish(Wish::Stop);
    }

    fn end(&self) {
        self.ending.now();
    }

    fn forget_catalog(&self) {
        self.wish(Wish::ForgetCatalog);
    }

    fn note(&self, decision: Decision) {
        self.wish(Wish::Note(decision));
    }

    fn note_ending(&self, why: heads::Ending) {
        match why {
            heads::Ending::ArrayDidNotStart => {
                tracing::error!("this head cannot start the array: it ends, and starts again")
            }
            heads::Ending::DrivesNotHandedBack => {
                tracing::error!(
                    "what the earlier owner wrote to this head's drives does not end: this head ends, and starts again"
                );
            }
            heads::Ending::DrivesLost => {
                tracing::warn!(
                    "the other head has reserved the drives: this one ends, and starts again as the partner"
                );
            }
            heads::Ending::ShardHangs(shard) => {
                tracing::error!("shard {shard} does not answer: this head ends, and starts again");
            }
        }
    }

    fn show(&self, view: HeadView) {
        self.wish(Wish::Show(view));
    }

    fn show_portals(&self, portals: Vec<Portal>) {
        self.wish(Wish::Portals(portals));
    }

    fn what_it_holds<'a>(&'a self, io: &'a Io, drive: DriveHandle, has_record: bool) -> Contents<'a> {
        Box::pin(what_it_holds(io, drive, has_record))
    }
}
