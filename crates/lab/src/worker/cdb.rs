//! The commands of a load.

/// READ (16) and WRITE (16), SBC-3 §5.15 and §5.38.
pub fn cdb_16(opcode: u8, block: u64, blocks: u32) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = opcode;
    cdb[2..10].copy_from_slice(&block.to_be_bytes());
    cdb[10..14].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cdb_is_big_endian() {
        let cdb = cdb_16(0x88, 0x0102_0304_0506, 0x0708);
        assert_eq!(cdb, [0x88, 0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 7, 8, 0, 0]);
    }
}
