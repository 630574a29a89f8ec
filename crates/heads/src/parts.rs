//! Long writes in parts that a message can hold.

use bytes::Bytes;

/// The data in parts of at most `most` bytes.
pub(crate) fn in_parts(data: &[Bytes], most: usize) -> Vec<Vec<Bytes>> {
    let (mut parts, mut room) = (vec![Vec::new()], most);
    for piece in data {
        let mut rest = piece.clone();
        while !rest.is_empty() {
            if room == 0 {
                parts.push(Vec::new());
                room = most;
            }
            let taken = rest.split_to(rest.len().min(room));
            room -= taken.len();
            parts.last_mut().expect("there is one").push(taken);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_writes_are_cut_where_a_message_ends() {
        let data = [Bytes::from(vec![1; 10]), Bytes::from(vec![2; 3]), Bytes::from(vec![3; 8])];
        let lengths = |most| -> Vec<Vec<usize>> {
            in_parts(&data, most).iter().map(|part| part.iter().map(Bytes::len).collect()).collect()
        };
        assert_eq!(lengths(100), [vec![10, 3, 8]]);
        assert_eq!(lengths(8), [vec![8], vec![2, 3, 3], vec![5]]);
        assert_eq!(in_parts(&data, 8).concat().concat(), data.concat());
    }
}
