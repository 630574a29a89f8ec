//! Reads a whole logical unit in order, compares it with a file, and stores a copy on request.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::target::Unit;
use crate::worker::{Retried, Session, World};

const PIECE_BYTES: u32 = 256 << 10;
const DEPTH: usize = 16;

/// A read: where, how much, and how often it was asked for again.
struct Piece {
    offset: u64,
    bytes: u64,
    tries: u32,
}

/// How many bytes are the same, which is all of them; or where the first difference is. And what was met on the way.
pub fn verify(
    env: &mut World,
    unit: &Unit,
    path: &Path,
    copy: Option<&Path>,
) -> Result<(u64, Retried), String> {
    let in_file = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(in_file)?;
    let file_bytes = file.metadata().map_err(in_file)?.len();
    let mut session = Session::open(env, unit, 0)?;
    let size_bytes = session.blocks * u64::from(session.block_bytes);
    if file_bytes > size_bytes {
        return Err(format!("the file has {file_bytes} bytes, the unit only {size_bytes}"));
    }
    let copy_to = copy.map(File::create).transpose().map_err(|error| format!("the copy: {error}"))?;
    if let Some(copy) = &copy_to {
        copy.set_len(size_bytes).map_err(|error| format!("the copy: {error}"))?;
    }
    let pieces = (0..size_bytes).step_by(PIECE_BYTES as usize);
    let piece = |offset| Piece { offset, bytes: u64::from(PIECE_BYTES).min(size_bytes - offset), tries: 0 };
    let mut pieces = pieces.map(piece);
    let mut again = VecDeque::new();
    let mut asked = BTreeMap::new();
    let block_bytes = session.block_bytes;
    loop {
        while asked.len() < DEPTH && session.can_send() {
            let Some(piece) = again.pop_front().or_else(|| pieces.next()) else { break };
            let Piece { offset, bytes, .. } = piece;
            let tag = session.read(offset / u64::from(block_bytes), bytes as u32 / block_bytes)?;
            asked.insert(tag, piece);
        }
        if asked.is_empty() {
            break;
        }
        let (tag, completion) = session.next_completion(env)?;
        let Piece { offset, bytes, tries } =
            asked.remove(&tag).ok_or("an answer to nothing that was asked")?;
        let why = |error: String| format!("reading {bytes} bytes at {offset}: {error}");
        if completion.status != 0 {
            session.before_next_try(&completion, tries).map_err(why)?;
            again.push_back(Piece { offset, bytes, tries: tries + 1 });
            continue;
        }
        if completion.data_in.len() as u64 != bytes {
            return Err(why(format!("{} bytes came", completion.data_in.len())));
        }
        let expected = read_with_zeros(&file, offset, bytes as usize).map_err(in_file)?;
        let found = completion.data_in.to_vec();
        // Zeros are there already: the copy is as thin as the volume.
        if let Some(copy) = copy_to.as_ref().filter(|_| found.iter().any(|&byte| byte != 0)) {
            copy.write_all_at(&found, offset).map_err(|error| format!("the copy: {error}"))?;
        }
        if let Some(position) = (0..found.len()).find(|&at| found[at] != expected[at]) {
            let at = offset + position as u64;
            let different = (0..found.len()).filter(|&at| found[at] != expected[at]).count();
            return Err(format!(
                "different at byte {at}: {:#04x} instead of {:#04x}; {different} bytes differ within {bytes}",
                found[position], expected[position]
            ));
        }
    }
    Ok((size_bytes, session.retried))
}

/// What the file holds there, and zeros behind its end.
fn read_with_zeros(file: &File, offset: u64, bytes: usize) -> std::io::Result<Vec<u8>> {
    let mut data = vec![0; bytes];
    let mut filled = 0;
    while filled < bytes {
        match file.read_at(&mut data[filled..], offset + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::in_world;
    use crate::worker::scripted::{READ, check_condition, serve, status};
    use std::sync::Arc;
    use wire::scsi::{SenseCode, SenseKey, Status};

    #[test]
    fn a_busy_unit_with_something_to_tell_is_verified_all_the_same() {
        let unit = serve(
            8192,
            Arc::new(|number, cdb| match number {
                _ if cdb[0] != READ => None,
                3 => Some(check_condition(SenseKey::UnitAttention, SenseCode::ThinProvisioningThreshold)),
                5 => Some(status(Status::Busy)),
                _ => None,
            }),
        );
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(4 << 20).expect("zeros");
        let path = file.path().to_owned();
        let (bytes, retried) =
            in_world(move |env| verify(env, &unit, &path, None)).expect("nothing of it is an error");
        assert_eq!((bytes, retried.values().sum::<u64>()), (4 << 20, 2), "{retried:?}");
    }

    #[test]
    fn a_file_ends_in_zeros() {
        let path = tempfile::NamedTempFile::new().expect("a file");
        path.as_file().write_all_at(&[7; 5], 0).expect("written");
        assert_eq!(read_with_zeros(path.as_file(), 3, 6).expect("read"), [7, 7, 0, 0, 0, 0]);
    }
}
