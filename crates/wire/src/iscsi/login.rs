//! Login Request and Login Response (RFC 7143 §11.12, §11.13).

use zerocopy::big_endian::{U16, U32};

use super::header::{FINAL, IMMEDIATE, NumbersLayout, flag, layout};
use super::{Header, Lengths, Numbers, Opcode, RejectReason};

const CONTINUE: u8 = 0x40;

/// RFC 7143 §11.12.3.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum LoginStage {
    SecurityNegotiation = 0,
    OperationalNegotiation = 1,
    FullFeature = 3,
}

impl LoginStage {
    pub const ALL: [LoginStage; 3] =
        [LoginStage::SecurityNegotiation, LoginStage::OperationalNegotiation, LoginStage::FullFeature];

    fn from_bits(bits: u8) -> Result<LoginStage, RejectReason> {
        match bits & 3 {
            0 => Ok(LoginStage::SecurityNegotiation),
            1 => Ok(LoginStage::OperationalNegotiation),
            3 => Ok(LoginStage::FullFeature),
            _ => Err(RejectReason::InvalidPduField),
        }
    }
}

/// The T, C, CSG and NSG fields, alike in request and response.
fn parse_stages(flags: u8) -> Result<(bool, LoginStage, Option<LoginStage>), RejectReason> {
    let (transit, proceed) = (flags & FINAL != 0, flags & CONTINUE != 0);
    let current = LoginStage::from_bits(flags >> 2)?;
    if current == LoginStage::FullFeature || (transit && proceed) {
        return Err(RejectReason::InvalidPduField);
    }
    let next = if transit { Some(LoginStage::from_bits(flags)?) } else { None };
    if next.is_some_and(|next| next <= current) {
        return Err(RejectReason::InvalidPduField);
    }
    Ok((proceed, current, next))
}

fn emit_stages(proceed: bool, current: LoginStage, next: Option<LoginStage>) -> u8 {
    flag(proceed, CONTINUE) | (current as u8) << 2 | next.map_or(0, |next| FINAL | next as u8)
}

