//! What drives said on earlier days: `health.json` in the head's state directory. It makes forecasts of wear, and survives restarts.
//!
//! What always holds: it is bounded, and replaced as a whole. It is no more than a help: one that cannot be read begins anew.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use base::limits::CONFIGURED_DRIVES_MAX;
use serde::{Deserialize, Serialize};

use crate::Reading;
use crate::wear::{DAY_MS, WearPoint};

const FILE: &str = "health.json";
const FILE_BYTES_MAX: u64 = 8 << 20;
const VERSION: u32 = 1;
/// Points of one drive: one a day for two months, then one a week.
const POINTS_MAX: usize = 128;
const DAILY_MS: u64 = 60 * DAY_MS;
const WEEK_MS: u64 = 7 * DAY_MS;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct DriveHistory {
    model: String,
    serial: String,
    /// The oldest first.
    points: Vec<WearPoint>,
}

#[derive(Serialize, Deserialize)]
struct Document {
    version: u32,
    drives: Vec<DriveHistory>,
}

/// See the header of this file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct History {
    /// By model and serial number.
    drives: BTreeMap<(String, String), Vec<WearPoint>>,
}

impl History {
    /// The error is for the log: the history is empty then.
    pub fn load(directory: &Path) -> (History, Option<String>) {
        match read(&directory.join(FILE)) {
            Ok(history) => (history, None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (History::default(), None),
            Err(error) => {
                let why = format!("{FILE} cannot be read, and begins anew: {error}");
                (History::default(), Some(why))
            }
        }
    }

    /// What the drive said earlier, the oldest first.
    pub fn points(&self, reading: &Reading) -> &[WearPoint] {
        self.drives.get(&key(reading)).map_or(&[], Vec::as_slice)
    }

    /// Whether there is something new to be stored.
    pub fn note(&mut self, reading: &Reading, clock_ms: u64) -> bool {
        if reading.serial.is_empty() {
            return false;
        }
        let point = WearPoint {
            at_ms: clock_ms,
            used_percent: reading.used_percent,
            written_bytes: reading.written_bytes,
            media_errors: reading.media_errors,
        };
        let is_known = self.drives.contains_key(&key(reading));
        if !is_known && self.drives.len() >= CONFIGURED_DRIVES_MAX {
            self.forget_one();
        }
        let points = self.drives.entry(key(reading)).or_default();
        // a clock that was set back
        points.retain(|point| point.at_ms <= clock_ms);
        if let Some(last) = points.last() {
            let falls = point.used_percent.zip(last.used_percent).is_some_and(|(now, before)| now < before);
            let is_new_day = clock_ms - last.at_ms >= DAY_MS;
            let has_errors = point.media_errors != last.media_errors;
            match () {
                // it counts otherwise than before
                () if falls => points.clear(),
                () if !is_new_day && has_errors && points.len() > 1 => _ = points.pop(),
                () if !is_new_day && !has_errors => return false,
                () => {}
            }
        }
        points.push(point);
        thin(points, clock_ms);
        true
    }

    /// The drive that has not been seen for longest.
    fn forget_one(&mut self) {
        let last = |points: &Vec<WearPoint>| points.last().map_or(0, |point| point.at_ms);
        let oldest = self.drives.iter().min_by_key(|(_, points)| last(points)).map(|(key, _)| key.clone());
        if let Some(oldest) = oldest {
            self.drives.remove(&oldest);
        }
    }

    /// Replaces the stored one. Durable when this returns.
    pub fn save(&self, directory: &Path) -> io::Result<()> {
        let drives = self.drives.iter().map(|((model, serial), points)| DriveHistory {
            model: model.clone(),
            serial: serial.clone(),
            points: points.clone(),
        });
        let document = Document { version: VERSION, drives: drives.collect() };
        let bytes = serde_json::to_vec(&document).expect("numbers and names can be said in JSON");
        Ok(durable::replace(&directory.join(FILE), &bytes)?)
    }
}

fn key(reading: &Reading) -> (String, String) {
    (reading.model.clone(), reading.serial.clone())
}

/// Older points are kept one a week; if there are too many all the same, the oldest go.
fn thin(points: &mut Vec<WearPoint>, clock_ms: u64) {
    let daily_from = clock_ms.saturating_sub(DAILY_MS);
    let mut kept_ms = None;
    points.retain(|point| {
        let is_kept = point.at_ms >= daily_from || kept_ms.is_none_or(|kept| point.at_ms - kept >= WEEK_MS);
        kept_ms = if is_kept { Some(point.at_ms) } else { kept_ms };
        is_kept
    });
    points.drain(..points.len().saturating_sub(POINTS_MAX));
}

fn read(path: &Path) -> io::Result<History> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    let document: Document = serde_json::from_slice(&bytes)?;
    if document.version != VERSION {
        return Err(io::Error::other(format!("it has version {}", document.version)));
    }
    let mut history = History::default();
    for DriveHistory { model, serial, mut points } in document.drives.into_iter().take(CONFIGURED_DRIVES_MAX)
    {
        points.sort_by_key(|point| point.at_ms);
        points.drain(..points.len().saturating_sub(POINTS_MAX));
        history.drives.insert((model, serial), points);
    }
    Ok(history)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing::reading;

