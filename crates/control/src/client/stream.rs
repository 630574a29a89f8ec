//! Server-sent events, as the API's stream of events sends them.

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::task::JoinHandle;

/// A message of a stream.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Message {
    /// Empty for an event.
    pub kind: String,
    pub data: String,
}

/// Bytes of a message that is not whole yet.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// A stream that was opened.
pub struct Stream {
    body: Incoming,
    connection: JoinHandle<()>,
    parser: Parser,
}

impl Stream {
    pub(super) fn new(body: Incoming, connection: JoinHandle<()>) -> Stream {
        Stream { body, connection, parser: Parser::default() }
    }

    /// The next message; `None` where the stream has ended or broken off.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.parser.next() {
                return Some(message);
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(bytes) = frame.into_data() {
                self.parser.bytes.extend_from_slice(&bytes);
            }
            if self.parser.bytes.len() > MESSAGE_BYTES_MAX {
                return None;
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// Takes messages out of bytes. Lines end with a line feed.
#[derive(Default)]
struct Parser {
    bytes: Vec<u8>,
    message: Message,
}

impl Parser {
    fn next(&mut self) -> Option<Message> {
        while let Some(end) = self.bytes.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]).into_owned();
            if line.is_empty() {
                let message = std::mem::take(&mut self.message);
                if !message.data.is_empty() {
                    return Some(message);
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => self.message.kind = value.to_owned(),
                "data" => self.message.data.push_str(value),
                // a comment, the number, or what a later version adds
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_in_pieces() {
        let text =
            ": hello\n\nid: 7\ndata: {\"a\": 1}\n\nevent: dropped\ndata: 5\n\n:\n\ndata: ä\n\ndata: half";
        for size in 1..text.len() {
            let mut parser = Parser::default();
            let mut messages = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                parser.bytes.extend_from_slice(piece);
                while let Some(message) = parser.next() {
                    messages.push((message.kind, message.data));
                }
            }
            let expected = [("", "{\"a\": 1}"), ("dropped", "5"), ("", "ä")];
            assert_eq!(messages, expected.map(|(kind, data)| (kind.to_owned(), data.to_owned())), "{size}");
        }
    }
}
