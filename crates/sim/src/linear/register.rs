//! The register of a key-value store: no value or one, and the operations on it.

use std::collections::HashMap;
use std::rc::Rc;

use super::model::{Effect, Makes, Model};
use crate::history::{Call, Operation, Outcome, Reply};

/// A state of a [`Register`]: no value, a numbered one, or anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegisterState(u32);

impl RegisterState {
    /// There is no value.
    pub const ABSENT: RegisterState = RegisterState(0);
    /// Any value or none: what to start from in the middle of a history. It becomes definite at the
    /// first operation that tells.
    pub const ANYTHING: RegisterState = RegisterState(1);
}

impl From<RegisterState> for u64 {
    fn from(state: RegisterState) -> u64 {
        u64::from(state.0)
    }
}

/// One operation on a register. Values are the states in which the register holds them.
/// An answer of `None` is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegisterOp {
    /// Returned the value, or that there is none.
    Get(Option<RegisterState>),
    /// Stored a value.
    Set(RegisterState),
    /// Stored a value, returned the one before.
    Swap(RegisterState, Option<RegisterState>),
    /// Removed the value, returned whether there was one.
    Del(Option<bool>),
    /// Added, returned the sum.
    Incr(i64, Option<i64>),
    /// Compared, stored where equal, returned whether it was.
    Cas(RegisterState, RegisterState, Option<bool>),
    /// Appended the text of a value, returned the length.
    Append(RegisterState, Option<i64>),
    /// Returned something that its kind of operation never returns.
    Nonsense,
}

/// Registers whose values are text, each distinct value kept once and numbered.
#[derive(Debug, Default)]
pub struct Register {
    numbers: HashMap<Rc<str>, RegisterState>,
    values: Vec<Rc<str>>,
    /// A number may be there in other digits than an increment would write: `05`.
    is_ambiguous: bool,
}

/// States below this are not values.
const FIRST_VALUE: u32 = 2;

impl Register {
    /// The state of holding a value.
    pub fn holding(&mut self, value: &str) -> RegisterState {
        if let Some(&state) = self.numbers.get(value) {
            return state;
        }
        // A value is at least one byte of somebody's memory apart from the empty one: 2^32 of them
        // do not fit beside the history they come from.
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX - FIRST_VALUE);
        let state = RegisterState(number + FIRST_VALUE);
        let number: Option<i64> = value.parse().ok();
        self.is_ambiguous |= number.is_some_and(|number| number.to_string() != value);
        let value: Rc<str> = value.into();
        self.values.push(Rc::clone(&value));
        self.numbers.insert(value, state);
        state
    }

    /// The value held in a state, if it is a definite one.
    fn value(&self, state: RegisterState) -> Option<&str> {
        let index = state.0.checked_sub(FIRST_VALUE)?;
        self.values.get(index as usize).map(AsRef::as_ref)
    }

    /// An operation of a history in the model's form.
    pub fn op(&mut self, operation: &Operation) -> RegisterOp {
        let reply = match &operation.outcome {
            Outcome::Ok { reply, .. } => Some(reply),
            Outcome::Fail { .. } | Outcome::Unknown => None,
        };
        match &operation.call {
            Call::Set { value } => RegisterOp::Set(self.holding(value)),
            Call::Get => self.with_value(reply, RegisterOp::Get),
            Call::Swap { value } => {
                let new = self.holding(value);
                self.with_value(reply, |old| RegisterOp::Swap(new, old))
            }
            Call::Del => with_bool(reply, RegisterOp::Del),
            Call::Clear => match reply {
                None | Some(Reply::Nil) => RegisterOp::Del(None),
                Some(_) => RegisterOp::Nonsense,
            },
            Call::Incr { by } => with_int(reply, |sum| RegisterOp::Incr(*by, sum)),
            Call::Cas { expected, value } => {
                let new = self.holding(value);
                let old = match expected {
                    Some(old) => self.holding(old),
                    None => RegisterState::ABSENT,
                };
                with_bool(reply, |won| RegisterOp::Cas(old, new, won))
            }
            Call::Append { value } => {
                self.is_ambiguous = true;
                let tail = self.holding(value);
                with_int(reply, |length| RegisterOp::Append(tail, length))
            }
        }
    }

    fn with_value(
        &mut self,
        reply: Option<&Reply>,
        op: impl FnOnce(Option<RegisterState>) -> RegisterOp,
    ) -> RegisterOp {
        match reply {
            None => op(None),
            Some(Reply::Nil) => op(Some(RegisterState::ABSENT)),
            Some(Reply::Text(text)) => op(Some(self.holding(text))),
            Some(Reply::Bool(_) | Reply::Int(_)) => RegisterOp::Nonsense,
        }
    }

    fn incr(&mut self, state: RegisterState, by: i64, sum: Option<i64>) -> Option<RegisterState> {
        if state == RegisterState::ANYTHING {
            let sum = sum.map(|sum| self.holding(&sum.to_string()));
            return Some(sum.unwrap_or(RegisterState::ANYTHING));
        }
        let old = self.value(state).map_or(Some(0), |text| text.parse().ok());
        match (old.and_then(|old: i64| old.checked_add(by)), sum) {
            (Some(new), Some(sum)) if new != sum => None,
            (Some(new), _) => Some(self.holding(&new.to_string())),
            // Adding to what is no number fails: without effect if nobody was told otherwise.
            (None, None) => Some(state),
            (None, Some(_)) => None,
        }
    }

    fn append(
        &mut self,
        state: RegisterState,
        tail: RegisterState,
        length: Option<i64>,
    ) -> Option<RegisterState> {
        if state == RegisterState::ANYTHING {
            return Some(state);
        }
        let old = self.value(state).unwrap_or_default();
        let tail = self.value(tail).unwrap_or_default();
        let new_length = i64::try_from(old.len() + tail.len()).ok();
        if length.is_some() && length != new_length {
            return None;
        }
        let new = format!("{old}{tail}");
        Some(self.holding(&new))
    }
}