    const START: u64 = 1_000 * DAY_MS;

    fn used(percent: u16) -> Reading {
        Reading { used_percent: Some(percent), ..reading() }
    }

    #[test]
    fn a_day_has_one_point_and_years_have_few() {
        let mut history = History::default();
        for hour in 0..24 * 800 {
            history.note(&used(1), START + hour * DAY_MS / 24);
        }
        let points = history.points(&reading());
        assert_eq!(points.len(), POINTS_MAX);
        let daily = points.windows(2).filter(|pair| pair[1].at_ms - pair[0].at_ms == DAY_MS).count();
        assert!((58..=62).contains(&daily), "{daily}");
        let oldest = START + 799 * DAY_MS - points[0].at_ms;
        assert!(oldest > 365 * DAY_MS, "they reach back {} days", oldest / DAY_MS);
    }

    #[test]
    fn what_is_counted_otherwise_begins_anew_and_clocks_may_be_set_back() {
        let mut history = History::default();
        for day in 0..10 {
            assert!(history.note(&used(50), START + day * DAY_MS));
        }
        assert!(history.note(&used(3), START + 10 * DAY_MS));
        assert_eq!(history.points(&reading()).len(), 1);
        assert!(history.note(&used(3), START));
        assert_eq!(history.points(&reading()).len(), 1);
        // errors are noted at once
        let errors = Reading { media_errors: Some(1), ..used(3) };
        assert!(history.note(&errors, START + 1));
        assert!(!history.note(&errors, START + 2));
        // a drive without a name is nobody
        assert!(!history.note(&Reading { serial: String::new(), ..reading() }, START));
    }

    #[test]
    fn drives_that_are_gone_give_way() {
        let mut history = History::default();
        for index in 0..CONFIGURED_DRIVES_MAX as u64 + 1 {
            let drive = Reading { serial: format!("S{index}"), ..reading() };
            history.note(&drive, START + index);
        }
        assert_eq!(history.drives.len(), CONFIGURED_DRIVES_MAX);
        assert!(history.points(&Reading { serial: "S0".to_owned(), ..reading() }).is_empty());
    }

    #[test]
    fn what_is_stored_is_read_and_rubbish_begins_anew() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        assert_eq!(History::load(at), (History::default(), None));
        let mut history = History::default();
        history.note(&used(7), START);
        history.save(at).unwrap();
        assert_eq!(History::load(at), (history, None));
        for rubbish in ["", "{", "[[[", "{\"version\":2,\"drives\":[]}", "\0\0"] {
            fs::write(at.join(FILE), rubbish).unwrap();
            let (history, why) = History::load(at);
            assert_eq!(history, History::default());
            assert!(why.is_some_and(|why| why.contains("begins anew")));
        }
    }
}
