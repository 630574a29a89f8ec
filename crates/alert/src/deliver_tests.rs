//! Servers that are slow, hostile or gone, and programs like them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::command::Command;
use crate::deliver::{Delivered, Means, Undelivered};
use crate::http::Url;
use crate::letter::Letter;
use crate::mail::{Mail, MailTls};
use crate::webhook::Webhook;

fn letter() -> Letter {
    Letter::test("box", 1_795_694_400_000)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

async fn deliver(means: Means) -> Delivered {
    means.deliver(&letter(), "box", read).await
}

/// Serves each connection with this, and gives the port.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || listener.incoming().flatten().for_each(&serve));
    port
}

/// A port on which nobody listens.
fn nobody() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn webhook(port: u16) -> Webhook {
    let url = Url::parse(&format!("http://127.0.0.1:{port}/hook?k=secret")).unwrap();
    Webhook { url, token_file: None, ca_file: None }
}

/// The whole request: its head, and its body.
fn request(stream: &TcpStream) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) < 3 {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (head, body)
}

/// A server that answers with this, and what it was asked.
fn answering(answer: &'static [u8]) -> (u16, Receiver<(String, Vec<u8>)>) {
    let (tell, told) = channel();
    let port = server(move |mut stream| {
        let _gone = tell.send(request(&stream));
        let _gone = stream.write_all(answer);
    });
    (port, told)
}

#[tokio::test]
async fn a_webhook_gets_json_with_a_token_and_a_key() {
    let directory = tempfile::tempdir().unwrap();
    let token_file = directory.path().join("token");
    std::fs::write(&token_file, "abc\n").unwrap();
    let (port, told) = answering(b"HTTP/1.1 204 No Content\r\n\r\n");
    let means = Means::Webhook(Webhook { token_file: Some(token_file.clone()), ..webhook(port) });
    assert_eq!(deliver(means.clone()).await, Ok(String::new()));
    let (head, body) = told.recv().unwrap();
    for line in ["POST /hook?k=secret HTTP/1.1\r\n", "authorization: Bearer abc\r\n", &letter().key] {
        assert!(head.contains(line), "{head}");
    }
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&body["schema"], &body["test"], &body["head"]), (&1.into(), &true.into(), &"box".into()));
    // a token that cannot be read, or be a header, is shown to nobody
    std::fs::write(&token_file, "abc\u{7}").unwrap();
    let refused = deliver(means.clone()).await.unwrap_err();
    assert!(!refused.may_have_arrived && !refused.why.contains("abc"), "{refused:?}");
    std::fs::remove_file(&token_file).unwrap();
    assert!(!deliver(means).await.unwrap_err().may_have_arrived);
}

