//! SCSI (SPC-4, SBC-3, SAM-5): CDBs, sense data, inquiry and mode pages.
