//! What the environment says.

use std::path::Path;
use std::sync::OnceLock;

/// Beginnings of the paths that are the rack's, separated by colons.
pub const FILES: &str = "RACKMEM_FILES";
/// The node that has the bytes of all files.
pub const HOME: &str = "RACKMEM_FILES_HOME";
/// The least room of a file that is mapped or has been given a length, in bytes or as `64M`.
pub const ROOM: &str = "RACKMEM_FILES_ROOM";
/// `unlock`: what a node has written is at home when it lets a mutex go.
pub const KEEP: &str = "RACKMEM_FILES_KEEP";
/// `node`: numbers of processes are told with the node's in them.
pub const PIDS: &str = "RACKMEM_PIDS";
/// The member whose child a process is.
pub const PARENT: &str = "RACKMEM_MEMBER";
/// The rack's file: without it this library does nothing.
pub const CONFIG: &str = "RACKMEM_CONFIG";

const DEFAULT_FILES: &str = "/dev/shm/rack.:/dev/shm/sem.rack.";
const DEFAULT_ROOM: u64 = 8 << 20;

/// See the module.
pub struct Settings {
    /// Whether there is a rack.
    pub rack: bool,
    pub files: Vec<String>,
    pub home: u16,
    pub room: u64,
    /// What was written goes home when a mutex is let go.
    pub keep: bool,
    pub pids: bool,
    /// The process of the member whose child this may be.
    pub parent: Option<u32>,
}

pub fn get() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let text = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let files = text(FILES).unwrap_or_else(|| DEFAULT_FILES.into());
        let room = text(ROOM).and_then(|text| text.parse::<rackmem::Size>().ok());
        Settings {
            rack: text(CONFIG).is_some(),
            files: files
                .split(':')
                .filter(|file| !file.is_empty())
                .map(Into::into)
                .collect(),
            home: text(HOME).and_then(|text| text.parse().ok()).unwrap_or(0),
            room: room.map_or(DEFAULT_ROOM, |size| size.0),
            keep: text(KEEP).as_deref() == Some("unlock"),
            pids: text(PIDS).as_deref() == Some("node"),
            parent: text(PARENT).and_then(|text| text.parse().ok()),
        }
    })
}

impl Settings {
    /// Whether a path, which begins at the root, is the rack's.
    pub fn has(&self, path: &Path) -> bool {
        let Some(path) = path.to_str() else {
            return false;
        };
        self.files
            .iter()
            .any(|file| path.starts_with(file.as_str()))
    }
}
