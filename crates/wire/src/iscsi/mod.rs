//! iSCSI (RFC 7143): PDUs, text keys, digests.
