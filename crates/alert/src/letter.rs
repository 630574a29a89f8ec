//! A message in the forms in which channels take it: JSON for programs, words for people.

use std::cmp::Reverse;

use api::{Health, Problem};
use base::calendar::moment;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::channel::Told;
use crate::plan::Message;

/// The version of the JSON's shape.
pub const SCHEMA: u32 = 1;
/// Problems that a part of a message has; of more, only how many there are.
const PROBLEMS_MAX: usize = 50;
/// Characters of a subject.
const SUBJECT_CHARS_MAX: usize = 150;

/// What a channel delivers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Letter {
    /// One line.
    pub subject: String,
    pub text: String,
    pub json: Vec<u8>,
    pub health: Health,
    /// The same for every attempt to tell the same.
    pub key: String,
}

#[derive(Serialize)]
struct Json<'a> {
    schema: u32,
    /// It tells nothing but that it has arrived.
    test: bool,
    head: &'a str,
    health: Health,
    sequence: u64,
    subject: &'a str,
    text: &'a str,
    began: Vec<&'a Problem>,
    changed: Vec<Changed<'a>>,
    lasting: Vec<&'a Problem>,
    ended: Vec<&'a Problem>,
    /// Problems of these lists that are left out.
    left_out: u64,
}

#[derive(Serialize)]
struct Changed<'a> {
    before: &'a Problem,
    now: &'a Problem,
}

impl Letter {
    /// A message of this head.
    pub fn of(message: &Message, head: &str) -> Letter {
        let (subject, text) = (subject(message, head), text(message));
        let all = [message.began.len(), message.changed.len(), message.lasting.len(), message.ended.len()];
        let changed = message.changed.iter().map(|(before, now)| Changed { before: &before.problem, now });
        let json = Json {
            schema: SCHEMA,
            test: false,
            head,
            health: message.health,
            sequence: message.sequence,
            subject: &subject,
            text: &text,
            began: message.began.iter().take(PROBLEMS_MAX).collect(),
            changed: changed.take(PROBLEMS_MAX).collect(),
            lasting: message.lasting.iter().take(PROBLEMS_MAX).collect(),
            ended: message.ended.iter().take(PROBLEMS_MAX).map(|told| &told.problem).collect(),
            left_out: all.map(|count| count.saturating_sub(PROBLEMS_MAX) as u64).iter().sum(),
        };
        let json = serde_json::to_vec(&json).expect("problems can be said in JSON");
        Letter { health: message.health, key: key(message, head), json, subject, text }
    }

    /// One that only shows that the channel works. `moment_ms` makes it another one than the last.
    pub fn test(head: &str, moment_ms: u64) -> Letter {
        let subject = line(&format!("[tangelo {head}] test"));
        let text = format!(
            "This is a test of {}: alerts of {head} arrive here. Nothing is wrong because of it.\n",
            moment(moment_ms)
        );
        let nothing = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let json = Json {
            schema: SCHEMA,
            test: true,
            head,
            health: Health::Healthy,
            sequence: 0,
            subject: &subject,
            text: &text,
            began: nothing.0,
            changed: nothing.1,
            lasting: nothing.2,
            ended: nothing.3,
            left_out: 0,
        };
        let json = serde_json::to_vec(&json).expect("text can be said in JSON");
        Letter {
            health: Health::Healthy,
            key: digest(&[head, "test", &moment_ms.to_string()]),
            json,
            subject,
            text,
        }
    }
}

/// Depends on what is told of which problem, and not on its numbers: who gets a message again knows it.
fn key(message: &Message, head: &str) -> String {
    let mut parts = vec![head.to_owned(), message.sequence.to_string()];
    let name = |kind: &str, problem: &Problem| {
        format!("{kind} {:?} {}", problem.key(), problem.since_ms.unwrap_or_default())
    };
    parts.extend(message.begun().map(|problem| name("began", problem)));
    parts.extend(message.changed.iter().map(|(told, _)| name("gave way", &told.problem)));
    parts.extend(message.lasting.iter().map(|problem| name("lasts", problem)));
    parts.extend(message.ended.iter().map(|told| name("ended", &told.problem)));
    digest(&parts.iter().map(String::as_str).collect::<Vec<_>>())
}

fn digest(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    base::hex::of(&digest.finalize()[..16])
}

/// One line that a header or an environment can have.
fn line(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).take(SUBJECT_CHARS_MAX).collect()
}

pub(crate) fn health_word(health: Health) -> &'static str {
    match health {
        Health::Healthy => "healthy",
        Health::Degraded => "degraded",
        Health::Offline => "offline",
    }
}

fn in_short(problem: &Problem) -> String {
    format!("{}: {}", problem.subject, problem.code().row().title)
}

fn subject(message: &Message, head: &str) -> String {
    // the first of the worst
    let begun = || message.begun().min_by_key(|problem| Reverse(problem.health()));
    let what = match (begun(), message.lasting.first(), message.ended.first()) {
        (Some(problem), ..) => in_short(problem),
        (None, Some(problem), _) => format!("still {}", in_short(problem)),
        (None, None, Some(told)) => format!("ended: {}", in_short(&told.problem)),
        (None, None, None) => "nothing".to_owned(),
    };
    let told = message.begun().count().max(message.lasting.len()).max(message.ended.len());
    let more = if told > 1 { format!(" (and {} more)", told - 1) } else { String::new() };
    line(&format!("[tangelo {head}] {}: {what}{more}", health_word(message.health)))
}

fn text(message: &Message) -> String {
    let mut out = String::new();
    part(&mut out, "Began", &message.began, &|problem| in_words(problem));
    part(&mut out, "Changed", &message.changed, &|(before, now)| {
        format!("{}Before: {}\n", in_words(now), before.problem.reason())
    });
    part(&mut out, "Still there", &message.lasting, &|problem| in_words(problem));
    part(&mut out, "Ended", &message.ended, &ended);
    out.push_str(&format!(
        "The array is {} now. `tangelo status` has everything.\n",
        health_word(message.health)
    ));
    out
}

fn part<T>(out: &mut String, title: &str, all: &[T], words: &dyn Fn(&T) -> String) {
    if all.is_empty() {
        return;
    }
    out.push_str(&format!("{title}:\n\n"));
    for one in all.iter().take(PROBLEMS_MAX) {
        out.push_str(&words(one));
        out.push('\n');
    }
    if all.len() > PROBLEMS_MAX {
        out.push_str(&format!("... and {} more: tangelo status\n\n", all.len() - PROBLEMS_MAX));
    }
}

fn in_words(problem: &Problem) -> String {
    let row = problem.code().row();
    let mut out = format!("{}: {} ({})\n", problem.subject, row.title, row.code);
    out.push_str(&format!("State:  {}\nReason: {}\n", severity(problem.health()), problem.reason()));
    match problem.action() {
        action if action.is_empty() => {}
        action => out.push_str(&format!("Action: {action}\n")),
    }
    out.push_str(&format!("Data:   {}\n", row.data.words()));
    if let Some(since_ms) = problem.since_ms {
        out.push_str(&format!("Since:  {}\n", moment(since_ms)));
    }
    out
}

fn severity(health: Health) -> &'static str {
    if health == Health::Healthy { "a notice" } else { health_word(health) }
}

fn ended(told: &Told) -> String {
    let problem = &told.problem;
    format!("{} ({})\nIt was: {}\n", in_short(problem), problem.code(), problem.reason())
}