fn with_bool(reply: Option<&Reply>, op: impl FnOnce(Option<bool>) -> RegisterOp) -> RegisterOp {
    match reply {
        None => op(None),
        Some(Reply::Bool(yes)) => op(Some(*yes)),
        Some(Reply::Nil | Reply::Int(_) | Reply::Text(_)) => RegisterOp::Nonsense,
    }
}

fn with_int(reply: Option<&Reply>, op: impl FnOnce(Option<i64>) -> RegisterOp) -> RegisterOp {
    match reply {
        None => op(None),
        Some(Reply::Int(number)) => op(Some(*number)),
        Some(Reply::Nil | Reply::Bool(_) | Reply::Text(_)) => RegisterOp::Nonsense,
    }
}

/// The state narrowed to a value seen in it, if it can be that one.
fn narrowed(state: RegisterState, seen: RegisterState) -> Option<RegisterState> {
    (state == seen || state == RegisterState::ANYTHING).then_some(seen)
}

fn del(state: RegisterState, existed: Option<bool>) -> Option<RegisterState> {
    let possible = match existed {
        None => true,
        Some(_) if state == RegisterState::ANYTHING => true,
        Some(existed) => existed == (state != RegisterState::ABSENT),
    };
    possible.then_some(RegisterState::ABSENT)
}

fn cas(
    state: RegisterState,
    old: RegisterState,
    new: RegisterState,
    won: Option<bool>,
) -> Option<RegisterState> {
    let anything = state == RegisterState::ANYTHING;
    match won {
        Some(true) => narrowed(state, old).map(|_| new),
        Some(false) => (state != old).then_some(state),
        // Of unknown outcome, and it matters only where it stored.
        None if anything || state == old => Some(new),
        None => Some(state),
    }
}

impl Model for Register {
    type Op = RegisterOp;
    type State = RegisterState;

    fn step(&mut self, state: RegisterState, op: RegisterOp) -> Option<RegisterState> {
        match op {
            RegisterOp::Get(None) => Some(state),
            RegisterOp::Get(Some(seen)) => narrowed(state, seen),
            RegisterOp::Set(new) | RegisterOp::Swap(new, None) => Some(new),
            RegisterOp::Swap(new, Some(old)) => narrowed(state, old).map(|_| new),
            RegisterOp::Del(existed) => del(state, existed),
            RegisterOp::Incr(by, sum) => self.incr(state, by, sum),
            RegisterOp::Cas(old, new, won) => cas(state, old, new, won),
            RegisterOp::Append(tail, length) => self.append(state, tail, length),
            RegisterOp::Nonsense => None,
        }
    }

