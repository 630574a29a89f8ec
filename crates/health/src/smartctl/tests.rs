//! Output of several versions of smartctl, and output that is none.

use api::DriveFault;

use super::*;

const NVME_7_3: &str = r#"{"json_format_version":[1,0],"smartctl":{"version":[7,3],"exit_status":0},
 "device":{"name":"/dev/nvme0","info_name":"/dev/nvme0","type":"nvme","protocol":"NVMe"},
 "model_name":"SAMSUNG MZQL21T9HCJR-00A07","serial_number":"S64GNE0R000001","firmware_version":"GDC5602Q",
 "smart_status":{"passed":true,"nvme":{"value":0}},
 "nvme_smart_health_information_log":{"critical_warning":0,"temperature":22,"available_spare":100,
  "available_spare_threshold":10,"percentage_used":3,"data_units_read":1,"data_units_written":267397176,
  "power_cycles":63,"power_on_hours":13113,"unsafe_shutdowns":34,"media_errors":0,"num_err_log_entries":0,
  "warning_temp_time":0,"critical_comp_time":0,"temperature_sensors":[22,29]},
 "temperature":{"current":22},"power_cycle_count":63,"power_on_time":{"hours":13113}}"#;

const NVME_7_5: &str = r#"{"smartctl":{"version":[7,5],"exit_status":0},
 "device":{"name":"/dev/nvme1","type":"nvme","protocol":"NVMe"},"model_name":"X","serial_number":"1","firmware_version":"F",
 "nvme_composite_temperature_threshold":{"warning":70,"critical":80},
 "smart_status":{"passed":true,"nvme":{"value":0}},"endurance_used":{"current_percent":104},
 "nvme_smart_health_information_log":{"critical_warning":0,"percentage_used":104,
  "data_units_written":9007199254740993,"data_units_written_s":"12","media_errors":18446744073709551615,
  "temperature_sensors":[null,43]},
 "nvme_self_test_log":{"current_self_test_operation":{"value":0},"table":[
  {"self_test_code":{"value":1},"self_test_result":{"value":1},"power_on_hours":90},
  {"self_test_code":{"value":1},"self_test_result":{"value":7},"power_on_hours":88},
  {"self_test_code":{"value":1},"self_test_result":{"value":0},"power_on_hours":70}]},
 "temperature":{"current":43}}"#;

const SATA_7_1: &str = r#"{"smartctl":{"version":[7,1],"exit_status":4},"device":{"name":"/dev/sda","type":"sat","protocol":"ATA"},
 "model_name":"INTEL SSDSC2BB480G7","serial_number":"PHDV1","firmware_version":"N2010121","logical_block_size":512,
 "smart_status":{"passed":true},"ata_smart_attributes":{"revision":1,"table":[
  {"id":5,"name":"Reallocated_Sector_Ct","value":99,"worst":99,"thresh":0,"when_failed":"","flags":{"prefailure":false},"raw":{"value":2}},
  {"id":174,"name":"Unsafe_Shutdown_Count","value":100,"thresh":0,"when_failed":"","flags":{"prefailure":false},"raw":{"value":21}},
  {"id":194,"name":"Temperature_Celsius","value":100,"worst":92,"thresh":0,"when_failed":"","flags":{"prefailure":false},"raw":{"value":47,"string":"47"}},
  {"id":199,"name":"CRC_Error_Count","value":100,"thresh":0,"when_failed":"","flags":{"prefailure":false},"raw":{"value":900}},
  {"id":233,"name":"Media_Wearout_Indicator","value":88,"thresh":0,"when_failed":"","flags":{"prefailure":false},"raw":{"value":0}},
  {"id":241,"name":"Host_Writes_32MiB","value":100,"thresh":0,"when_failed":"","flags":{"prefailure":false},"raw":{"value":100}},
  {"id":232,"name":"Available_Reservd_Space","value":97,"thresh":10,"when_failed":"","flags":{"prefailure":true},"raw":{"value":0}}]},
 "ata_smart_self_test_log":{"standard":{"table":[
  {"type":{"value":1},"status":{"value":25,"string":"Aborted by host"},"lifetime_hours":12},
  {"type":{"value":1},"status":{"value":0,"passed":true},"lifetime_hours":10}]}},
 "temperature":{"current":47,"op_limit_max":70,"limit_max":75},"power_on_time":{"hours":9000}}"#;

const SAS_7_4: &str = r#"{"smartctl":{"version":[7,4],"exit_status":0},"device":{"name":"/dev/sdb","type":"scsi","protocol":"SCSI"},
 "scsi_model_name":"TOSHIBA AL15SEB24EQY","scsi_revision":"EF06","serial_number":"X1","smart_status":{"passed":true},
 "temperature":{"current":32,"drive_trip":65},"power_on_time":{"hours":12437,"minutes":29},"scsi_grown_defect_list":1,
 "scsi_percentage_used_endurance_indicator":7,
 "scsi_error_counter_log":{"read":{"total_uncorrected_errors":2},
  "write":{"gigabytes_processed":"56643.667","total_uncorrected_errors":0}},
 "scsi_self_test_0":{"code":{"value":1},"result":{"value":4},"power_on_time":{"hours":12000}}}"#;

