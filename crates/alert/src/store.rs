//! `alerts.json` in the state directory: what each channel was told. A file that is lost, or cannot be read, has everything that lasts told
//! once more.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use api::Problem;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::channel::{Channel, Told};

const FILE: &str = "alerts.json";
const VERSION: u32 = 1;
const FILE_BYTES_MAX: u64 = 64 << 20;

/// What is stored of a channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Kept {
    /// Where it leads.
    pub target: String,
    pub sequence: u64,
    pub told: Vec<Told>,
}

impl Kept {
    pub(crate) fn of(channel: &Channel, target: &str) -> Kept {
        Kept {
            target: target.to_owned(),
            sequence: channel.sequence(),
            told: channel.told().cloned().collect(),
        }
    }
}

/// By the channels' names.
pub(crate) type AllKept = BTreeMap<String, Kept>;

#[derive(Serialize, Deserialize)]
struct Document {
    version: u32,
    channels: Vec<ChannelJson>,
}

#[derive(Serialize, Deserialize)]
struct ChannelJson {
    name: String,
    target: String,
    sequence: u64,
    /// Problems that another version of the program does not know are left out.
    told: Vec<Value>,
}

#[derive(Serialize, Deserialize)]
struct ToldJson {
    problem: Problem,
    told_ms: u64,
    is_sure: bool,
}

/// What is there, and why it is not everything.
pub(crate) fn load(directory: &Path) -> (AllKept, Option<String>) {
    match read(&directory.join(FILE)) {
        Ok(kept) => (kept, None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (AllKept::new(), None),
        Err(error) => {
            (AllKept::new(), Some(format!("{FILE} cannot be read: {error}: what lasts is told once more")))
        }
    }
}

fn read(path: &Path) -> io::Result<AllKept> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    let document: Document = serde_json::from_slice(&bytes)?;
    if document.version != VERSION {
        return Err(io::Error::other(format!("it has version {}", document.version)));
    }
    let told = |value: Value| {
        let ToldJson { problem, told_ms, is_sure } = serde_json::from_value(value).ok()?;
        Some(Told { problem, told_ms, is_sure, is_seen: false, gone_ms: None })
    };
    let kept = document.channels.into_iter().map(|channel| {
        let ChannelJson { name, target, sequence, told: all } = channel;
        (name, Kept { target, sequence, told: all.into_iter().filter_map(told).collect() })
    });
    Ok(kept.collect())
}

/// Replaces what is stored. Durable when this returns.
pub(crate) fn save(directory: &Path, kept: &AllKept) -> io::Result<()> {
    let channel = |(name, kept): (&String, &Kept)| {
        let told = |told: &Told| {
            let Told { problem, told_ms, is_sure, .. } = told.clone();
            serde_json::to_value(ToldJson { problem, told_ms, is_sure })
        };
        let told = kept.told.iter().map(told).collect::<Result<Vec<_>, _>>()?;
        Ok(ChannelJson { name: name.clone(), target: kept.target.clone(), sequence: kept.sequence, told })
    };
    let channels = kept.iter().map(channel).collect::<Result<Vec<_>, serde_json::Error>>()?;
    let bytes = serde_json::to_vec(&Document { version: VERSION, channels })?;
    Ok(durable::replace(&directory.join(FILE), &bytes)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use api::{ProblemFacts, Subject};

    use super::*;

    #[test]
    fn what_is_stored_is_read_and_what_is_not_known_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        assert_eq!(load(at), (AllKept::new(), None));
        let problem =
            Problem::new(Subject::Array, ProblemFacts::HealthUnwatched { program: "smartctl".to_owned() });
        let told = Told { problem, told_ms: 7, is_sure: true, is_seen: false, gone_ms: None };
        let kept = Kept { target: "https://a".to_owned(), sequence: 3, told: vec![told] };
        let all = AllKept::from([("webhook".to_owned(), kept)]);
        save(at, &all).unwrap();
        assert_eq!(load(at), (all, None));
        let text = fs::read_to_string(at.join(FILE)).unwrap();
        fs::write(at.join(FILE), text.replace("health-unwatched", "no-such-code")).unwrap();
        let (kept, why) = load(at);
        assert_eq!((kept["webhook"].sequence, kept["webhook"].told.len(), why), (3, 0, None));
        for rubbish in ["", "{", "[[[", "{\"version\":2,\"channels\":[]}", "\0"] {
            fs::write(at.join(FILE), rubbish).unwrap();
            assert!(load(at).1.is_some_and(|why| why.contains("once more")), "{rubbish}");
        }
    }
}
