//! The single-key operations: what each does about what it finds.

use super::db::{Condition, Expiry, SetOptions};
use super::edit::{Current, Edit, Operation};
use super::value::Value;
use crate::Error;
use crate::layout::kind::Kind;
use crate::layout::page::Extent;
use crate::layout::page_mut::Payload;
use crate::number::{INTEGER_LEN, Number, format_i64, parse_i64};

/// SET and its relatives. `FETCH`: also copies the old value out.
pub(crate) struct Set<'a, const FETCH: bool> {
    pub payload: Payload<'a>,
    pub options: SetOptions,
    pub old: Option<&'a mut Vec<u8>>,
    pub applied: bool,
    pub existed: bool,
}

impl<'a> Set<'a, false> {
    pub fn new(payload: Payload<'a>, options: SetOptions) -> Self {
        Self {
            payload,
            options,
            old: None,
            applied: false,
            existed: false,
        }
    }
}

impl<'a> Set<'a, true> {
    pub fn fetching(payload: Payload<'a>, options: SetOptions, old: &'a mut Vec<u8>) -> Self {
        Self {
            payload,
            options,
            old: Some(old),
            applied: false,
            existed: false,
        }
    }
}

impl<const FETCH: bool> Operation for Set<'_, FETCH> {
    fn wants_value(&self) -> bool {
        FETCH
    }
    fn any_kind(&self) -> bool {
        !FETCH
    }

    #[inline]
    fn decide(&mut self, current: Option<&Current<'_>>) -> Edit {
        self.existed = current.is_some();
        if let Some(old) = self.old.as_mut() {
            old.clear();
            if let Some(current) = current {
                current.value.append_to(old);
            }
        }
        self.applied = match self.options.condition {
            Condition::Always => true,
            Condition::IfAbsent => current.is_none(),
            Condition::IfPresent => current.is_some(),
        };
        if !self.applied {
            return Edit::Keep;
        }
        let expiry = match self.options.expiry {
            Expiry::Never => 0,
            Expiry::At(time) => time,
            Expiry::Keep => current.map_or(0, |c| c.meta.expiry),
        };
        Edit::Put { expiry }
    }

    #[inline]
    fn payload(&self) -> Payload<'_> {
        self.payload
    }
}

/// DEL.
#[derive(Default)]
pub(crate) struct Remove {
    pub existed: bool,
}

impl Operation for Remove {
    fn any_kind(&self) -> bool {
        true
    }

    fn decide(&mut self, current: Option<&Current<'_>>) -> Edit {
        self.existed = current.is_some();
        Edit::Remove
    }
}

/// GETDEL and GETEX: copies the value out, then does `edit`.
pub(crate) struct Fetch<'a> {
    pub out: &'a mut Vec<u8>,
    pub edit: Edit,
    pub existed: bool,
}

impl Operation for Fetch<'_> {
    fn wants_value(&self) -> bool {
        true
    }

    fn decide(&mut self, current: Option<&Current<'_>>) -> Edit {
        self.out.clear();
        self.existed = current.is_some();
        let Some(current) = current else {
            return Edit::Keep;
        };
        current.value.append_to(self.out);
        match self.edit {
            // Nothing to persist: no change, and no WATCH should see one.
            Edit::Expire(expiry) if expiry == current.meta.expiry => Edit::Keep,
            edit => edit,
        }
    }
}

/// INCR and its relatives.
pub(crate) struct Increment {
    pub by: i64,
    text: [u8; INTEGER_LEN],
    len: usize,
    pub result: Result<i64, Error>,
}

impl Increment {
    pub fn new(by: i64) -> Self {
        Self {
            by,
            text: [0; INTEGER_LEN],
            len: 0,
            result: Ok(0),
        }
    }

    fn sum(&self, current: Option<&Current<'_>>) -> Result<i64, Error> {
        let old = match current.map(|c| c.value) {
            None => 0,
            Some(Value::Remote(_)) => return Err(Error::NotAnInteger),
            Some(value) => {
                let (text, len) = value.short::<INTEGER_LEN>().ok_or(Error::NotAnInteger)?;
                parse_i64(&text[..len]).ok_or(Error::NotAnInteger)?
            }
        };
        old.checked_add(self.by).ok_or(Error::Overflow)
    }
}

impl Operation for Increment {
    fn decide(&mut self, current: Option<&Current<'_>>) -> Edit {
        self.result = self.sum(current);
        match self.result {
            Ok(sum) => {
                self.len = format_i64(sum, &mut self.text);
                Edit::Put {
                    expiry: current.map_or(0, |c| c.meta.expiry),
                }
            }
            Err(_) => Edit::Keep,
        }
    }

