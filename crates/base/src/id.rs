//! Ids. Each kind of id has its own type, so that the compiler rejects a mix-up.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }
    };
}

macro_rules! decimal {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

macro_rules! hexadecimal {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:032x}", self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::num::ParseIntError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                u128::from_str_radix(text, 16).map($name)
            }
        }
    };
}

id!(
    /// The array: what the user administers. Random at creation, never changes.
    ArrayId(u128)
);
id!(
    /// A head: a server that serves the array. Random when the head starts for the first time.
    HeadId(u128)
);
id!(
    /// A pool of drives. Random at creation, never changes.
    PoolId(u128)
);
id!(
    /// A drive within a pool. Random when the drive is labelled.
    DriveId(u128)
);
id!(
    /// A volume of this array. Counted up in the catalog, never reused.
    VolumeId(u32)
);
id!(
    /// A map LBA → position within a pool. Counted up in the catalog, never reused.
    LayerId(u32)
);
id!(
    /// A shard of this process: one thread on one core.
    ShardId(u16)
);
id!(
    /// The ownership term of a pool; every start of the pool claims the next one.
    Epoch(u64)
);
id!(
    /// Order of batches within one lane's log, without gaps.
    Sequence(u64)
);
hexadecimal!(ArrayId);
hexadecimal!(HeadId);
hexadecimal!(PoolId);
hexadecimal!(DriveId);
decimal!(VolumeId);
decimal!(LayerId);
decimal!(ShardId);
decimal!(Epoch);
decimal!(Sequence);

impl Sequence {
    pub fn next(self) -> Sequence {
        Sequence(self.0 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_ids_print_and_parse_as_hexadecimal() {
        let id = PoolId(0x1234_5678_9abc_def0);
        assert_eq!(id.to_string().len(), 32);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(format!("{:?}", LayerId(7)), "LayerId(7)");
    }
}
