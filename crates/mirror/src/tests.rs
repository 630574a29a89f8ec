//! Two sides with drives that have caches, a connection, power cuts and takeovers, from seeds; and single cases.

mod cases;
mod drives;
mod met;
mod world;

use base::prng::Prng;

use world::World;

#[test]
fn both_copies_hold_what_is_acknowledged_whatever_happens() {
    let mut met = met::Met::default();
    for seed in 1..=400 {
        println!("seed {seed}");
        let mut world = World::new(Prng::new(seed));
        world.end_quietly();
        world.run(1000);
        world.end_quietly();
        met.add(&world.met);
    }
    met.demand();
}
