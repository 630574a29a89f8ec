//! Raw volumes: volumes that export a device.

use super::Scenario;
use crate::array::run_raw_devices;

pub const RAW_VOLUMES_FOLLOW_THEIR_DEVICES: Scenario = Scenario {
    name: "raw-volumes-follow-their-devices",
    property: "a raw volume exports every sector of a device of any size, grows with it, fails behind the end of one that became \
               smaller, and says so within ten seconds where it is gone; what was acknowledged stays",
    run: |seed, options| run_raw_devices(seed, options.trace),
};
