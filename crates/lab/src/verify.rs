//! Reads a whole logical unit, in order, compares it with a file, and keeps a copy if that is wanted.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::target::Unit;
use crate::worker::{Session, World, failure};

const PIECE_BYTES: u32 = 256 << 10;
const DEPTH: usize = 16;

/// How many bytes are the same, which is all of them; or where the first difference is.
pub fn verify(env: &mut World, unit: &Unit, path: &Path, copy: Option<&Path>) -> Result<u64, String> {
    let why = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(why)?;
    let file_bytes = file.metadata().map_err(why)?.len();
    let mut session = Session::open(env, unit, 0)?;
    let size_bytes = session.blocks * u64::from(session.block_bytes);
    if file_bytes > size_bytes {
        return Err(format!("the file has {file_bytes} bytes, the unit only {size_bytes}"));
    }
    let copy_to = copy.map(File::create).transpose().map_err(|error| format!("the copy: {error}"))?;
    if let Some(copy) = &copy_to {
        copy.set_len(size_bytes).map_err(|error| format!("the copy: {error}"))?;
    }
    let mut next = 0;
    let mut asked = BTreeMap::new();
    while next < size_bytes || !asked.is_empty() {
        while next < size_bytes && asked.len() < DEPTH && session.can_send() {
            let bytes = u64::from(PIECE_BYTES).min(size_bytes - next);
            let block_bytes = session.block_bytes;
            let tag = session.read(next / u64::from(block_bytes), bytes as u32 / block_bytes)?;
            asked.insert(tag, (next, bytes));
            next += bytes;
        }
        let (tag, completion) = session.next_completion(env)?;
        let (offset, bytes) = asked.remove(&tag).ok_or("an answer to nothing that was asked")?;
        if completion.status != 0 || completion.data_in.len() as u64 != bytes {
            return Err(format!("reading {bytes} bytes at {offset}: {}", failure(&completion)));
        }
        let expected = read_with_zeros(&file, offset, bytes as usize).map_err(why)?;
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
    Ok(size_bytes)
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

    #[test]
    fn a_file_ends_in_zeros() {
        let path = tempfile::NamedTempFile::new().expect("a file");
        path.as_file().write_all_at(&[7; 5], 0).expect("written");
        assert_eq!(read_with_zeros(path.as_file(), 3, 6).expect("read"), [7, 7, 0, 0, 0, 0]);
    }
}