#[tokio::test]
async fn what_a_webhook_answers_says_whether_it_may_have_arrived() {
    let cases: [(&[u8], bool, &str); 6] = [
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\nno\x1b!", true, "500 Internal Server Error: no!"),
        (b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", false, "403"),
        (b"HTTP/1.1 302 Go\r\nLocation: http://127.0.0.1:1/\r\n\r\n", false, "redirects"),
        (b"HTTP/1.1 2", true, "broken off"),
        (b"\0\xff\0\xffrubbish\r\n\r\n", true, "broken off"),
        (b"", true, "broken off"),
    ];
    for (answer, may_have_arrived, words) in cases {
        let refused = deliver(Means::Webhook(webhook(answering(answer).0))).await.unwrap_err();
        assert_eq!(refused.may_have_arrived, may_have_arrived, "{refused:?}");
        assert!(refused.why.contains(words) && !refused.why.contains("secret"), "{refused:?}");
    }
    let refused = deliver(Means::Webhook(webhook(nobody()))).await.unwrap_err();
    assert!(!refused.may_have_arrived && refused.why.contains("cannot be reached"), "{refused:?}");
    let url = Url::parse("http://no-such-name.invalid/").unwrap();
    let refused = deliver(Means::Webhook(Webhook { url, ..webhook(1) })).await.unwrap_err();
    assert!(!refused.may_have_arrived, "{refused:?}");
}

#[tokio::test]
async fn servers_that_are_slow_or_talk_without_end_cost_ten_seconds() {
    let endless_body = |mut stream: TcpStream| {
        request(&stream);
        let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 65536]).is_ok() {}
    };
    // it has it, whatever else it says
    assert_eq!(deliver(Means::Webhook(webhook(server(endless_body)))).await, Ok(String::new()));
    let endless_head = |mut stream: TcpStream| {
        request(&stream);
        let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\nx: ");
        while stream.write_all(&[b'x'; 65536]).is_ok() {}
    };
    let silent = |stream: TcpStream| {
        std::thread::sleep(Duration::from_secs(60));
        drop(stream);
    };
    let drips = |mut stream: TcpStream| {
        request(&stream);
        while stream.write_all(b"H").is_ok() {
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    let began = Instant::now();
    let all = [server(endless_head), server(silent), server(drips)];
    let attempts = all.map(|port| tokio::spawn(deliver(Means::Webhook(webhook(port)))));
    for attempt in attempts {
        let refused = attempt.await.unwrap().unwrap_err();
        assert!(refused.may_have_arrived, "{refused:?}");
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_certificate_must_be_of_a_named_authority_and_for_the_name() {
    let directory = tempfile::tempdir().unwrap();
    let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let ca_file = directory.path().join("ca.pem");
    std::fs::write(&ca_file, certified.cert.pem()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certified.cert.der().clone()],
            rustls::pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap(),
        )
        .unwrap();
    let config = std::sync::Arc::new(config);
    let port = server(move |stream| {
        let mut tls =
            rustls::StreamOwned::new(rustls::ServerConnection::new(config.clone()).unwrap(), stream);
        let mut buffer = [0; 4096];
        if tls.read(&mut buffer).is_ok_and(|read| read > 0) {
            let _gone = tls.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        }
    });
    let at = |host: &str, ca_file: Option<&Path>| {
        let url = Url::parse(&format!("https://{host}:{port}/")).unwrap();
        Means::Webhook(Webhook { url, token_file: None, ca_file: ca_file.map(Path::to_owned) })
    };
    assert_eq!(deliver(at("127.0.0.1", Some(&ca_file))).await, Ok(String::new()));
    for (host, ca_file) in [("localhost", Some(ca_file.as_path())), ("127.0.0.1", None)] {
        let refused = deliver(at(host, ca_file)).await.unwrap_err();
        assert!(!refused.may_have_arrived, "{refused:?}");
    }
    std::fs::write(&ca_file, "nothing").unwrap();
    let refused = deliver(at("127.0.0.1", Some(&ca_file))).await.unwrap_err();
    assert!(refused.why.contains("has no certificate"), "{refused:?}");
}

fn program(directory: &Path, text: &str) -> Means {
    let path = directory.join("program");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    Means::Command(Command::new(path.to_str().unwrap().to_owned()))
}

#[tokio::test]
async fn a_program_gets_the_json_and_a_summary() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let kept = at.join("kept");
    let means =
        program(at, &format!("{{ echo \"$TANGELO_HEALTH $TANGELO_SUMMARY\"; cat; }} >{}", kept.display()));
    assert_eq!(deliver(means).await, Ok(String::new()));
    let text = std::fs::read_to_string(&kept).unwrap();
    let (summary, json) = text.split_once('\n').unwrap();
    assert_eq!((summary, json.as_bytes()), ("healthy [tangelo box] test", &letter().json[..]));
    let refused = deliver(program(at, "echo it is late >&2; exit 3")).await;
    assert_eq!(refused, Err(Undelivered::surely("it has ended with code 3: it is late")));
    assert!(deliver(program(at, "kill -9 $$")).await.unwrap_err().may_have_arrived);
    let gone = Means::Command(Command::new("/nonexistent/program".to_owned()));
    assert!(!deliver(gone).await.unwrap_err().may_have_arrived);
    // a second one waits for the first
    let slow = program(at, "sleep 2");
    let (first, second) = tokio::join!(deliver(slow.clone()), deliver(slow));
    assert_eq!([first.is_ok(), second.is_ok()].iter().filter(|is_ok| **is_ok).count(), 1);
}

fn mail(port: u16, to: &[&str]) -> Means {
    Means::Mail(Mail {
        server: "127.0.0.1".to_owned(),
        port,
        tls: MailTls::None,
        user: None,
        password_file: None,
        from: "tangelo@example.com".to_owned(),
        to: to.iter().map(|to| (*to).to_owned()).collect(),
        ca_file: None,
    })
}

/// A mail server that answers a command by its first word with this, else with 250.
fn mail_server(answers: &'static [(&'static str, &'static str)]) -> (u16, Receiver<String>) {
    let (tell, told) = channel();
    let port = server(move |mut stream| {
        let mut say = stream.try_clone().unwrap();
        let _gone = say.write_all(b"220 fake\r\n");
        let (mut all, mut is_data) = (String::new(), false);
        for line in BufReader::new(&mut stream).lines().map_while(Result::ok) {
            all += &format!("{line}\n");
            let known = answers.iter().find(|(word, _)| line.contains(word));
            let answer = match (is_data, line.as_str()) {
                (true, ".") => known.map_or("250 taken", |(_, answer)| answer),
                (true, _) => continue,
                (false, "DATA") => known.map_or("354 go on", |(_, answer)| answer),
                (false, "QUIT") => "221 bye",
                (false, _) => known.map_or("250 fine", |(_, answer)| answer),
            };
            is_data = answer.starts_with("354");
            match answer {
                "silence" => std::thread::sleep(Duration::from_secs(60)),
                "endless" => while say.write_all(&[b'2'; 65536]).is_ok() {},
                answer => _ = say.write_all(format!("{answer}\r\n").as_bytes()),
            }
        }
        let _gone = tell.send(all);
    });
    (port, told)
}

#[tokio::test]
async fn mail_is_plain_text_that_nobody_answers() {
    let (port, told) = mail_server(&[]);
    assert_eq!(deliver(mail(port, &["a@example.com", "b@example.com"])).await, Ok(String::new()));
    let all = told.recv().unwrap();
    for line in [
        "EHLO box\n",
        "MAIL FROM:<tangelo@example.com>",
        "RCPT TO:<a@example.com>\n",
        "RCPT TO:<b@example.com>\n",
        "Subject: [tangelo box] test\n",
        "Auto-Submitted: auto-generated\n",
        &format!("Message-ID: <{}@box>\n", letter().key),
        "This is a test of",
    ] {
        assert!(all.contains(line), "no {line} in {all}");
    }
}

#[tokio::test]
async fn one_receiver_that_is_refused_keeps_the_mail_from_nobody_else() {
    let (port, _told) = mail_server(&[("TO:<b@", "550 no such user")]);
    let note = deliver(mail(port, &["a@example.com", "b@example.com", "c@example.com"])).await.unwrap();
    assert!(note.contains("not to all: b@example.com") && note.contains("no such user"), "{note}");
    let refused = deliver(mail(port, &["b@example.com"])).await.unwrap_err();
    assert!(!refused.may_have_arrived && refused.why.contains("no such user"), "{refused:?}");
}

#[tokio::test]
async fn what_a_mail_server_says_tells_whether_the_mail_may_have_arrived() {
    let attempt =
        async |answers| deliver(mail(mail_server(answers).0, &["a@example.com"])).await.unwrap_err();
    let cases: [(&'static [(&str, &str)], bool); 5] = [
        (&[("EHLO", "554 go away")], false),
        (&[("MAIL", "451 later")], false),
        (&[("DATA", "451 later")], false),
        (&[(".", "552 too large")], false),
        (&[("DATA", "endless")], true),
    ];
    for (answers, may_have_arrived) in cases {
        let refused = attempt(answers).await;
        assert_eq!(refused.may_have_arrived, may_have_arrived, "{answers:?}: {refused:?}");
        assert!(refused.why.len() < 400, "{refused:?}");
    }
    let refused = deliver(mail(nobody(), &["a@example.com"])).await.unwrap_err();
    assert!(!refused.may_have_arrived && refused.why.contains("cannot be reached"), "{refused:?}");
    // a mail that is to be encrypted is not sent in plain
    let Means::Mail(plain) = mail(mail_server(&[]).0, &["a@example.com"]) else { unreachable!() };
    let refused = deliver(Means::Mail(Mail { tls: MailTls::StartTls, ..plain })).await.unwrap_err();
    assert!(!refused.may_have_arrived && refused.why.contains("STARTTLS"), "{refused:?}");
}

#[tokio::test]
async fn mail_servers_that_hang_cost_half_a_minute() {
    let began = Instant::now();
    let before = tokio::spawn(deliver(mail(mail_server(&[("EHLO", "silence")]).0, &["a@example.com"])));
    let after = tokio::spawn(deliver(mail(mail_server(&[(".", "silence")]).0, &["a@example.com"])));
    assert!(!before.await.unwrap().unwrap_err().may_have_arrived);
    assert!(after.await.unwrap().unwrap_err().may_have_arrived);
    assert!(began.elapsed() < Duration::from_secs(45), "{:?}", began.elapsed());
}
