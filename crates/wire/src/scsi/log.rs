//! Log pages (SPC-4 §7.3, SBC-3 §6.4).

pub const PAGE_SUPPORTED: u8 = 0x00;
pub const PAGE_PROVISIONING: u8 = 0x0C;
pub const PAGE_TEMPERATURE: u8 = 0x0D;
pub const PAGE_INFORMATIONAL_EXCEPTIONS: u8 = 0x2F;

/// What a temperature field says where nobody knows.
const TEMPERATURE_UNKNOWN: u8 = 0xFF;

/// A parameter: its code, its control byte's FORMAT AND LINKING, its value.
pub struct Parameter {
    pub code: u16,
    pub format: u8,
    pub value: Vec<u8>,
}

/// A list in binary format, a counter without overflow.
const FORMAT_BINARY_LIST: u8 = 0x03;

/// A page with these parameters. DS: nothing of it is saved.
pub fn emit_page(page: u8, parameters: &[Parameter]) -> Vec<u8> {
    let mut body = Vec::new();
    for parameter in parameters {
        body.extend_from_slice(&parameter.code.to_be_bytes());
        body.extend_from_slice(&[parameter.format, parameter.value.len() as u8]);
        body.extend_from_slice(&parameter.value);
    }
    emit_body(page, &body)
}

/// A page with a body of its own form.
pub fn emit_body(page: u8, body: &[u8]) -> Vec<u8> {
    const DS: u8 = 0x80;
    let length = u16::try_from(body.len()).expect("log pages are short");
    [&[DS | page, 0], &length.to_be_bytes()[..], body].concat()
}

/// The temperature page: no figure for it.
pub fn temperature() -> Vec<Parameter> {
    let parameter =
        |code| Parameter { code, format: FORMAT_BINARY_LIST, value: vec![0, TEMPERATURE_UNKNOWN] };
    vec![parameter(0), parameter(1)]
}

/// The informational exceptions page: no exception, no figure for the temperature.
pub fn informational_exceptions() -> Vec<Parameter> {
    vec![Parameter { code: 0, format: FORMAT_BINARY_LIST, value: vec![0, 0, TEMPERATURE_UNKNOWN, 0] }]
}

/// The logical block provisioning page: available and used resources of the pool, in threshold sets, not of
/// this logical unit alone (SBC-3 §6.4.4).
pub fn provisioning(available: u32, used: u32) -> Vec<Parameter> {
    const SHARED: u8 = 0x02;
    let parameter = |code, count: u32| Parameter {
        code,
        format: FORMAT_BINARY_LIST,
        value: [&count.to_be_bytes()[..], &[SHARED, 0, 0, 0]].concat(),
    };
    vec![parameter(1, available), parameter(2, used)]
}

/// The parameters of a page that [`emit_page`] made; `None` where it is cut short.
pub fn parse_page(bytes: &[u8]) -> Option<(u8, Vec<Parameter>)> {
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    let mut rest = rest.get(..usize::from(u16::from_be_bytes([head[2], head[3]])))?;
    let mut parameters = Vec::new();
    while !rest.is_empty() {
        let (head, next) = rest.split_first_chunk::<4>()?;
        let (value, next) = next.split_at_checked(usize::from(head[3]))?;
        let code = u16::from_be_bytes([head[0], head[1]]);
        parameters.push(Parameter { code, format: head[2], value: value.to_vec() });
        rest = next;
    }
    Some((head[0] & 0x3F, parameters))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        assert_eq!(emit_body(0, &[0, 0x0D]), [0x80, 0, 0, 2, 0, 0x0D]);
        let page = emit_page(PAGE_TEMPERATURE, &temperature());
        assert_eq!(page, [0x8D, 0, 0, 12, 0, 0, 3, 2, 0, 0xFF, 0, 1, 3, 2, 0, 0xFF]);
        let page = emit_page(PAGE_PROVISIONING, &provisioning(7, 9));
        assert_eq!(page[..16], [0x8C, 0, 0, 24, 0, 1, 3, 8, 0, 0, 0, 7, 2, 0, 0, 0]);
        let (code, parameters) = parse_page(&page).unwrap();
        assert_eq!((code, parameters.len(), parameters[1].value[3]), (0x0C, 2, 9));
        assert!(parse_page(&page[..20]).is_none());
    }
}
