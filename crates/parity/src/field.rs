//! GF(2^8) modulo 0x11D, and the multiplication tables of the kernels, all computed at compile time.

/// x^8 + x^4 + x^3 + x^2 + 1, without its highest term.
pub const POLYNOMIAL_LOW: u8 = 0x1D;

/// `EXP[i]` = g^i, twice around, so that a sum of two logarithms needs no reduction.
const EXP: [u8; 510] = {
    let mut exp = [0; 510];
    let mut value = 1u8;
    let mut i = 0;
    while i < 510 {
        exp[i] = value;
        value = double(value);
        i += 1;
    }
    exp
};

/// `LOG[EXP[i]]` = i; the logarithm of zero does not exist.
const LOG: [u8; 256] = {
    let mut log = [0; 256];
    let mut i = 0;
    while i < 255 {
        log[EXP[i] as usize] = i as u8;
        i += 1;
    }
    log
};

const fn double(value: u8) -> u8 {
    value << 1 ^ if value & 0x80 != 0 { POLYNOMIAL_LOW } else { 0 }
}

pub const fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    EXP[LOG[a as usize] as usize + LOG[b as usize] as usize]
}

/// The inverse of a value that is not zero.
pub const fn inverse(a: u8) -> u8 {
    assert!(a != 0, "zero has no inverse");
    EXP[255 - LOG[a as usize] as usize]
}

/// g^exponent, for any exponent.
pub const fn power_of_g(exponent: usize) -> u8 {
    EXP[exponent % 255]
}

/// For every factor its products with the 16 low and the 16 high nibbles: what byte shuffles look up.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub static NIBBLE_PRODUCTS: [[[u8; 16]; 2]; 256] = {
    let mut table = [[[0; 16]; 2]; 256];
    let mut factor = 0;
    while factor < 256 {
        let mut nibble = 0;
        while nibble < 16 {
            table[factor][0][nibble] = multiply(factor as u8, nibble as u8);
            table[factor][1][nibble] = multiply(factor as u8, (nibble as u8) << 4);
            nibble += 1;
        }
        factor += 1;
    }
    table
};

/// For every factor the bit matrix of multiplying by it, as GF2P8AFFINEQB wants it: byte 7-i is the row of
/// result bit i. (GF2P8MULB itself knows another polynomial.)
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub static BIT_MATRICES: [u64; 256] = {
    let mut table = [0; 256];
    let mut factor = 0;
    while factor < 256 {
        table[factor] = bit_matrix(factor as u8);
        factor += 1;
    }
    table
};

const fn bit_matrix(factor: u8) -> u64 {
    let mut matrix = 0u64;
    let mut column = 0;
    while column < 8 {
        let product = multiply(factor, 1 << column);
        let mut row = 0;
        while row < 8 {
            matrix |= ((product >> row & 1) as u64) << ((7 - row) * 8 + column);
            row += 1;
        }
        column += 1;
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Schoolbook: shift and add, reduced by the polynomial.
    fn multiply_slowly(mut a: u8, mut b: u8) -> u8 {
        let mut sum = 0;
        while b != 0 {
            if b & 1 != 0 {
                sum ^= a;
            }
            a = double(a);
            b >>= 1;
        }
        sum
    }

    #[test]
    fn table_products_are_schoolbook_products() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(multiply(a, b), multiply_slowly(a, b), "{a} * {b}");
            }
        }
    }

    #[test]
    fn every_value_but_zero_is_a_power_of_g_and_has_an_inverse() {
        let mut seen = [false; 256];
        for exponent in 0..255 {
            let value = power_of_g(exponent);
            assert!(!std::mem::replace(&mut seen[value as usize], true), "g^{exponent} came before");
            assert_eq!(multiply(value, inverse(value)), 1);
        }
        assert!(!seen[0]);
        assert_eq!(power_of_g(255), 1);
    }

    #[test]
    fn bit_matrices_multiply() {
        for factor in 0..=255u8 {
            for value in [0, 1, 2, 0x53, 0x80, 0xFF] {
                let rows = BIT_MATRICES[factor as usize].to_be_bytes();
                let product =
                    (0..8).map(|bit| (((rows[bit] & value).count_ones() & 1) as u8) << bit).sum::<u8>();
                assert_eq!(product, multiply(factor, value), "{factor} * {value}");
            }
        }
    }
}
