//! A POST of the message's JSON to a URL.

use std::path::PathBuf;

use hyper::Method;

use crate::deliver::{Delivered, ReadSecret, secret};
use crate::http::{self, Ask, Url};
use crate::letter::Letter;

/// See the header of this file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Webhook {
    pub url: Url,
    /// Its content is sent as a bearer token.
    pub token_file: Option<PathBuf>,
    pub ca_file: Option<PathBuf>,
}

impl Webhook {
    pub(crate) async fn deliver(&self, letter: &Letter, read: ReadSecret) -> Delivered {
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            // who gets it twice knows it
            ("idempotency-key", letter.key.clone()),
        ];
        if let Some(file) = &self.token_file {
            headers.push(("authorization", format!("Bearer {}", secret(file, read).await?)));
        }
        let ask =
            Ask { method: Method::POST, headers, body: letter.json.clone(), ca_file: self.ca_file.clone() };
        http::send(&self.url, ask).await.map(|()| String::new())
    }
}