    fn effect(&self, op: RegisterOp) -> Effect {
        match op {
            RegisterOp::Get(_) | RegisterOp::Cas(_, _, Some(false)) | RegisterOp::Nonsense => {
                Effect::Reads
            }
            RegisterOp::Incr(0, Some(1..)) if !self.is_ambiguous => Effect::Reads,
            // There was nothing, and there still is nothing.
            RegisterOp::Del(Some(false)) => Effect::Reads,
            RegisterOp::Set(_) | RegisterOp::Swap(_, None) | RegisterOp::Del(None) => {
                Effect::Overwrites
            }
            RegisterOp::Swap(..)
            | RegisterOp::Del(Some(true))
            | RegisterOp::Incr(..)
            | RegisterOp::Cas(..)
            | RegisterOp::Append(..) => Effect::Depends,
        }
    }

    fn needs(&mut self, op: RegisterOp) -> Option<RegisterState> {
        match op {
            RegisterOp::Get(seen) => seen,
            RegisterOp::Swap(_, old) => old,
            RegisterOp::Cas(old, _, Some(true)) => Some(old),
            RegisterOp::Del(Some(false)) => Some(RegisterState::ABSENT),
            // Zero may have been no value.
            RegisterOp::Incr(by, Some(sum)) if !self.is_ambiguous && sum != by => {
                let old = sum.checked_sub(by)?;
                Some(self.holding(&old.to_string()))
            }
            _ => None,
        }
    }

    fn makes(&mut self, op: RegisterOp) -> Makes<RegisterState> {
        match op {
            _ if self.effect(op) == Effect::Reads => Makes::Nothing,
            RegisterOp::Set(new) | RegisterOp::Swap(new, _) | RegisterOp::Cas(_, new, _) => {
                Makes::One(new)
            }
            RegisterOp::Del(_) => Makes::One(RegisterState::ABSENT),
            RegisterOp::Incr(_, Some(sum)) => Makes::One(self.holding(&sum.to_string())),
            _ => Makes::Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation on every kind of state: what it leaves, or `-` where its answer is
    /// impossible.
    #[test]
    fn steps() {
        use RegisterOp::*;
        let mut register = Register::default();
        let absent = RegisterState::ABSENT;
        let anything = RegisterState::ANYTHING;
        let [five, seven, text] = ["5", "7", "x"].map(|value| register.holding(value));
        let cases = [
            (Get(None), ["nil", "5", "x", "?"]),
            (Get(Some(absent)), ["nil", "-", "-", "nil"]),
            (Get(Some(five)), ["-", "5", "-", "5"]),
            (Set(seven), ["7", "7", "7", "7"]),
            (Swap(seven, None), ["7", "7", "7", "7"]),
            (Swap(seven, Some(five)), ["-", "7", "-", "7"]),
            (Del(None), ["nil", "nil", "nil", "nil"]),
            (Del(Some(true)), ["-", "nil", "nil", "nil"]),
            (Del(Some(false)), ["nil", "-", "-", "nil"]),
            (Incr(2, None), ["2", "7", "x", "?"]),
            (Incr(2, Some(7)), ["-", "7", "-", "7"]),
            (
                Incr(i64::MAX, Some(i64::MIN + 4)),
                ["-", "-", "-", "-9223372036854775804"],
            ),
            (Cas(five, seven, None), ["nil", "7", "x", "7"]),
            (Cas(five, seven, Some(true)), ["-", "7", "-", "7"]),
            (Cas(five, seven, Some(false)), ["nil", "-", "x", "?"]),
            (Cas(absent, seven, Some(true)), ["7", "-", "-", "7"]),
            (Append(text, None), ["x", "5x", "xx", "?"]),
            (Append(text, Some(2)), ["-", "5x", "xx", "?"]),
            (Nonsense, ["-", "-", "-", "-"]),
        ];
        for (op, expected) in cases {
            let after = [absent, five, text, anything].map(|state| {
                let next = register.step(state, op);
                match next {
                    None => "-",
                    Some(RegisterState::ABSENT) => "nil",
                    Some(RegisterState::ANYTHING) => "?",
                    Some(state) => register.value(state).unwrap(),
                }
                .to_owned()
            });
            assert_eq!(after, expected, "{op:?}");
        }
    }
}
