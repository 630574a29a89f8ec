//! TEMPORARY: until crate block has its targets.
use block::*;
use env::{DriveHandle, DriveInfo};
use task::Io;

macro_rules! target {
    ($name:ident) => {
        pub struct $name(Geometry);
        impl BlockTarget for $name {
            fn geometry(&self) -> Geometry {
                self.0
            }
            async fn execute(&self, _: BlockRequest) -> BlockResult {
                Err(BlockError::Unsupported)
            }
        }
    };
}
target!(NullTarget);
target!(MemoryTarget);
target!(RawTarget);
impl NullTarget {
    pub fn new(g: Geometry) -> Self {
        NullTarget(g)
    }
}
impl MemoryTarget {
    pub fn new(g: Geometry) -> Self {
        MemoryTarget(g)
    }
}
impl RawTarget {
    pub fn new(_: &Io, _: DriveHandle, _: &DriveInfo, g: Geometry) -> Self {
        RawTarget(g)
    }
}
