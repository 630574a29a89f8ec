//! Numbers that are likely to exceed what a reader of untrusted structures can handle.

/// Returns a random number below its argument; 0 for 0.
pub type Dice<'a> = &'a mut dyn FnMut(u64) -> u64;

/// Another value for a field that holds `old`.
pub(super) fn number(old: u64, dice: Dice<'_>) -> u64 {
    match dice(10) {
        0 => 0,
        1 => u64::MAX,
        2 | 3 => old.wrapping_add(1 + dice(3)),
        4 | 5 => old.wrapping_sub(1 + dice(3)),
        6 => dice(300),
        7 => 1 << dice(64),
        8 => old ^ 1 << dice(48),
        _ => dice(1 << 32) << 32 | dice(1 << 32),
    }
}

pub(super) fn pick<T: Copy>(all: &[T], dice: Dice<'_>) -> T {
    all[dice(all.len() as u64) as usize]
}

pub(super) fn get(bytes: &[u8], offset: usize, width: usize) -> u64 {
    let mut value = [0; 8];
    value[..width].copy_from_slice(&bytes[offset..offset + width]);
    u64::from_le_bytes(value)
}

pub(super) fn put(bytes: &mut [u8], offset: usize, width: usize, value: u64) {
    bytes[offset..offset + width].copy_from_slice(&value.to_le_bytes()[..width]);
}

/// Another value for a field.
pub(super) fn set(field: &mut u64, name: &str, dice: Dice<'_>) -> String {
    let old = std::mem::replace(field, number(*field, dice));
    format!("{name} is {:#x}, was {old:#x}", *field)
}
