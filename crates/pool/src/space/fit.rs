//! Which chunks belong to a lane, and for how many segments drives of different sizes have room.

/// How many segments of `width` columns fit drives with `counts` chunks, no drive twice in a segment.
pub(crate) fn fit(counts: &[usize], width: usize) -> usize {
    if width == 0 || counts.len() < width {
        return 0;
    }
    let (mut low, mut high) = (0, counts.iter().sum::<usize>() / width);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if counts.iter().map(|&count| count.min(middle)).sum::<usize>() >= middle * width {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// The chunks of a drive that belong to a lane, in descending order.
pub(crate) fn own_chunks(chunks: u32, (lane, lanes): (u16, u16)) -> Vec<u32> {
    (0..chunks).rev().filter(|chunk| chunk % u32::from(lanes) == u32::from(lane)).collect()
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[test]
    fn fits() {
        assert_eq!(fit(&[10, 10, 10], 3), 10);
        assert_eq!(fit(&[10, 10, 10, 10], 3), 13);
        assert_eq!(fit(&[100, 10, 10], 2), 20);
        assert_eq!(fit(&[100, 0, 10], 2), 10);
        assert_eq!(fit(&[5, 5], 3), 0);
    }
}
