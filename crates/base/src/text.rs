//! Text from outside: names that devices and programs give themselves.

/// Printable ASCII, trimmed, at most `bytes_max` bytes; `None` where nothing is left. Line breaks become blanks.
pub fn printable(bytes: &[u8], bytes_max: usize) -> Option<String> {
    let blank = |byte: u8| if byte.is_ascii_whitespace() { b' ' } else { byte };
    let kept = bytes.iter().map(|&byte| blank(byte)).filter(|byte| byte.is_ascii_graphic() || *byte == b' ');
    // blanks in front do not count
    let kept = kept.skip_while(|byte| *byte == b' ');
    let text: String = kept.take(bytes_max).map(char::from).collect();
    let text = text.trim_end();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn nothing_but_printable_text_is_left() {
        assert_eq!(printable(b"  Fast SSD \0\x1b[0m\n", 64).as_deref(), Some("Fast SSD [0m"));
        assert_eq!(printable(b"  abcdef", 3).as_deref(), Some("abc"));
        assert_eq!(printable(b"a\nb", 64).as_deref(), Some("a b"));
        assert_eq!(printable("ä\u{202e}".as_bytes(), 64), None);
        assert_eq!(printable(b"\n \t", 64), None);
    }
}
