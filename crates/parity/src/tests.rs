//! Every kernel of this machine against the oracle, and the reconstruction of every loss against the original.

use proptest::prelude::*;

use crate::kernel::Kernel;
use crate::reconstruct::reconstruct_with;
use crate::{Column, TooManyLost, field, oracle};

const WIDTH_MAX: usize = 16;

/// Columns of pseudo-random bytes, each different.
fn columns(width: usize, length: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (state >> 56) as u8
    };
    (0..width).map(|_| (0..length).map(|_| next()).collect()).collect()
}

fn slices(columns: &[Vec<u8>]) -> Vec<&[u8]> {
    columns.iter().map(Vec::as_slice).collect()
}

#[test]
fn this_machine_runs_the_portable_kernel_and_prefers_another_where_it_can() {
    let names: Vec<_> = Kernel::available().iter().map(|kernel| kernel.name).collect();
    println!("kernels: {names:?}");
    assert_eq!(names.last(), Some(&"portable"));
    assert_eq!(crate::kernel_name(), names[0]);
    #[cfg(target_arch = "x86_64")]
    assert_eq!(names.contains(&"avx2"), std::is_x86_feature_detected!("avx2"));
    #[cfg(target_arch = "aarch64")]
    assert_eq!(names[0], "neon");
}

proptest! {
    #[test]
    fn kernels_compute_what_the_oracle_does(
        width in 0..=WIDTH_MAX, length in 0usize..1400, skew in 0usize..64, seed: u64, factor: u8,
    ) {
        let skewed = columns(width + 2, length + skew, seed);
        let columns: Vec<_> = skewed.iter().map(|column| column[skew..].to_vec()).collect();
        // the kernels see the columns where they lie: at odd addresses
        let (data, rest) = (&columns[..width], &columns[width..]);
        let at: Vec<&[u8]> = skewed[..width].iter().map(|column| &column[skew..]).collect();
        for kernel in Kernel::available() {
            let (mut p, mut q) = (rest[0].clone(), rest[1].clone());
            (kernel.p)(&at, &mut p);
            prop_assert_eq!(&p, &oracle::p(data, length), "{} P", kernel.name);
            p.fill(1);
            (kernel.pq)(&at, &mut p, &mut q);
            prop_assert_eq!(&p, &oracle::p(data, length), "{} P of PQ", kernel.name);
            prop_assert_eq!(&q, &oracle::q(data, length), "{} Q", kernel.name);

            let mut target = rest[0].clone();
            (kernel.xor)(&mut target, &rest[1]);
            prop_assert_eq!(&target, &oracle::p(rest, length), "{} xor", kernel.name);
            let times = |value: &u8| field::multiply(*value, factor);
            let product: Vec<u8> = rest[1].iter().map(times).collect();
            let mut target = rest[0].clone();
            (kernel.multiply_xor)(&mut target, &rest[1], factor);
            prop_assert_eq!(
                &target, &oracle::p(&[rest[0].clone(), product.clone()], length), "{} multiply_xor", kernel.name
            );
            let mut target = rest[1].clone();
            (kernel.multiply)(&mut target, factor);
            prop_assert_eq!(&target, &product, "{} multiply", kernel.name);
        }
    }

    #[test]
    fn accumulating_columns_one_by_one_gives_the_same(width in 0..=WIDTH_MAX, length in 0usize..700, seed: u64) {
        let data = columns(width, length, seed);
        let (mut p, mut q) = (vec![0; length], vec![0; length]);
        for (index, column) in data.iter().enumerate() {
            crate::accumulate_p(&mut p, column);
            crate::accumulate_q(&mut q, column, index);
        }
        let (mut p_whole, mut q_whole) = (vec![9; length], vec![9; length]);
        crate::compute_pq(&slices(&data), &mut p_whole, &mut q_whole);
        prop_assert_eq!((&p, &q), (&p_whole, &q_whole));
        p_whole.fill(9);
        crate::compute_p(&slices(&data), &mut p_whole);
        prop_assert_eq!(p, p_whole);
    }
}

#[test]
fn known_bytes() {
    // one bit in column 0, 1 and 8: g^0 = 1, g^1 = 2, g^8 = the polynomial's low terms
    for (index, coefficient) in [(0, 0x01), (1, 0x02), (7, 0x80), (8, 0x1D), (15, 0x26)] {
        let mut data = vec![vec![0; 300]; WIDTH_MAX];
        data[index].fill(1);
        let (mut p, mut q) = ([0; 300], [0; 300]);
        crate::compute_pq(&slices(&data), &mut p, &mut q);
        assert_eq!((p, q), ([1; 300], [coefficient; 300]), "column {index}");
    }
}

