//! `docs/problems.md`, made from the table and the examples.

use super::Problem;
use super::examples::examples;
use crate::Health;

const OPENING: &str = "# Problems

Everything that `tangelo status` can report as wrong, by its code. The REST API and `-o json` give for each problem:

| field | meaning |
|---|---|
| `code` | what is wrong; codes and their meanings do not change |
| `facts` | the numbers and names of it, as listed below; units stand last in their names |
| `about` | what has the problem: its `kind` (`array`, `clock`, `pool`, `drive`, `volume`, `snapshot`, `host`, `initiator`, `address`, `portal`, `schedule`, `channel`) and its `name` |
| `health` | the severity: `healthy` (a notice), `degraded` or `offline` |
| `data` | whether data is safe: `safe`, `exposed`, `unreachable` or `lost` |
| `since_ms` | when it began, in milliseconds since 1970; null where this is not known |
| `subject`, `title`, `reason`, `action` | the same in words, for people; the words may change |

This page is made from the table in `crates/api/src/problem`: `UPDATE_DOCS=1 cargo test -p api --lib` writes it anew.
";

pub(super) fn document() -> String {
    let mut page = OPENING.to_owned();
    page.push_str("\n| code | severity | in a few words |\n|---|---|---|\n");
    let problems = examples();
    for problem in &problems {
        let (code, title) = (problem.code(), problem.code().row().title);
        let severity = severity(problem.health());
        page.push_str(&format!("| [`{code}`](#{code}) | {severity} | {title} |\n"));
    }
    problems.iter().for_each(|problem| page.push_str(&section(problem)));
    page
}

fn severity(health: Health) -> &'static str {
    match health {
        Health::Healthy => "notice",
        Health::Degraded => "degraded",
        Health::Offline => "offline",
    }
}

fn section(problem: &Problem) -> String {
    let row = problem.code().row();
    let mut text = format!("\n## {}\n\n{}. {}\n\n", row.code, row.title, row.meaning);
    text.push_str(&format!("- Severity: {}\n- Data: {}\n", severity(row.health), row.data.words()));
    match row.action {
        "" => text.push_str("- What to do: nothing.\n"),
        action => text.push_str(&format!("- What to do: {action}.\n")),
    }
    text.push_str(&format!("- For example: \"{}: {}\"\n", problem.subject, problem.reason()));
    if !row.facts.is_empty() {
        text.push_str("\n| fact | meaning |\n|---|---|\n");
        row.facts.iter().for_each(|(name, meaning)| text.push_str(&format!("| `{name}` | {meaning} |\n")));
    }
    text
}
