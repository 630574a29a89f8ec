//! Asks the register what the head wants to know.

use heads::{HeadMail, Mail};
use pair::Question;
use setup::SetupError;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use super::company::Company;
use super::threads::HeadMailbox;

/// For ever: one question at a time. Those that came meanwhile are outdated by the last of them. `trouble` has why there is no answer.
pub async fn keep_asking(
    company: Company,
    mut questions: UnboundedReceiver<Question>,
    head: HeadMailbox,
    trouble: watch::Sender<String>,
) {
    let mut client: Option<(Vec<String>, Result<register::Client, SetupError>)> = None;
    while let Some(mut question) = questions.recv().await {
        while let Ok(newer) = questions.try_recv() {
            question = newer;
        }
        let members = company.file().members;
        if client.as_ref().is_none_or(|(known, _)| *known != members) {
            client = Some((members, company.file().register()));
        }
        let Some((_, client)) = &mut client else { continue };
        let now = match client {
            Ok(client) => match client.ask(question).await {
                Ok(content) => {
                    head.send(Mail::Head(HeadMail::Register(content))).await;
                    String::new()
                }
                Err(why) => why.to_string(),
            },
            Err(why) => why.to_string(),
        };
        let before = trouble.send_replace(now.clone());
        match (before.is_empty(), now.is_empty()) {
            (true, false) => tracing::warn!("the register does not answer: {now}"),
            (false, true) => tracing::info!("the register answers again"),
            _ => {}
        }
    }
}