    fn payload(&self) -> Payload<'_> {
        Payload::Inline(&self.text[..self.len])
    }
}

/// INCRBYFLOAT.
pub(crate) struct IncrementFloat {
    pub by: Number,
    /// A sum that does not fit a page is refused: so many digits are useless.
    pub limit: usize,
    pub result: Result<String, Error>,
}

impl IncrementFloat {
    fn sum(&self, current: Option<&Current<'_>>) -> Result<String, Error> {
        let old = match current {
            None => Number::Exact(0),
            Some(current) => {
                let (text, len) = current.value.short::<512>().ok_or(Error::NotAFloat)?;
                Number::parse(&text[..len]).ok_or(Error::NotAFloat)?
            }
        };
        let text = old.plus(self.by).ok_or(Error::NotFinite)?.text();
        if text.len() > self.limit {
            Err(Error::NotFinite)
        } else {
            Ok(text)
        }
    }
}

impl Operation for IncrementFloat {
    fn decide(&mut self, current: Option<&Current<'_>>) -> Edit {
        self.result = self.sum(current);
        match self.result {
            Ok(_) => Edit::Put {
                expiry: current.map_or(0, |c| c.meta.expiry),
            },
            Err(_) => Edit::Keep,
        }
    }

    fn payload(&self) -> Payload<'_> {
        Payload::Inline(self.result.as_ref().map_or(&[], |text| text.as_bytes()))
    }
}

/// Which expiries EXPIRE may replace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpireIf {
    /// Only when the key has no expiry.
    pub none: bool,
    /// Only when it has one.
    pub some: bool,
    /// Only when the new one is later; no expiry counts as the latest.
    pub later: bool,
    /// Only when the new one is earlier.
    pub earlier: bool,
}

impl ExpireIf {
    fn allows(&self, old: u64, new: u64) -> bool {
        let old_end = if old == 0 { u64::MAX } else { old };
        !(self.none && old != 0
            || self.some && old == 0
            || self.later && new <= old_end
            || self.earlier && new >= old_end)
    }
}

/// EXPIRE and its relatives; PERSIST with `at` 0.
pub(crate) struct Expire {
    pub at: u64,
    pub only: ExpireIf,
    pub now: u64,
    pub applied: bool,
}

impl Operation for Expire {
    fn any_kind(&self) -> bool {
        true
    }

    fn decide(&mut self, current: Option<&Current<'_>>) -> Edit {
        let old = current.map(|c| c.meta.expiry);
        self.applied = match old {
            None => false,
            Some(old) if self.at == 0 => old != 0,
            Some(old) => self.only.allows(old, self.at),
        };
        match self.applied {
            false => Edit::Keep,
            true if self.at != 0 && self.at <= self.now => Edit::Remove,
            true => Edit::Expire(self.at),
        }
    }
}

/// Looks, for RENAME and COPY: the value, or where it lies.
#[derive(Default)]
pub(crate) struct Peek {
    pub found: Option<Peeked>,
}

/// A record's contents.
pub(crate) struct Peeked {
    pub kind: Kind,
    pub inline: Vec<u8>,
    pub extent: Option<Extent>,
    pub len: usize,
    pub expiry: u64,
}

impl Operation for Peek {
    fn any_kind(&self) -> bool {
        true
    }

    fn decide(&mut self, current: Option<&Current<'_>>) -> Edit {
        self.found = current.map(|current| {
            let (mut inline, mut extent) = (Vec::new(), None);
            match current.value {
                Value::Remote(place) => extent = Some(place),
                value => value.append_to(&mut inline),
            }
            Peeked {
                kind: current.meta.kind,
                inline,
                extent,
                len: current.meta.len,
                expiry: current.meta.expiry,
            }
        });
        Edit::Keep
    }
}

impl Peeked {
    pub fn payload(&self) -> Payload<'_> {
        match self.extent {
            Some(extent) => Payload::Extent {
                extent,
                len: self.len,
            },
            None => self.inline_payload(&self.inline),
        }
    }

    /// Bytes in the place of its own.
    pub fn inline_payload<'a>(&self, bytes: &'a [u8]) -> Payload<'a> {
        match self.kind {
            Kind::String => Payload::Inline(bytes),
            kind => Payload::Head { kind, bytes },
        }
    }
}
