//! Reads and writes structures of variable length: a cursor that never reads past the end.

use super::FormatError;

/// Appends little-endian integers.
#[derive(Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub fn u16(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn u128(&mut self, value: u128) {
        self.0.extend(value.to_le_bytes());
    }
}

/// Takes little-endian integers off the front of a slice.
pub struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let (value, rest) = self.0.split_first_chunk::<N>().ok_or(FormatError::Damaged)?;
        self.0 = rest;
        Ok(*value)
    }

    pub fn u8(&mut self) -> Result<u8, FormatError> {
        self.take::<1>().map(|[value]| value)
    }

    pub fn u16(&mut self) -> Result<u16, FormatError> {
        self.take().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, FormatError> {
        self.take().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, FormatError> {
        self.take().map(u64::from_le_bytes)
    }

    pub fn u128(&mut self) -> Result<u128, FormatError> {
        self.take().map(u128::from_le_bytes)
    }

    /// Reads the count of items that each take at least `item_bytes`. A count that cannot be true is refused before
    /// memory is allocated for it.
    pub fn count(&mut self, item_bytes: usize) -> Result<usize, FormatError> {
        let count = self.u32()? as usize;
        if count.saturating_mul(item_bytes) > self.0.len() { Err(FormatError::Damaged) } else { Ok(count) }
    }
}
