//! What goes wrong in a script, on its way through Lua.

use std::fmt;
use std::sync::Arc;

use mlua::{Lua, Value};

/// An error that a function of the table `redis` raises.
#[derive(Clone, Debug)]
pub(crate) struct Raised {
    /// Its code and text.
    pub text: Vec<u8>,
    /// It is the reply of a command, and was counted when that failed.
    pub counted: bool,
}

/// A script has to end, and cannot prevent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It has touched what was not planned, and is to run again with more.
    Again,
    /// A client has asked for its end.
    Killed,
    /// It has run for [`super::running::LONGEST`].
    TooLong,
    /// It is a library, and has been loading for [`super::running::LOADING`].
    LoadsTooLong,
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        String::from_utf8_lossy(&self.text).fmt(f)
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Again => "ERR the script has to run again",
            Self::Killed => "ERR Script killed by user with SCRIPT KILL...",
            Self::TooLong => "ERR the script has run for too long and was stopped",
            Self::LoadsTooLong => "ERR FUNCTION LOAD timeout",
        })
    }
}

impl std::error::Error for Raised {}
impl std::error::Error for Stop {}

/// What an error comes from.
pub(crate) enum Cause {
    Raised(Raised),
    Stop(Stop),
    /// Lua's own, as text.
    Lua(String),
}

impl Cause {
    pub fn of(error: &mlua::Error) -> Self {
        match error {
            mlua::Error::CallbackError { cause, .. } => Self::of(cause),
            mlua::Error::ExternalError(inner) => Self::external(inner),
            mlua::Error::RuntimeError(text) | mlua::Error::MemoryError(text) => {
                Self::Lua(text.clone())
            }
            mlua::Error::SyntaxError { message, .. } => Self::Lua(message.clone()),
            other => Self::Lua(other.to_string()),
        }
    }

    fn external(error: &Arc<dyn std::error::Error + Send + Sync>) -> Self {
        if let Some(raised) = error.downcast_ref::<Raised>() {
            return Self::Raised(raised.clone());
        }
        match error.downcast_ref::<Stop>() {
            Some(stop) => Self::Stop(*stop),
            None => Self::Lua(error.to_string()),
        }
    }

    /// What makes a script end, if `value` is an error that does.
    pub fn stop(value: &Value) -> Option<Stop> {
        let Value::Error(error) = value else {
            return None;
        };
        match Self::of(error) {
            Self::Stop(stop) => Some(stop),
            _ => None,
        }
    }
}

/// An error that a script hears of first.
pub(crate) fn raised(text: impl Into<Vec<u8>>) -> mlua::Error {
    mlua::Error::external(Raised {
        text: text.into(),
        counted: false,
    })
}

/// An error of a command's reply.
pub(crate) fn replied(text: impl Into<Vec<u8>>) -> mlua::Error {
    mlua::Error::external(Raised {
        text: text.into(),
        counted: true,
    })
}

/// An error of a library's function, with the script's line, as Lua's own libraries have them.
pub(crate) fn failed(lua: &Lua, text: impl fmt::Display) -> mlua::Error {
    let place = lua.inspect_stack(1, |frame| {
        let line = frame.current_line()?;
        let source = frame.source().short_src?.into_owned();
        Some(format!("{source}:{line}: "))
    });
    let place = place.flatten().unwrap_or_default();
    mlua::Error::RuntimeError(format!("{place}{text}"))
}

/// "bad argument".
pub(crate) fn bad_argument(
    lua: &Lua,
    position: usize,
    function: &str,
    why: impl fmt::Display,
) -> mlua::Error {
    failed(
        lua,
        format_args!("bad argument #{position} to '{function}' ({why})"),
    )
}