layout! {
    struct RequestLayout {
        opcode: u8,
        flags: u8,
        version_max: u8,
        version_min: u8,
        lengths: [u8; 4],
        isid: [u8; 6],
        tsih: U16,
        task_tag: U32,
        connection_id: U16,
        reserved_1: [u8; 2],
        cmd_sn: U32,
        exp_stat_sn: U32,
        reserved_2: [u8; 16],
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoginRequest {
    /// C: the text goes on in the next request.
    pub proceed: bool,
    pub current_stage: LoginStage,
    /// T and NSG: the initiator is ready to go there; always a later stage.
    pub next_stage: Option<LoginStage>,
    pub version_max: u8,
    pub version_min: u8,
    pub isid: [u8; 6],
    pub tsih: u16,
    pub task_tag: u32,
    pub connection_id: u16,
    pub cmd_sn: u32,
    pub exp_stat_sn: u32,
}

impl LoginRequest {
    pub fn parse(header: &Header) -> Result<LoginRequest, RejectReason> {
        let layout = RequestLayout::of(header);
        let (proceed, current_stage, next_stage) = parse_stages(layout.flags)?;
        Ok(LoginRequest {
            proceed,
            current_stage,
            next_stage,
            version_max: layout.version_max,
            version_min: layout.version_min,
            isid: layout.isid,
            tsih: layout.tsih.get(),
            task_tag: layout.task_tag.get(),
            connection_id: layout.connection_id.get(),
            cmd_sn: layout.cmd_sn.get(),
            exp_stat_sn: layout.exp_stat_sn.get(),
        })
    }

    pub fn emit(&self, lengths: Lengths) -> Header {
        RequestLayout {
            opcode: Opcode::LoginRequest as u8 | IMMEDIATE,
            flags: emit_stages(self.proceed, self.current_stage, self.next_stage),
            version_max: self.version_max,
            version_min: self.version_min,
            lengths: lengths.emit(),
            isid: self.isid,
            tsih: self.tsih.into(),
            task_tag: self.task_tag.into(),
            connection_id: self.connection_id.into(),
            reserved_1: [0; 2],
            cmd_sn: self.cmd_sn.into(),
            exp_stat_sn: self.exp_stat_sn.into(),
            reserved_2: [0; 16],
        }
        .header()
    }
}

/// Outcome of a login step (RFC 7143 §11.13.5). Those that a target of ours sends, and the rest by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoginStatus {
    Success,
    InitiatorError,
    AuthenticationFailed,
    AuthorizationFailed,
    NotFound,
    UnsupportedVersion,
    TooManyConnections,
    MissingParameter,
    SessionTypeNotSupported,
    SessionDoesNotExist,
    InvalidDuringLogin,
    TargetError,
    ServiceUnavailable,
    OutOfResources,
    /// Redirections and whatever else there may be.
    Other {
        class: u8,
        detail: u8,
    },
}

impl LoginStatus {
    pub const NAMED: [(LoginStatus, u8, u8); 14] = [
        (LoginStatus::Success, 0, 0),
        (LoginStatus::InitiatorError, 2, 0),
        (LoginStatus::AuthenticationFailed, 2, 1),
        (LoginStatus::AuthorizationFailed, 2, 2),
        (LoginStatus::NotFound, 2, 3),
        (LoginStatus::UnsupportedVersion, 2, 5),
        (LoginStatus::TooManyConnections, 2, 6),
        (LoginStatus::MissingParameter, 2, 7),
        (LoginStatus::SessionTypeNotSupported, 2, 9),
        (LoginStatus::SessionDoesNotExist, 2, 0x0a),
        (LoginStatus::InvalidDuringLogin, 2, 0x0b),
        (LoginStatus::TargetError, 3, 0),
        (LoginStatus::ServiceUnavailable, 3, 1),
        (LoginStatus::OutOfResources, 3, 2),
    ];

    pub fn from_codes(class: u8, detail: u8) -> LoginStatus {
        LoginStatus::NAMED
            .into_iter()
            .find(|&(_, c, d)| (c, d) == (class, detail))
            .map_or(LoginStatus::Other { class, detail }, |(status, ..)| status)
    }

    /// Class and detail.
    pub fn codes(self) -> (u8, u8) {
        match self {
            LoginStatus::Other { class, detail } => (class, detail),
            named => LoginStatus::NAMED
                .into_iter()
                .find(|&(status, ..)| status == named)
                .map(|(_, class, detail)| (class, detail))
                .expect("every named status is in the table"),
        }
    }
}

layout! {
    struct ResponseLayout {
        opcode: u8,
        flags: u8,
        version_max: u8,
        version_active: u8,
        lengths: [u8; 4],
        isid: [u8; 6],
        tsih: U16,
        task_tag: U32,
        reserved_1: [u8; 4],
        numbers: NumbersLayout,
        status: [u8; 2],
        reserved_2: [u8; 10],
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoginResponse {
    pub proceed: bool,
    pub current_stage: LoginStage,
    pub next_stage: Option<LoginStage>,
    pub version_max: u8,
    pub version_active: u8,
    pub isid: [u8; 6],
    pub tsih: u16,
    pub task_tag: u32,
    pub numbers: Numbers,
    pub status: LoginStatus,
}

impl LoginResponse {
    pub fn parse(header: &Header) -> Result<LoginResponse, RejectReason> {
        let layout = ResponseLayout::of(header);
        let (proceed, current_stage, next_stage) = parse_stages(layout.flags)?;
        Ok(LoginResponse {
            proceed,
            current_stage,
            next_stage,
            version_max: layout.version_max,
            version_active: layout.version_active,
            isid: layout.isid,
            tsih: layout.tsih.get(),
            task_tag: layout.task_tag.get(),
            numbers: layout.numbers.into(),
            status: LoginStatus::from_codes(layout.status[0], layout.status[1]),
        })
    }

    pub fn emit(&self, lengths: Lengths) -> Header {
        let (class, detail) = self.status.codes();
        ResponseLayout {
            opcode: Opcode::LoginResponse as u8,
            flags: emit_stages(self.proceed, self.current_stage, self.next_stage),
            version_max: self.version_max,
            version_active: self.version_active,
            lengths: lengths.emit(),
            isid: self.isid,
            tsih: self.tsih.into(),
            task_tag: self.task_tag.into(),
            reserved_1: [0; 4],
            numbers: self.numbers.into(),
            status: [class, detail],
            reserved_2: [0; 10],
        }
        .header()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iscsi::data::tests::any_numbers;
    use proptest::prelude::*;

    #[test]
    fn golden() {
        let request = LoginRequest {
            proceed: false,
            current_stage: LoginStage::OperationalNegotiation,
            next_stage: Some(LoginStage::FullFeature),
            version_max: 0,
            version_min: 0,
            isid: [0x80, 1, 2, 3, 4, 5],
            tsih: 0,
            task_tag: 0x0a0b,
            connection_id: 1,
            cmd_sn: 2,
            exp_stat_sn: 3,
        };
        let mut expected: Header = [0; 48];
        expected[..2].copy_from_slice(&[0x43, 0x87]);
        expected[6..14].copy_from_slice(&[1, 0x2c, 0x80, 1, 2, 3, 4, 5]);
        expected[18..32].copy_from_slice(&[0x0a, 0x0b, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3]);
        assert_eq!(request.emit(Lengths::data(300)), expected);
        assert_eq!(LoginRequest::parse(&expected), Ok(request));

        let response = LoginResponse {
            proceed: false,
            current_stage: LoginStage::SecurityNegotiation,
            next_stage: None,
            version_max: 0,
            version_active: 0,
            isid: [0x80, 1, 2, 3, 4, 5],
            tsih: 0x0102,
            task_tag: 0x0a0b,
            numbers: Numbers { stat_sn: 4, exp_cmd_sn: 5, max_cmd_sn: 6 },
            status: LoginStatus::AuthorizationFailed,
        };
        let mut expected: Header = [0; 48];
        expected[0] = 0x23;
        expected[8..20].copy_from_slice(&[0x80, 1, 2, 3, 4, 5, 1, 2, 0, 0, 0x0a, 0x0b]);
        expected[24..38].copy_from_slice(&[0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6, 2, 2]);
        assert_eq!(response.emit(Lengths::default()), expected);
        assert_eq!(LoginResponse::parse(&expected), Ok(response));
    }

    #[test]
    fn impossible_stages_are_refused() {
        // T and C together, stage 2, starting in full feature phase, going back, staying
        for flags in [0xc1u8, 0x08, 0x82, 0x0c, 0x8f, 0x84, 0x85, 0x80] {
            let mut header = [0; 48];
            header[1] = flags;
            assert_eq!(LoginRequest::parse(&header), Err(RejectReason::InvalidPduField), "{flags:#x}");
        }
    }

    #[test]
    fn every_status_has_its_own_codes() {
        for class in 0..=255 {
            for detail in 0..=255 {
                assert_eq!(LoginStatus::from_codes(class, detail).codes(), (class, detail));
            }
        }
    }

    fn any_stages() -> impl Strategy<Value = (bool, LoginStage, Option<LoginStage>)> {
        prop_oneof![
            any::<bool>().prop_map(|c| (c, LoginStage::SecurityNegotiation, None)),
            any::<bool>().prop_map(|c| (c, LoginStage::OperationalNegotiation, None)),
            Just((false, LoginStage::SecurityNegotiation, Some(LoginStage::OperationalNegotiation))),
            Just((false, LoginStage::SecurityNegotiation, Some(LoginStage::FullFeature))),
            Just((false, LoginStage::OperationalNegotiation, Some(LoginStage::FullFeature))),
        ]
    }

    proptest! {
        #[test]
        fn requests_come_back(stages in any_stages(), v in any::<(u8, u8)>(), isid: [u8; 6], ids in any::<(u16, u16)>(),
            n in any::<[u32; 3]>())
        {
            let request = LoginRequest { proceed: stages.0, current_stage: stages.1, next_stage: stages.2,
                version_max: v.0, version_min: v.1, isid, tsih: ids.0, task_tag: n[0], connection_id: ids.1,
                cmd_sn: n[1], exp_stat_sn: n[2] };
            prop_assert_eq!(LoginRequest::parse(&request.emit(Lengths::data(1))), Ok(request));
        }

        #[test]
        fn responses_come_back(stages in any_stages(), v in any::<(u8, u8)>(), isid: [u8; 6], tsih: u16, task_tag: u32,
            numbers in any_numbers(), status in any::<(u8, u8)>())
        {
            let response = LoginResponse { proceed: stages.0, current_stage: stages.1, next_stage: stages.2,
                version_max: v.0, version_active: v.1, isid, tsih, task_tag, numbers,
                status: LoginStatus::from_codes(status.0, status.1) };
            prop_assert_eq!(LoginResponse::parse(&response.emit(Lengths::data(1))), Ok(response));
        }
    }
}
