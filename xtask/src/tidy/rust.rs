//! One Rust file: how long it and its functions are, how it opens, what must not stand in it.

use super::mask::mask;
use super::{FILE_LINES_MAX, FUNCTION_LINES_MAX};

/// What must not stand in code, and why.
const FORBIDDEN: [(&str, &str); 3] = [
    (concat!("to", "do!"), "write it, or file an issue"),
    (concat!("unimple", "mented!"), "write it, or refuse it with an error"),
    (concat!("db", "g!"), "debugging output"),
];

/// Line and complaint of everything that is wrong.
pub fn check(text: &str, may_be_unsafe: bool) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        found.push((0, format!("{lines} lines, {FILE_LINES_MAX} are the most; split it by concept")));
    }
    if !text.starts_with("//! ") {
        found.push((
            1,
            "it must open with //! and what it is, what always holds, what it must not do".to_owned(),
        ));
    }
    let code = mask(text);
    for (number, line) in code.lines().enumerate() {
        for (word, why) in FORBIDDEN.iter().filter(|(word, _)| line.contains(word)) {
            found.push((number + 1, format!("{word}: {why}")));
        }
        if !may_be_unsafe && has_word(line, concat!("un", "safe")) {
            found.push((number + 1, "only parity and uring may be so".to_owned()));
        }
    }
    for (line, name, lines) in functions(&code) {
        if lines > FUNCTION_LINES_MAX {
            found.push((line, format!("fn {name} has {lines} lines, {FUNCTION_LINES_MAX} are the most")));
        }
    }
    found
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|character: char| !character.is_alphanumeric() && character != '_').any(|found| found == word)
}

/// Line, name and number of lines of every function with a body, in masked code.
fn functions(code: &str) -> Vec<(usize, String, usize)> {
    let mut found = Vec::new();
    // Functions whose end is not seen: line, name, and depth of braces outside; none before the body begins.
    let mut open: Vec<(usize, String, Option<usize>)> = Vec::new();
    let (mut depth, mut parentheses) = (0usize, 0usize);
    for (number, line) in code.lines().enumerate() {
        let mut starts = function_starts(line).into_iter().peekable();
        for (at, character) in line.char_indices() {
            if let Some((_, name)) = starts.next_if(|(start, _)| *start == at) {
                open.push((number + 1, name, None));
            }
            match character {
                '(' | '[' => parentheses += 1,
                ')' | ']' => parentheses = parentheses.saturating_sub(1),
                ';' if parentheses == 0 => drop(open.pop_if(|(_, _, outside)| outside.is_none())),
                '{' => {
                    if let Some((_, _, outside @ None)) = open.last_mut() {
                        *outside = Some(depth);
                    }
                    depth += 1;
                }
                '}' => {
                    depth = depth.saturating_sub(1);
                    if let Some((line, name, _)) = open.pop_if(|(_, _, outside)| *outside == Some(depth)) {
                        found.push((line, name, number + 2 - line));
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// Where in a line `fn name` begins, with the name.
fn function_starts(line: &str) -> Vec<(usize, String)> {
    let mut starts = Vec::new();
    for (at, _) in line.match_indices("fn ") {
        let in_word =
            line[..at].chars().next_back().is_some_and(|before| before.is_alphanumeric() || before == '_');
        let name: String = line[at + 3..]
            .chars()
            .take_while(|character| character.is_alphanumeric() || *character == '_')
            .collect();
        if !in_word && !name.is_empty() {
            starts.push((at, name));
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured() {
        let code = "fn a() {\n    let f = |x| { x };\n}\ntrait T {\n    fn b(&self);\n    fn c(\n        x: [u8; 2],\n    ) -> u8 {\n        fn d() {}\n        0\n    }\n}\n";
        let found = functions(code);
        let expected = [(1, "a", 3), (9, "d", 1), (6, "c", 6)];
        assert_eq!(found, expected.map(|(line, name, lines)| (line, name.to_owned(), lines)));
    }

    #[test]
    fn every_rule_bites() {
        let long = format!("//! x\nfn f() {{\n{}}}\n", "    g();\n".repeat(FUNCTION_LINES_MAX));
        assert_eq!(check(&long, false).len(), 1);
        assert_eq!(check(&format!("//! x\n{}", "\n".repeat(FILE_LINES_MAX)), false).len(), 1);
        assert_eq!(check("fn f() {}\n", false).len(), 1);
        let bad = concat!("//! x\nfn f() { un", "safe { to", "do!() } }\n");
        assert_eq!(check(bad, false).len(), 2);
        assert_eq!(check(bad, true).len(), 1);
        assert!(check("//! todo!() is a macro\nfn f() { g(\"unimplemented!\") }\n", false).is_empty());
    }
}