#[test]
fn parity_of_one_data_column_is_a_copy() {
    let data = columns(1, 4096 + 13, 5);
    let (mut p, mut q) = (vec![0; data[0].len()], vec![0; data[0].len()]);
    crate::compute_p(&slices(&data), &mut p);
    assert_eq!(p, data[0]);
    p.fill(0);
    crate::compute_pq(&slices(&data), &mut p, &mut q);
    assert_eq!((&p, &q), (&data[0], &data[0]));
}

#[test]
fn columns_of_zeros_at_the_end_change_nothing() {
    let mut data = columns(3, 1000, 6);
    let parity = |data: &[Vec<u8>]| {
        let (mut p, mut q) = (vec![0; 1000], vec![0; 1000]);
        crate::compute_pq(&slices(data), &mut p, &mut q);
        (p, q)
    };
    let before = parity(&data);
    data.extend([vec![0; 1000], vec![0; 1000]]);
    assert_eq!(parity(&data), before);
}

/// What becomes of one column in a trial.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Present,
    Rebuild,
    Lost,
}

/// Runs one trial: fates of the data columns, then of the parity columns. Says what came out of it.
fn trial(kernel: &Kernel, whole: &[Vec<u8>], width: usize, fates: &[Fate]) -> Result<(), TooManyLost> {
    let mut rebuilt: Vec<Vec<u8>> = whole.iter().map(|column| vec![0xEE; column.len()]).collect();
    let mut columns: Vec<Column<'_>> = Vec::new();
    for ((fate, column), space) in fates.iter().zip(whole).zip(&mut rebuilt) {
        columns.push(match fate {
            Fate::Present => Column::Present(column),
            Fate::Rebuild => Column::Rebuild(space),
            Fate::Lost => Column::Lost,
        });
    }
    let (data, parity) = columns.split_at_mut(width);
    let result = reconstruct_with(kernel, data, parity);
    for (index, fate) in fates.iter().enumerate() {
        if *fate == Fate::Rebuild && result.is_ok() {
            assert!(rebuilt[index] == whole[index], "{}: column {index} of {width}", kernel.name);
        } else {
            assert!(rebuilt[index].iter().all(|&byte| byte == 0xEE), "written without need");
        }
    }
    result
}

/// Every set of up to `losses_max` lost columns out of `count`, and for each every choice of those wanted back.
fn for_each_loss(count: usize, losses_max: usize, visit: &mut impl FnMut(&[Fate])) {
    fn choose(fates: &mut Vec<Fate>, count: usize, losses: usize, visit: &mut impl FnMut(&[Fate])) {
        if fates.len() == count {
            return visit(fates);
        }
        for fate in [Fate::Present, Fate::Rebuild, Fate::Lost] {
            if fate != Fate::Present && losses == 0 {
                continue;
            }
            fates.push(fate);
            choose(fates, count, losses - usize::from(fate != Fate::Present), visit);
            fates.pop();
        }
    }
    choose(&mut Vec::new(), count, losses_max, visit);
}

#[test]
fn every_loss_within_the_promise_is_rebuilt_and_every_other_refused() {
    for kernel in Kernel::available() {
        for width in 1..=WIDTH_MAX {
            for parity_columns in 0..=2 {
                let mut whole = columns(width, 300, 7);
                let parity = [oracle::p(&whole, 300), oracle::q(&whole, 300)];
                whole.extend(parity.into_iter().take(parity_columns));
                let (mut rebuilt, mut refused) = (0, 0);
                for_each_loss(whole.len(), parity_columns + 1, &mut |fates| {
                    let lost = |fates: &[Fate]| fates.iter().filter(|fate| **fate != Fate::Present).count();
                    let data_lost = lost(&fates[..width]);
                    let parity_left = parity_columns - lost(&fates[width..]);
                    let expected = match data_lost <= parity_left {
                        true => Ok(()),
                        false => Err(TooManyLost { data_lost, parity_left }),
                    };
                    assert_eq!(trial(&kernel, &whole, width, fates), expected);
                    *if expected.is_ok() { &mut rebuilt } else { &mut refused } += 1;
                });
                assert!(rebuilt > 0 && refused > 0);
            }
        }
    }
}

#[test]
fn long_columns_are_rebuilt_strip_by_strip() {
    let (width, length) = (5, 3 * 4096 + 77);
    let mut whole = columns(width, length, 8);
    let parity = [oracle::p(&whole, length), oracle::q(&whole, length)];
    whole.extend(parity);
    for kernel in Kernel::available() {
        let mut fates = [Fate::Present; 7];
        (fates[1], fates[4]) = (Fate::Rebuild, Fate::Rebuild);
        assert_eq!(trial(&kernel, &whole, width, &fates), Ok(()));
    }
}

#[test]
#[should_panic(expected = "equally long")]
fn columns_of_other_lengths_are_refused() {
    crate::compute_p(&[&[0; 64], &[0; 63]], &mut [0; 64]);
}
