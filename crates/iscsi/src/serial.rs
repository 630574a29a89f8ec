//! Serial number arithmetic (RFC 1982, RFC 7143 §4.2.2): 32-bit counters that wrap.

/// Whether `a` comes before `b`. Of two numbers exactly 2^31 apart neither comes before the other.
pub(crate) fn is_before(a: u32, b: u32) -> bool {
    (1..1 << 31).contains(&b.wrapping_sub(a))
}

/// Whether `first <= number <= last`, where `last` may be `first - 1` (nothing lies between).
pub(crate) fn is_between(first: u32, number: u32, last: u32) -> bool {
    !is_before(number, first) && !is_before(last, number) && number.wrapping_sub(first) < 1 << 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        for start in [0, 5, u32::MAX - 1, u32::MAX, 1 << 31] {
            let at = |n: u32| start.wrapping_add(n);
            assert!(is_before(start, at(1)) && !is_before(at(1), start) && !is_before(start, start));
            assert!(is_between(start, start, at(3)) && is_between(start, at(3), at(3)));
            assert!(!is_between(start, at(4), at(3)) && !is_between(start, at(u32::MAX), at(3)));
            assert!(!is_between(start, start, at(u32::MAX)), "an empty window holds nothing");
            assert!(!is_between(start, at(1 << 31), at(3)));
        }
    }
}
