//! Reconstruction of lost columns from the remaining ones.
//!
//! P' and Q' are computed over the remaining data columns; x and y are lost:
//!
//! ```text
//! P ^ P' = Dx                   or   Dx ^ Dy
//! Q ^ Q' = g^x Dx               or   g^x Dx ^ g^y Dy   =>   Dx = (Q ^ Q' ^ g^y (P ^ P')) / (g^x ^ g^y)
//! ```

use std::fmt;

use crate::field::{inverse, power_of_g};
use crate::kernel::Kernel;
use crate::{DATA_COLUMNS_MAX, check_columns};

/// Bytes of a column done at a time: the scratch stays in the first-level cache.
const STRIP_BYTES: usize = 4096;

static ZEROS: [u8; STRIP_BYTES] = [0; STRIP_BYTES];

/// One column of a row, as far as it is there.
#[derive(Debug)]
pub enum Column<'a> {
    /// Read, and verified.
    Present(&'a [u8]),
    /// Lost, and wanted: overwritten with what it was.
    Rebuild(&'a mut [u8]),
    /// Lost, and of no interest.
    Lost,
}

impl Column<'_> {
    fn is_lost(&self) -> bool {
        !matches!(self, Column::Present(_))
    }

    fn length(&self) -> Option<usize> {
        match self {
            Column::Present(bytes) => Some(bytes.len()),
            Column::Rebuild(bytes) => Some(bytes.len()),
            Column::Lost => None,
        }
    }

    fn strip(&self, from: usize, to: usize) -> Option<&[u8]> {
        match self {
            Column::Present(bytes) => Some(&bytes[from..to]),
            Column::Rebuild(_) | Column::Lost => None,
        }
    }

    fn put(&mut self, from: usize, strip: &[u8]) {
        if let Column::Rebuild(bytes) = self {
            bytes[from..from + strip.len()].copy_from_slice(strip);
        }
    }
}

/// More data columns are lost than parity columns are left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyLost {
    pub data_lost: usize,
    pub parity_left: usize,
}

impl fmt::Display for TooManyLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} data columns are lost and {} parity columns are left", self.data_lost, self.parity_left)
    }
}

impl std::error::Error for TooManyLost {}

/// How the lost data columns (by index) are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Plan {
    /// No data is lost: parity is computed afresh.
    DataIsWhole,
    FromP(usize),
    FromQ(usize),
    FromBoth(usize, usize),
}

/// Fills every [`Column::Rebuild`] with what the column held. `data` in order, so that column i has the coefficient
/// g^i in Q; `parity` is `[]`, `[P]` or `[P, Q]`.
///
/// Nothing is written where this fails. Panics where columns that are there are not equally long, or `parity` has
/// more than two columns.
pub fn reconstruct(data: &mut [Column<'_>], parity: &mut [Column<'_>]) -> Result<(), TooManyLost> {
    reconstruct_with(Kernel::chosen(), data, parity)
}

