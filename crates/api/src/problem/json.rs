//! A problem in JSON, for REST: the value, and the words that are made from it. A reader uses the value and makes its
//! own words.

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{RefOr, schema};
use utoipa::{PartialSchema, ToSchema};

use super::{DataSafety, Problem, ProblemFacts, Subject};
use crate::Health;

/// Something wrong: what, why, what to do. `docs/problems.md` explains each code and its facts.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct ProblemJson {
    #[serde(flatten)]
    facts: ProblemFacts,
    health: Health,
    /// What it is about, such as `pool fast` or `drive /dev/sdb`.
    subject: String,
    about: Subject,
    /// The code in a few words.
    title: String,
    reason: String,
    action: String,
    data: DataSafety,
    /// Milliseconds since 1970; null if it is not known.
    since_ms: Option<u64>,
}

impl From<Problem> for ProblemJson {
    fn from(problem: Problem) -> ProblemJson {
        let row = problem.code().row();
        ProblemJson {
            health: row.health,
            subject: problem.subject.to_string(),
            title: row.title.to_owned(),
            reason: problem.reason(),
            action: problem.action(),
            data: row.data,
            since_ms: problem.since_ms,
            about: problem.subject,
            facts: problem.facts,
        }
    }
}

impl From<ProblemJson> for Problem {
    fn from(json: ProblemJson) -> Problem {
        Problem { subject: json.about, since_ms: json.since_ms, facts: json.facts }
    }
}

impl PartialSchema for Problem {
    fn schema() -> RefOr<Schema> {
        ProblemJson::schema()
    }
}

impl ToSchema for Problem {
    fn name() -> std::borrow::Cow<'static, str> {
        "Problem".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<schema::Schema>)>) {
        ProblemJson::schemas(schemas);
    }
}
