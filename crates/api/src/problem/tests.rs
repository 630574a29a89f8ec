//! Every code has its words, its example, and a test that raises it.

use std::collections::BTreeSet;

use super::document::document;
use super::examples::examples;
use super::*;
use crate::sources::{check_page, is_named, read_sources};

#[test]
fn each_code_has_a_row_and_an_example() {
    for (code, example) in ProblemCode::ALL.iter().zip(examples()) {
        assert_eq!((code.row().code, example.code()), (*code, *code));
    }
    assert_eq!(ProblemCode::ALL.len(), examples().len());
}

#[test]
fn each_fact_is_described() {
    for problem in examples() {
        let json = serde_json::to_value(&problem).unwrap();
        let facts: BTreeSet<&str> =
            json["facts"].as_object().unwrap().keys().map(|name| name.as_str()).collect();
        let described: BTreeSet<&str> = problem.code().row().facts.iter().map(|(name, _)| *name).collect();
        assert_eq!(facts, described, "{}", problem.code());
    }
}

#[test]
fn what_is_read_is_what_was_written() {
    for problem in examples() {
        let json = serde_json::to_value(&problem).unwrap();
        assert_eq!(json["code"], problem.code().to_string());
        assert_eq!(json["subject"], problem.subject.to_string());
        assert!(json["since_ms"].is_null(), "{json}");
        assert_eq!(serde_json::from_value::<Problem>(json).unwrap(), problem);
    }
}

#[test]
fn each_problem_says_why_and_what_to_do() {
    for problem in examples() {
        assert!(!problem.reason().is_empty(), "{problem:?}");
        let may_be_silent = matches!(problem.code(), ProblemCode::ArrayStopping);
        assert!(may_be_silent || !problem.action().is_empty(), "{problem:?}");
        let row = problem.code().row();
        assert!(row.title.len() < 60 && row.meaning.ends_with('.') && !row.action.ends_with('.'), "{row:?}");
    }
}

#[test]
fn a_small_raw_volume_does_not_hide_a_pool() {
    let mut problems = examples();
    problems.retain(|problem| problem.harm() != Harm::Array);
    Problem::sort(&mut problems);
    let mut order: Vec<Harm> = problems.iter().map(Problem::harm).collect();
    order.dedup();
    use Harm::*;
    assert_eq!(order, [Offline, Lost, Exposed, Space, Raw, Drive, Portal, Spare, Other]);
    let raw = problems.iter().find(|problem| problem.harm() == Raw).unwrap();
    assert_eq!(raw.health(), Health::Offline, "the worst first");
    assert_eq!(Problem::health_of(&problems), Health::Offline);
}

#[test]
fn a_problem_stays_the_same_while_its_numbers_change() {
    let filling = |full_percent| {
        let facts = ProblemFacts::PoolFilling { full_percent, room: PoolRoom::default() };
        Problem::new(Subject::pool("fast"), facts)
    };
    assert_eq!(filling(81).key(), filling(82).key());
    let lost = |path: &str| LostDrive { drive: path.to_owned(), bay: String::new(), how: DriveLoss::Missing };
    let degraded = |drives| {
        Problem::new(
            Subject::pool("fast"),
            ProblemFacts::PoolDegraded { drives, repair: None, lost_bytes: 0 },
        )
    };
    assert_ne!(degraded(vec![lost("a")]).key(), degraded(vec![lost("a"), lost("b")]).key());
}

#[test]
fn a_spare_that_is_not_there_is_not_to_be_erased() {
    let action = |obstacle| {
        let facts = ProblemFacts::SpareUnusable { pool: "fast".to_owned(), obstacle };
        Problem::new(Subject::drive("/dev/sdd"), facts).action()
    };
    assert_eq!(
        action(SpareObstacle::Absent),
        "put it back, or name another; `tangelo drive spare fast /dev/sdd --release` has it be no spare"
    );
    assert!(!action(SpareObstacle::TooSmall { has_bytes: 4096 }).contains("wipe"));
    assert!(action(SpareObstacle::Holds { what: "a swap area".to_owned() }).contains("drive wipe /dev/sdd"));
}

/// `UPDATE_DOCS=1 cargo test -p api --lib` writes the page anew.
#[test]
fn the_page_about_problems_is_up_to_date() {
    check_page("docs/problems.md", &document());
}

/// Tests of a whole array that raise a problem name its code.
#[test]
fn each_code_is_raised_by_a_test() {
    let sources = read_sources(&["crates/engine/tests", "crates/tangelo/tests"]);
    let raised = |code: &&ProblemCode| {
        // as tests of the whole program see it
        let quoted = format!("\"{code}\"");
        is_named(&sources, &format!("ProblemCode::{code:?}"))
            || sources.iter().any(|source| source.contains(&quoted))
    };
    let untested: Vec<&ProblemCode> = ProblemCode::ALL.iter().filter(|code| !raised(code)).collect();
    assert_eq!(untested, [&ProblemCode::ArrayFailed; 0], "no test raises these");
}
