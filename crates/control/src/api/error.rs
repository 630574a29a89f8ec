//! How a request is refused: a word for programs, a sentence for people, and what to do.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A word for programs; each has one HTTP status.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// 400: the request makes no sense.
    Invalid,
    /// 401: no token, or a wrong one.
    Unauthorized,
    /// 404: no thing of that name, or no such resource.
    NotFound,
    /// 405: not with this method.
    MethodNotAllowed,
    /// 408: the request's body took too long.
    TooSlow,
    /// 409: that name, LUN or initiator is taken.
    AlreadyExists,
    /// 409: still mapped, or holding data that somebody may want.
    InUse,
    /// 413: the request is too large.
    TooLarge,
    /// 507: a limit of the array is reached.
    Full,
    /// 500: a drive or file could not be opened, read or written.
    Io,
    /// 503: not now.
    Unavailable,
    /// 504: not carried out in time, and given up: nothing was changed.
    TimedOut,
    /// 504: accepted, and not done in time. It goes on by itself.
    Unfinished,
}

impl ErrorCode {
    pub fn http_status(self) -> u16 {
        match self {
            ErrorCode::Invalid => 400,
            ErrorCode::Unauthorized => 401,
            ErrorCode::NotFound => 404,
            ErrorCode::MethodNotAllowed => 405,
            ErrorCode::TooSlow => 408,
            ErrorCode::AlreadyExists | ErrorCode::InUse => 409,
            ErrorCode::TooLarge => 413,
            ErrorCode::Io => 500,
            ErrorCode::Unavailable => 503,
            ErrorCode::TimedOut | ErrorCode::Unfinished => 504,
            ErrorCode::Full => 507,
        }
    }
}

/// Why a request was not carried out. Nothing was changed, except as [`ErrorCode::Unfinished`] says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ApiError {
    pub code: ErrorCode,
    /// What is wrong, naming what it is about.
    pub message: String,
    /// What to do about it; may be empty.
    #[serde(default)]
    pub hint: String,
}

impl ApiError {
    pub fn new(code: ErrorCode, message: impl Into<String>, hint: impl Into<String>) -> ApiError {
        ApiError { code, message: message.into(), hint: hint.into() }
    }

    pub fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new(ErrorCode::Invalid, message, "")
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}
