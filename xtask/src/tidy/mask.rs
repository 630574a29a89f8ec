//! Rust source with its comments, strings and character literals blanked out, line for line: what is left is code.

/// As long as `source`, with the same line breaks.
pub fn mask(source: &str) -> String {
    let characters: Vec<char> = source.chars().collect();
    let mut masked = String::with_capacity(source.len());
    let mut at = 0;
    while at < characters.len() {
        let end = end_of_blank(&characters, at);
        match end {
            Some(end) => {
                let blank = |&character: &char| if character == '\n' { '\n' } else { ' ' };
                masked.extend(characters[at..end].iter().map(blank));
                at = end;
            }
            None => {
                masked.push(characters[at]);
                at += 1;
            }
        }
    }
    masked
}

/// Where the comment or literal that begins at `at` ends; none where code stands there.
fn end_of_blank(text: &[char], at: usize) -> Option<usize> {
    let next = |ahead: usize| text.get(at + ahead).copied().unwrap_or('\0');
    match (text[at], next(1)) {
        ('/', '/') => Some(find(text, at, |tail| tail[0] == '\n').unwrap_or(text.len())),
        ('/', '*') => Some(end_of_block_comment(text, at)),
        ('"', _) => Some(end_of_string(text, at + 1)),
        ('r', '"' | '#') if !follows_a_word(text, at) => end_of_raw_string(text, at + 1),
        ('b', 'r') if !follows_a_word(text, at) && matches!(next(2), '"' | '#') => {
            end_of_raw_string(text, at + 2)
        }
        ('\'', '\\') => Some(find(text, at + 3, |tail| tail[0] == '\'').map_or(text.len(), |end| end + 1)),
        ('\'', _) if next(2) == '\'' => Some(at + 3),
        _ => None,
    }
}

fn find(text: &[char], from: usize, matches: impl Fn(&[char]) -> bool) -> Option<usize> {
    (from..text.len()).find(|&at| matches(&text[at..]))
}

fn follows_a_word(text: &[char], at: usize) -> bool {
    at > 0 && (text[at - 1].is_alphanumeric() || text[at - 1] == '_')
}

fn end_of_block_comment(text: &[char], at: usize) -> usize {
    let (mut depth, mut at) = (0, at);
    while at < text.len() {
        match (text[at], text.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at.min(text.len())
}

fn end_of_string(text: &[char], mut at: usize) -> usize {
    while at < text.len() {
        match text[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// `at` is behind the `r`. None where it is a raw identifier.
fn end_of_raw_string(text: &[char], at: usize) -> Option<usize> {
    let hashes = text[at..].iter().take_while(|&&character| character == '#').count();
    if text.get(at + hashes) != Some(&'"') {
        return None;
    }
    let is_end = |tail: &[char]| {
        tail[0] == '"' && tail.len() > hashes && tail[1..=hashes].iter().all(|&character| character == '#')
    };
    Some(find(text, at + hashes + 1, is_end).map_or(text.len(), |end| end + hashes + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_is_left() {
        // A dot stands for what must be blanked out.
        for (source, expected) in [
            ("a // b\nc", "a ....\nc"),
            ("a /* b /* c */ d */ e", "a ................. e"),
            ("f(\"x{\\\"y\", 1)", "f(......., 1)"),
            ("r#\"a\"b\"# c", "........ c"),
            ("r#type x", "r#type x"),
            ("('{', '\\n', '\\'')", "(..., ...., ....)"),
            ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("b\"{\" br\"{\"", "b... ....."),
        ] {
            assert_eq!(mask(source), expected.replace('.', " "), "{source}");
        }
    }
}
