//! Why a command of several parts does not go on.

use crate::failure::Failure;

/// Why a part ended early.
pub enum Halt {
    /// The user, or the failure of another thread, asked for it.
    Stopped,
    /// Something went wrong.
    Failed(Failure),
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        Halt::Failed(failure)
    }
}

impl From<rackmem::Error> for Halt {
    fn from(error: rackmem::Error) -> Self {
        Halt::Failed(error.into())
    }
}

rackmem::from_families!(Halt);

impl From<rackmem_kv::Error> for Halt {
    fn from(error: rackmem_kv::Error) -> Self {
        Halt::Failed(error.into())
    }
}

/// The result of a part.
pub type Played<T> = Result<T, Halt>;

/// A result that is not what it should be: the worst that a command can find.
pub fn wrong(what: impl Into<String>) -> Halt {
    Halt::Failed(Failure::new(
        what,
        "this is a defect of rackmem: please report it with this text and the options",
    ))
}

/// All results, or the first failure; a thread that was only stopped by it does not hide it.
pub fn all<T>(results: Vec<Played<T>>) -> Played<Vec<T>> {
    let mut halted = None;
    let mut values = Vec::with_capacity(results.len());
    for result in results {
        match (result, &halted) {
            (Ok(value), _) => values.push(value),
            (Err(Halt::Stopped), Some(_)) | (Err(_), Some(Halt::Failed(_))) => {}
            (Err(halt), _) => halted = Some(halt),
        }
    }
    halted.map_or(Ok(values), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_before_a_stop() {
        let results = || {
            vec![
                Ok(1),
                Err(Halt::Stopped),
                Err(wrong("this")),
                Err(wrong("that")),
            ]
        };
        match all(results()) {
            Err(Halt::Failed(failure)) => assert!(failure.to_string().contains("this")),
            _ => panic!("the failure is lost"),
        }
        assert!(matches!(all(vec![Ok(1), Ok(2)]), Ok(values) if values == [1, 2]));
        let stopped = all(vec![Ok(1), Err(Halt::Stopped)]);
        assert!(matches!(stopped, Err(Halt::Stopped)));
    }
}
