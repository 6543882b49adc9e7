//! Messages for the person who has started the program: a line of its standard error, each once.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Messages that are remembered; later ones are not said.
const MOST: usize = 64;

static SAID: Mutex<Option<HashSet<String>>> = Mutex::new(None);

/// Says it, whether it has been said or not. Neither locks nor waits for anybody.
pub fn line(text: &str) {
    let line = format!("rackmem: {text}\n");
    // SAFETY: the bytes are there for the length of the call.
    unsafe { libc::syscall(libc::SYS_write, 2, line.as_ptr(), line.len()) };
}

/// Says it, the first time.
pub fn once(text: &str) {
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let said = said.get_or_insert_default();
    if said.len() < MOST && said.insert(text.to_owned()) {
        line(text);
    }
}
