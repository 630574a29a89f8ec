//! Counts by name over all runs of a process, so that a batch of runs can report what it never exercised.

/// An enumeration of which each kind is counted: `Kind::One.seen()`, and `Kind::counts()` for all by name.
macro_rules! counted {
    ($(#[$doc:meta])* $name:ident: $prefix:literal { $($kind:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name { $($kind,)* }

        impl $name {
            const NAMES: &'static [&'static str] = &[$(concat!($prefix, $text),)*];

            fn places() -> &'static [std::sync::atomic::AtomicU64] {
                static PLACES: [std::sync::atomic::AtomicU64; $name::NAMES.len()] =
                    [const { std::sync::atomic::AtomicU64::new(0) }; $name::NAMES.len()];
                &PLACES
            }

            pub fn seen(self) {
                $name::places()[self as usize].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }

            pub fn counts() -> impl Iterator<Item = (&'static str, u64)> {
                let counts = $name::NAMES.iter().zip($name::places());
                counts.map(|(&name, count)| (name, count.load(std::sync::atomic::Ordering::Relaxed)))
            }
        }
    };
}

pub(crate) use counted;

/// How often this process has done and seen what it counts, by name: pools' decisions, what administrators did, what hosts copied.
pub fn counts() -> impl Iterator<Item = (&'static str, u64)> {
    pool::decisions().chain(crate::array::counts()).chain(crate::seed::claims())
}
