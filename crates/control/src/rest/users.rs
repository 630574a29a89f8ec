//! Who gets in: users, their sessions, tokens. Moments are in milliseconds since 1970.

use std::fmt;

use api::{ChangeStep, Role, Worded};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A user to add.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    pub name: String,
    pub role: Role,
    /// 10 to 256 bytes.
    pub password: String,
    /// From then on, nobody signs in as this user; null is never.
    #[serde(default)]
    pub expires_ms: Option<u64>,
}

/// What is to be different about a user. What is not given stays.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserUpdate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// Have no end date any more. Not beside `expires_ms`.
    #[serde(default)]
    pub never_expires: bool,
}

/// Another password for who asks.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPassword {
    /// The password until now.
    pub current: String,
    /// 10 to 256 bytes.
    pub new: String,
}

/// A token to add.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    pub name: String,
    pub role: Role,
    /// From then on it is refused; null is never.
    #[serde(default)]
    pub expires_ms: Option<u64>,
}

/// A user, as far as that is no secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct UserStatus {
    pub name: String,
    pub role: Role,
    pub disabled: bool,
    pub created_ms: u64,
    pub expires_ms: Option<u64>,
    /// The end date is over.
    pub expired: bool,
    /// Browsers that have signed in.
    pub sessions: u64,
}

/// A browser that has signed in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionOfUser {
    pub number: u64,
    pub user: String,
    /// Where it signed in from: address and port.
    pub address: String,
    pub began_ms: u64,
    /// Since its last request.
    pub idle_seconds: u64,
}

/// A token, without its secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TokenStatus {
    pub name: String,
    pub role: Role,
    pub created_ms: u64,
    pub expires_ms: Option<u64>,
    /// The end date is over.
    pub expired: bool,
    /// The beginning of the hour in which it was used last; null: not yet.
    pub last_used_ms: Option<u64>,
}

/// All users of this head.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct UserList {
    pub schema: u32,
    pub users: Vec<UserStatus>,
}

/// All sessions of this head.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionList {
    pub schema: u32,
    pub sessions: Vec<SessionOfUser>,
}

/// All tokens of this head.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    pub schema: u32,
    pub tokens: Vec<TokenStatus>,
}

/// A token that was made. Its secret is in this answer alone.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct TokenMade {
    pub schema: u32,
    #[serde(with = "api::worded::list")]
    #[schema(value_type = Vec<Worded<ChangeStep>>)]
    pub steps: Vec<ChangeStep>,
    /// What a program sends as `Authorization: Bearer`; null for a dry run.
    pub secret: Option<String>,
}

/// Who asks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Me {
    pub schema: u32,
    pub name: String,
    pub role: Role,
    /// Of a browser that has signed in: what each change must have as the header `X-CSRF-Token`, or the field `csrf` of a form; else null.
    pub csrf: Option<String>,
}

/// Where this head is reached over TLS, and by which certificate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WebStatus {
    pub schema: u32,
    /// Addresses and ports; empty: nowhere.
    pub listen: Vec<String>,
    /// Null where there is none.
    pub certificate: Option<WebCertificateStatus>,
}

/// The certificate that is shown.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WebCertificateStatus {
    /// SHA-256 of the certificate, in hexadecimal digits.
    pub fingerprint: String,
    /// The head has made it itself.
    pub own: bool,
    /// What it is for; only of one that the head has made.
    pub names: Vec<String>,
    /// When it ends; only of one that the head has made.
    pub ends_ms: Option<u64>,
    pub pem: String,
}

macro_rules! without_values {
    ($($name:ident)*) => {
        $(
            /// Without a password.
            impl fmt::Debug for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(stringify!($name))
                }
            }
        )*
    };
}

without_values! { NewUser UserUpdate NewPassword }
