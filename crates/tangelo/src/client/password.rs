//! Passwords: from a file, or from whoever is at the terminal.

use std::io::{IsTerminal, Read, Write, stderr, stdin};
use std::path::Path;

use control::secret_file;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::Failure;

/// More than any password has.
const BYTES_MAX: usize = 1024;

/// What is asked for at the terminal twice, or what the file holds, without its line end.
pub(super) fn read(user: &str, file: Option<&Path>) -> Result<String, Failure> {
    if let Some(path) = file {
        let text = secret_file::read(path)
            .map_err(|error| Failure::Usage(format!("{}: the password: {error}", path.display())))?;
        let line = text.strip_suffix('\n').unwrap_or(&text);
        return Ok(line.strip_suffix('\r').unwrap_or(line).to_owned());
    }
    if !stdin().is_terminal() {
        let message = "there is no terminal to ask for the password: give --password-file FILE";
        return Err(Failure::Usage(message.to_owned()));
    }
    let asked = (|| Ok((ask(&format!("Password of {user}: "))?, ask("The same again: ")?)))();
    match asked.map_err(|error: std::io::Error| Failure::Usage(format!("the terminal: {error}")))? {
        (Some(first), Some(second)) if first == second => Ok(first),
        (Some(_), Some(_)) => Err(Failure::Usage("these were not the same; nothing was changed".to_owned())),
        _ => Err(Failure::Usage("nothing was changed".to_owned())),
    }
}

/// The terminal as it was, when this is dropped.
struct Silent(Termios);

impl Silent {
    /// Shows nothing that is typed, and gives each key as it comes: also the one that would end the program.
    fn begin() -> std::io::Result<Silent> {
        let before = tcgetattr(stdin())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(stdin(), OptionalActions::Flush, &silent)?;
        Ok(Silent(before))
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Flush, &self.0);
    }
}

fn ask(question: &str) -> std::io::Result<Option<String>> {
    let _silent = Silent::begin()?;
    let mut terminal = stderr();
    write!(terminal, "{question}")?;
    terminal.flush()?;
    let typed = typed(stdin().lock().bytes());
    writeln!(terminal)?;
    typed
}

/// What was typed until the line's end; `None`: it was given up (Control-C, or Control-D at the beginning).
fn typed(keys: impl Iterator<Item = std::io::Result<u8>>) -> std::io::Result<Option<String>> {
    let mut bytes = Vec::new();
    for key in keys {
        match key? {
            b'\r' | b'\n' => break,
            3 | 26 | 28 => return Ok(None),
            4 if bytes.is_empty() => return Ok(None),
            // Control-U
            21 => bytes.clear(),
            8 | 127 => {
                // a character of UTF-8 has several bytes
                while bytes.pop().is_some_and(|byte: u8| byte & 0xc0 == 0x80) {}
            }
            byte => bytes.push(byte),
        }
        if bytes.len() > BYTES_MAX {
            break;
        }
    }
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|_| std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::typed;

    #[test]
    fn keys() {
        let of = |text: &str| typed(text.bytes().map(Ok)).unwrap();
        assert_eq!(of("pass word\nmore"), Some("pass word".to_owned()));
        assert_eq!(of("abü\u{7f}c\r"), Some("abc".to_owned()));
        assert_eq!(of("\u{7f}a\n"), Some("a".to_owned()));
        assert_eq!(of("wrong\u{15}right\n"), Some("right".to_owned()));
        assert_eq!(of("half"), Some("half".to_owned()));
        assert_eq!(of("half\u{3}"), None);
        assert_eq!(of("\u{4}"), None);
        assert!(typed([0xff, b'\n'].map(Ok).into_iter()).is_err());
    }
}
