//! Each kind of step has its words and its JSON, and no code is used twice.

use std::collections::BTreeSet;

use super::examples::examples;
use super::*;
use crate::worded;

#[test]
fn a_step_reads_well_and_is_read_back() {
    for (step, words) in examples() {
        assert_eq!(step.text(), words);
        worded::check(step);
    }
}

#[test]
fn each_code_is_of_one_kind_of_step() {
    let mut kinds = BTreeSet::new();
    let mut codes = BTreeSet::new();
    for (step, _) in examples() {
        let code = serde_json::to_value(&step).unwrap()["code"].as_str().unwrap().to_owned();
        let debug = format!("{step:?}");
        let kind = debug.split([' ', '{']).next().unwrap().to_owned();
        assert!(codes.insert(code.clone()) == kinds.insert(kind), "{code}");
    }
}

/// Earlier versions recorded words only.
#[test]
fn recorded_words_are_read() {
    let json =
        r#"["create volume vm-01", {"code": "delete-pool", "pool": "fast", "text": "delete pool fast"}]"#;
    let steps = recorded::deserialize(&mut serde_json::Deserializer::from_str(json)).unwrap();
    let words: Vec<String> = steps.iter().map(ChangeStep::text).collect();
    assert_eq!(words, ["create volume vm-01", "delete pool fast"]);
    assert_eq!(steps[1], PoolStep::DeletePool { pool: "fast".to_owned() }.into());
}