fn read(text: &str) -> Reading {
    parse(text.as_bytes(), Some(0)).expect("it is understood")
}

#[test]
fn an_nvme_drive_says_everything() {
    let expected = Reading {
        protocol: Protocol::Nvme,
        model: "SAMSUNG MZQL21T9HCJR-00A07".to_owned(),
        serial: "S64GNE0R000001".to_owned(),
        firmware: "GDC5602Q".to_owned(),
        celsius: Some(22),
        celsius_warning: None,
        celsius_critical: None,
        used_percent: Some(3),
        is_wear_guessed: false,
        spare_percent: Some(100),
        spare_percent_min: Some(10),
        written_bytes: Some(267_397_176 * 512_000),
        power_on_hours: Some(13_113),
        power_cycles: Some(63),
        unsafe_shutdowns: Some(34),
        media_errors: Some(0),
        says_failing: vec![],
        self_test: None,
    };
    assert_eq!(read(NVME_7_3), expected);
}

#[test]
fn a_drive_whose_page_is_missing_has_said_the_rest() {
    let without = read(&NVME_7_5.replace("nvme_smart_health_information_log", "something_else"));
    assert_eq!((without.celsius, without.celsius_critical), (Some(43), Some(80)));
    assert!(without.self_test.is_some());
}

#[test]
fn newer_versions_say_more_and_odd_values_are_not_taken() {
    let reading = read(NVME_7_5);
    let heat = (reading.celsius, reading.celsius_warning, reading.celsius_critical);
    assert_eq!(heat, (Some(43), Some(70), Some(80)));
    assert_eq!((reading.used_percent, reading.media_errors), (Some(104), None));
    assert_eq!(reading.written_bytes, Some(12 * 512_000), "the exact twin in text is taken");
    // the aborted one has no verdict
    assert_eq!(reading.self_test, Some(DriveSelfTest { has_passed: false, at_hours: Some(88) }));
    let odd = read(
        &NVME_7_5.replace("\"current\":43", "\"current\":-273").replace("\"warning\":70", "\"warning\":0"),
    );
    assert_eq!((odd.celsius, odd.celsius_warning), (None, None));
    let odd = read(&NVME_7_5.replace("\"current\":43", "\"current\":\"43\"").replace("104", "1e99"));
    assert_eq!((odd.celsius, odd.used_percent), (None, None));
}

/// The drive's own verdict is "failed" for heat alone, and a warm room must not condemn drives.
#[test]
fn heat_is_no_failure() {
    let with = |value: u64| {
        let text = NVME_7_3.replace(
            "\"passed\":true,\"nvme\":{\"value\":0}",
            &format!("\"passed\":false,\"nvme\":{{\"value\":{value}}}"),
        );
        read(&text).says_failing
    };
    assert_eq!(with(2), []);
    assert_eq!(with(1 | 2 | 8), [DriveFault::Spare, DriveFault::ReadOnly]);
    assert_eq!(
        with(4 | 16 | 32),
        [DriveFault::Reliability, DriveFault::MemoryBackup, DriveFault::PersistentMemory]
    );
    let sas = SAS_7_4.replace(
        "\"passed\":true",
        "\"passed\":false,\"scsi\":{\"asc\":11,\"ascq\":1,\"ie_string\":\"hot\"}",
    );
    assert_eq!(read(&sas).says_failing, []);
    assert_eq!(read(&sas.replace("\"ascq\":1", "\"ascq\":5")).says_failing, [DriveFault::SelfAssessment]);
}

#[test]
fn a_sata_drive_is_read_by_the_names_of_its_attributes() {
    let reading = read(SATA_7_1);
    let heat = (reading.celsius, reading.celsius_warning, reading.celsius_critical);
    assert_eq!(heat, (Some(47), Some(70), Some(75)));
    assert_eq!((reading.used_percent, reading.is_wear_guessed), (Some(12), false));
    assert_eq!((reading.spare_percent, reading.spare_percent_min), (Some(97), Some(10)));
    // errors of the cable (199) are none of the media
    assert_eq!((reading.media_errors, reading.unsafe_shutdowns), (Some(2), Some(21)));
    assert_eq!(reading.written_bytes, Some(100 * (32 << 20)));
    assert_eq!(reading.self_test, Some(DriveSelfTest { has_passed: true, at_hours: Some(10) }));
    assert_eq!(reading.says_failing, []);
    let guessed = read(&SATA_7_1.replace("Media_Wearout_Indicator", "Wear_Leveling_Count"));
    assert_eq!((guessed.used_percent, guessed.is_wear_guessed), (Some(12), true));
    let unknown = read(&SATA_7_1.replace("Media_Wearout_Indicator", "Unknown_Attribute"));
    assert_eq!(unknown.used_percent, None);
    let statistics = SATA_7_1.replace(
        "\"temperature\":{",
        r#""ata_device_statistics":{"pages":[{"number":7,"table":[{"name":"Percentage Used Endurance Indicator","value":31,"flags":{"valid":true}}]}]},"temperature":{"#,
    );
    assert_eq!(read(&statistics).used_percent, Some(31));
    assert_eq!(read(&statistics.replace("\"valid\":true", "\"valid\":false")).used_percent, Some(12));
}