pub(crate) fn reconstruct_with(
    kernel: &Kernel,
    data: &mut [Column<'_>],
    parity: &mut [Column<'_>],
) -> Result<(), TooManyLost> {
    assert!(data.len() <= DATA_COLUMNS_MAX && parity.len() <= 2, "{} + {} columns", data.len(), parity.len());
    let plan = plan(data, parity)?;
    let Some(length) = data.iter().chain(&*parity).find_map(Column::length) else { return Ok(()) };
    for column in data.iter().chain(&*parity) {
        assert!(column.length().is_none_or(|this| this == length), "columns are equally long");
    }
    let mut from = 0;
    while from < length {
        let to = length.min(from + STRIP_BYTES);
        reconstruct_strip(kernel, plan, data, parity, from, to);
        from = to;
    }
    Ok(())
}

fn plan(data: &[Column<'_>], parity: &[Column<'_>]) -> Result<Plan, TooManyLost> {
    let mut lost = data.iter().enumerate().filter(|(_, column)| column.is_lost()).map(|(index, _)| index);
    let left = |index: usize| parity.get(index).is_some_and(|column| !column.is_lost());
    match (lost.next(), lost.next(), lost.next(), left(0), left(1)) {
        (None, None, None, _, _) => Ok(Plan::DataIsWhole),
        (Some(x), None, None, true, _) => Ok(Plan::FromP(x)),
        (Some(x), None, None, false, true) => Ok(Plan::FromQ(x)),
        (Some(x), Some(y), None, true, true) => Ok(Plan::FromBoth(x, y)),
        _ => Err(TooManyLost {
            data_lost: data.iter().filter(|column| column.is_lost()).count(),
            parity_left: parity.iter().filter(|column| !column.is_lost()).count(),
        }),
    }
}

/// Bytes `from..to` of every column.
fn reconstruct_strip(
    kernel: &Kernel,
    plan: Plan,
    data: &mut [Column<'_>],
    parity: &mut [Column<'_>],
    from: usize,
    to: usize,
) {
    let length = to - from;
    let (mut p_strip, mut q_strip) = ([0; STRIP_BYTES], [0; STRIP_BYTES]);
    let (p, q) = (&mut p_strip[..length], &mut q_strip[..length]);
    // P' and Q', with zeros for what is lost
    let mut left: [&[u8]; DATA_COLUMNS_MAX] = [&[]; DATA_COLUMNS_MAX];
    for (column, slot) in data.iter().zip(&mut left) {
        *slot = column.strip(from, to).unwrap_or(&ZEROS[..length]);
    }
    let left = &left[..data.len()];
    check_columns(left, length);
    (kernel.pq)(left, p, q);
    // P ^ P' and Q ^ Q', where they are left and wanted
    let parity_strip = |index: usize| parity[index].strip(from, to).expect("the plan uses what is left");
    if matches!(plan, Plan::FromP(_) | Plan::FromBoth(..)) {
        (kernel.xor)(p, parity_strip(0));
    }
    if matches!(plan, Plan::FromQ(_) | Plan::FromBoth(..)) {
        (kernel.xor)(q, parity_strip(1));
    }
    match plan {
        Plan::DataIsWhole => {}
        Plan::FromP(x) => {
            data[x].put(from, p);
            (kernel.multiply_xor)(q, p, power_of_g(x)); // now Q
        }
        Plan::FromQ(x) => {
            (kernel.multiply)(q, inverse(power_of_g(x)));
            data[x].put(from, q);
            (kernel.xor)(p, q); // now P
        }
        Plan::FromBoth(x, y) => {
            (kernel.multiply_xor)(q, p, power_of_g(y));
            (kernel.multiply)(q, inverse(power_of_g(x) ^ power_of_g(y)));
            data[x].put(from, q);
            (kernel.xor)(p, q);
            data[y].put(from, p);
            return; // neither parity column is lost
        }
    }
    // Where one of them was used above it holds data now; but then it is there, and nothing is put.
    for (column, strip) in parity.iter_mut().zip([&*p, &*q]) {
        column.put(from, strip);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_follows_what_is_lost() {
        /// Data columns, parity columns (`d` is there, `.` is lost), the plan or what is lost and left.
        type Row = (&'static str, &'static str, Result<Plan, (usize, usize)>);
        let rows: [Row; 14] = [
            ("ddd", "", Ok(Plan::DataIsWhole)),
            ("ddd", "..", Ok(Plan::DataIsWhole)),
            ("d.d", "d", Ok(Plan::FromP(1))),
            ("d.d", "dd", Ok(Plan::FromP(1))),
            ("d.d", "d.", Ok(Plan::FromP(1))),
            ("d.d", ".d", Ok(Plan::FromQ(1))),
            ("..d", "dd", Ok(Plan::FromBoth(0, 1))),
            (".d.", "dd", Ok(Plan::FromBoth(0, 2))),
            ("d.d", "", Err((1, 0))),
            ("d.d", "..", Err((1, 0))),
            ("..d", "d", Err((2, 1))),
            ("..d", ".d", Err((2, 1))),
            ("..d", "d.", Err((2, 1))),
            ("...", "dd", Err((3, 2))),
        ];
        let columns = |text: &str| -> Vec<Column<'static>> {
            text.chars().map(|c| if c == 'd' { Column::Present(&[]) } else { Column::Lost }).collect()
        };
        for (data, parity, expected) in rows {
            let expected =
                expected.map_err(|(data_lost, parity_left)| TooManyLost { data_lost, parity_left });
            assert_eq!(plan(&columns(data), &columns(parity)), expected, "{data} {parity}");
        }
    }
}
