//! Reads a TOML document key by key, and keeps the line of each value for error messages.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::ConfigError;

/// A file and its text.
pub(super) struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
}

impl<'a> Reader<'a> {
    pub fn new(path: &'a Path, text: &'a str) -> Reader<'a> {
        Reader { path, text }
    }

    /// The document, or the first thing that is not TOML: a duplicate key, an open bracket.
    pub fn document(&self) -> Result<Spanned<DeTable<'a>>, ConfigError> {
        DeTable::parse(self.text).map_err(|error| {
            let message = error.message().replace('\n', ", ");
            self.refuse(error.span().unwrap_or(0..0), message)
        })
    }

    fn line(&self, span: &Range<usize>) -> usize {
        let start = span.start.min(self.text.len());
        1 + self.text.as_bytes()[..start].iter().filter(|&&b| b == b'\n').count()
    }

    fn refuse(&self, span: Range<usize>, reason: String) -> ConfigError {
        ConfigError { path: self.path.to_owned(), line: Some(self.line(&span)), reason }
    }
}

/// A table whose keys are taken one after the other; what is left over is refused.
pub(super) struct Section<'a> {
    reader: &'a Reader<'a>,
    name: &'static str,
    table: &'a DeTable<'a>,
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    pub fn new(reader: &'a Reader<'a>, name: &'static str, table: &'a DeTable<'a>) -> Section<'a> {
        Section { reader, name, table, known: Vec::new() }
    }

    /// The value of a key that this section may have.
    pub fn take(&mut self, key: &'static str) -> Option<Value<'a>> {
        self.known.push(key);
        let value = self.table.get(key)?;
        Some(Value { reader: self.reader, key, value })
    }

    /// The table of a key that this section may have.
    pub fn section(&mut self, key: &'static str) -> Result<Option<Section<'a>>, ConfigError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match value.value.get_ref() {
            DeValue::Table(table) => Ok(Some(Section::new(self.reader, key, table))),
            _ => Err(value.refuse(format!("{key} is a section: write [{key}] and its keys below it"))),
        }
    }

    /// All keys and values, in the order of the file: of a section whose keys somebody else knows.
    pub fn entries(&self) -> Vec<(&'a str, Value<'a>)> {
        let value = |(key, value)| (key, Value { reader: self.reader, key: self.name, value });
        let mut entries: Vec<_> =
            self.table.iter().map(|(key, found)| value((key.get_ref().as_ref(), found))).collect();
        entries.sort_by_key(|(_, value)| value.value.span().start);
        entries
    }

    /// Refuses the section as a whole: the line is that of its first value.
    pub fn refuse(&self, reason: String) -> ConfigError {
        let first = self.table.values().map(|value| value.span()).min_by_key(|span| span.start);
        self.reader.refuse(first.unwrap_or(0..0), reason)
    }

    /// Refuses what was not taken.
    pub fn finish(self) -> Result<(), ConfigError> {
        let mut unknown: Vec<_> =
            self.table.keys().filter(|key| !self.known.contains(&key.get_ref().as_ref())).collect();
        unknown.sort_by_key(|key| key.span().start);
        let Some(key) = unknown.first() else { return Ok(()) };
        let name = key.get_ref();
        let place = if self.name.is_empty() { String::new() } else { format!(" in [{}]", self.name) };
        let advice = match nearest(name, &self.known) {
            Some(known) => format!("did you mean \"{known}\"?"),
            None => format!("known are {}", self.known.join(", ")),
        };
        Err(self.reader.refuse(key.span(), format!("unknown key \"{name}\"{place}; {advice}")))
    }
}

/// A value and where it stands.
pub(super) struct Value<'a> {
    reader: &'a Reader<'a>,
    key: &'static str,
    value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Value<'a> {
    pub fn refuse(&self, reason: String) -> ConfigError {
        self.reader.refuse(self.value.span(), reason)
    }

    pub fn line(&self) -> usize {
        self.reader.line(&self.value.span())
    }

    fn wrong_type(&self, wanted: &str) -> ConfigError {
        self.refuse(format!("{} must be {wanted}, not {}", self.key, type_name(self.value.get_ref())))
    }

    /// The keys of a table within a list; `None` where it is none.
    pub fn table(&self, name: &'static str) -> Option<Section<'a>> {
        match self.value.get_ref() {
            DeValue::Table(table) => Some(Section::new(self.reader, name, table)),
            _ => None,
        }
    }

    /// Text, a whole number or a truth value, as text.
    pub fn plain(&self) -> Result<String, ConfigError> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Boolean(value) => Ok(value.to_string()),
            DeValue::Integer(number) => Ok(number.as_str().to_owned()),
            _ => Err(self.wrong_type("text, a whole number, true or false")),
        }
    }

    pub fn text(&self, wanted: &str) -> Result<&'a str, ConfigError> {
        self.value.get_ref().as_str().ok_or_else(|| self.wrong_type(wanted))
    }

    pub fn list(&self, wanted: &str) -> Result<Vec<Value<'a>>, ConfigError> {
        let Some(items) = self.value.get_ref().as_array() else { return Err(self.wrong_type(wanted)) };
        Ok(items.iter().map(|value| Value { reader: self.reader, key: self.key, value }).collect())
    }

    /// A path; a relative one is taken from the file's directory.
    pub fn path(&self) -> Result<PathBuf, ConfigError> {
        let text = self.text("a path in quotes")?;
        if text.is_empty() || text.contains('\0') {
            return Err(self.refuse(format!(
                "{} must be a path, \"{}\" is none",
                self.key,
                text.escape_debug()
            )));
        }
        let directory = self.reader.path.parent().unwrap_or(Path::new(""));
        let path = directory.join(text);
        std::path::absolute(&path).map_err(|error| self.refuse(format!("{text}: {error}")))
    }

    pub fn address(&self) -> Result<SocketAddr, ConfigError> {
        let wanted = "an address and a port in quotes, such as \"0.0.0.0:3260\" or \"[::]:3260\"";
        let text = self.text(wanted)?;
        text.parse().map_err(|_| self.refuse(format!("\"{text}\" is not an address; write {wanted}")))
    }

    pub fn integer(&self, min: u64, max: u64) -> Result<u64, ConfigError> {
        let Some(integer) = self.value.get_ref().as_integer() else {
            return Err(self.wrong_type("a whole number"));
        };
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        number.filter(|number| (min..=max).contains(number)).ok_or_else(|| {
            self.refuse(format!("{} must be {min} to {max}, not {}", self.key, integer.as_str()))
        })
    }
}

fn type_name(value: &DeValue) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}

/// The known key that an unknown one was probably meant to be: at most two letters (a third of it) away.
fn nearest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let distances = known.iter().map(|&key| (distance(name, key), key));
    distances.min().filter(|(far, key)| *far <= 2 && *far * 3 <= key.len()).map(|(_, key)| key)
}

/// Levenshtein distance in bytes; config keys are short, and `name` is cut.
fn distance(name: &str, key: &str) -> usize {
    let name = &name.as_bytes()[..name.len().min(64)];
    let mut row: Vec<usize> = (0..=key.len()).collect();
    for (i, a) in name.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in key.bytes().enumerate() {
            let replace = diagonal + usize::from(*a != b);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[key.len()]
}