#[test]
fn attributes_that_failed_count_only_if_they_foretell_failures_and_fail_now() {
    let spare = |when: &str| {
        let good = r#""thresh":10,"when_failed":"""#;
        read(
            &SATA_7_1
                .replace(good, &good.replace(r#"when_failed":"""#, &format!("when_failed\":\"{when}\""))),
        )
        .says_failing
    };
    assert_eq!(spare("now"), [DriveFault::Attribute { name: "Available_Reservd_Space".to_owned() }]);
    assert_eq!(spare("past"), []);
    let old_age = r#""id":174,"name":"Unsafe_Shutdown_Count","value":100,"thresh":0,"when_failed":"""#;
    let fails = old_age.replace("when_failed\":\"", "when_failed\":\"now");
    assert_eq!(read(&SATA_7_1.replace(old_age, &fails)).says_failing, []);
    let failed = SATA_7_1.replace("\"passed\":true},\"ata", "\"passed\":false},\"ata");
    assert_eq!(read(&failed).says_failing, [DriveFault::SelfAssessment]);
}

#[test]
fn a_sas_drive_has_its_own_words() {
    let reading = read(SAS_7_4);
    assert_eq!((reading.model.as_str(), reading.firmware.as_str()), ("TOSHIBA AL15SEB24EQY", "EF06"));
    let heat = (reading.celsius, reading.celsius_warning, reading.celsius_critical);
    assert_eq!(heat, (Some(32), Some(55), Some(65)));
    assert_eq!((reading.used_percent, reading.media_errors), (Some(7), Some(3)));
    assert_eq!(reading.written_bytes, Some(56_643_667_000_000));
    assert_eq!(reading.self_test, Some(DriveSelfTest { has_passed: false, at_hours: Some(12_000) }));
    let unknown =
        read(&SAS_7_4.replace("\"current\":32,\"drive_trip\":65", "\"current\":0,\"drive_trip\":0"));
    assert_eq!((unknown.celsius, unknown.celsius_critical), (None, None));
}

#[test]
fn what_is_no_reading_says_why() {
    let unread = |text: &str, code| parse(text.as_bytes(), code).expect_err("no health in it");
    let message = |text: &str, severity: &str| {
        format!(
            r#"{{"smartctl":{{"exit_status":2,"messages":[{{"string":"{text}","severity":"{severity}"}}]}},"device":{{"protocol":"NVMe"}}}}"#
        )
    };
    let denied = message("Smartctl open device: /dev/nvme0n1 failed: Permission denied", "error");
    assert_eq!(unread(&denied, Some(2)), HealthUnread::NotPermitted);
    let gone = message("Smartctl open device: /dev/nvme0n1 failed: No such device", "error");
    assert_eq!(
        unread(&gone, Some(2)).to_string(),
        "smartctl: Smartctl open device: /dev/nvme0n1 failed: No such device"
    );
    assert_eq!(
        unread(&message("Device is in STANDBY mode, exit(2)", "information"), Some(2)),
        HealthUnread::Asleep
    );
    let lacks = message("Unavailable - device lacks SMART capability.", "error");
    assert_eq!(unread(&lacks, Some(4)), HealthUnread::NoSmart);
    let none = r#"{"device":{"protocol":"SCSI"},"smart_support":{"available":false}}"#;
    assert_eq!(unread(none, Some(0)), HealthUnread::NoSmart);
    assert_eq!(
        unread("{}", None),
        HealthUnread::NotUnderstood { why: "it was ended by a signal".to_owned() }
    );
    for rubbish in ["", "smartctl 6.6: unrecognized option '--json'", &NVME_7_3[..300], &"[".repeat(1 << 20)]
    {
        let HealthUnread::NotUnderstood { why } = unread(rubbish, Some(1)) else {
            panic!("it is understood")
        };
        assert!(why.contains("no JSON"), "{why}");
    }
    for odd in ["[]", "7", "null", "\"text\"", "{\"device\":[]}", "{\"smartctl\":{\"messages\":7}}"] {
        assert_eq!(unread(odd, Some(0)), HealthUnread::NoSmart);
    }
    assert!(matches!(unread("7", Some(2)), HealthUnread::NotUnderstood { .. }));
}

#[test]
fn names_are_short_and_printable() {
    let reading = read(&NVME_7_3.replace("S64GNE0R000001", &format!("\\u001b[31m{}", "é9".repeat(1000))));
    assert_eq!(reading.serial, format!("[31m{}", "9".repeat(60)));
}
