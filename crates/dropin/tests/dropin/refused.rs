//! What cannot work ends with a message that names the cause; what looks as if it could not, does.

use crate::support::{Files, Where, compiled};

/// What is tried, what the program is told, and a part of what the person is told.
const CASES: &[(&str, &str, &str)] = &[
    ("direct", "EINVAL", "O_DIRECT"),
    ("reopen", "EOPNOTSUPP", "fclose() it and fopen() the file"),
    ("rename", "EXDEV", "not the rack's"),
    ("fixed", "EINVAL", "MAP_FIXED"),
    ("room", "EFBIG", "RACKMEM_FILES_ROOM"),
    ("grown", "EFBIG", "RACKMEM_FILES_ROOM"),
    ("full", "ENOSPC", "no room for"),
    ("futex", "ENOSYS", "wakes nobody on another host"),
    ("past", "EBADF", ""),
    ("private", "8 7", ""),
    ("buffers", "7", ""),
    ("exec", "EPERM", "was started by a node of the rack"),
    ("fork-opens", "EPERM", "is a child by fork()"),
    ("fork-loads", "SEGV", "a child by fork() has touched"),
];

#[test]
fn each_says_why() {
    let Some(program) = compiled("refused.c", &[]) else {
        return;
    };
    let Some(files) = Files::new("refused", Where::Shm, 1) else {
        return;
    };
    for (what, told, said) in CASES {
        let ended = files.start(1, &[program.to_str().unwrap(), what]).wait();
        assert_eq!(ended.code(), Some(0), "{what}: {ended:#?}");
        assert_eq!(ended.out.trim(), *told, "{what}: {ended:#?}");
        assert!(ended.err.contains(said), "{what}: {ended:#?}");
        assert_eq!(ended.err.is_empty(), said.is_empty(), "{what}: {ended:#?}");
    }
}
