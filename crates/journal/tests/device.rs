//! Stores on a real file system whose device fails: ext4 on a loop device, over a sparse file in a
//! `tmpfs` that is full long before that file is.
//!
//! When the device cannot write a block, `fdatasync` fails once, and the next one of the same file
//! says that all is well: the system has dropped what it could not write.

use rackmem_journal::{Folder, Limits, Store, StoreError, Wanted};
use rackmem_proto::abd::journal::Entry;
use rackmem_proto::abd::{Layout, Stamp, first_line};
use rackmem_proto::wire::Tag;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const LINE: usize = 4096;
/// Bytes of the device, and those behind which it fails.
const DEVICE: u64 = 64 << 20;
const ROOM: &str = "size=4m";

fn tag(nth: u64) -> Tag {
    Tag(first_line(0).0 + nth * LINE as u64)
}

/// A mounted file system, its device, and what that is in. Taken apart at the end.
struct Device(PathBuf);

impl Device {
    /// The reason why this machine cannot have one, as an error.
    fn new(name: &str) -> Result<Device, String> {
        let name = format!("rackmem-device-{name}-{}", std::process::id());
        let device = Device(std::env::temp_dir().join(name));
        for folder in [device.behind(), device.mounted()] {
            std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        }
        let behind = device.behind();
        run("mount", &["-t", "tmpfs", "-o", ROOM, "tmpfs"], &[&behind])?;
        let image = File::create(device.image()).and_then(|file| file.set_len(DEVICE));
        image.map_err(|error| error.to_string())?;
        // Nothing of the file system's own is written late.
        let made = ["-q", "-F", "-b", "4096", "-O", "^has_journal", "-m", "0"];
        let eager = ["-E", "lazy_itable_init=0"];
        let made: Vec<&str> = made.into_iter().chain(eager).collect();
        run("mkfs.ext4", &made, &[&device.image()])?;
        device.mount()?;
        Ok(device)
    }

    fn behind(&self) -> PathBuf {
        self.0.join("behind")
    }

    fn mounted(&self) -> PathBuf {
        self.0.join("mounted")
    }

    fn image(&self) -> PathBuf {
        self.behind().join("image")
    }

    fn mount(&self) -> Result<(), String> {
        let image = self.image();
        let set_up = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(&image)
            .output();
        let set_up = set_up.map_err(|error| format!("losetup: {error}"))?;
        let device = String::from_utf8_lossy(&set_up.stdout).trim().to_owned();
        let name = device.strip_prefix("/dev/").ok_or("losetup: no device")?;
        // A write of which the `tmpfs` takes a part is done, says the loop device. So no write is
        // longer than what is taken or not: a page.
        let longest = format!("/sys/block/{name}/queue/max_sectors_kb");
        let mounted = std::fs::write(longest, "4").map_err(|error| error.to_string());
        let mounted =
            mounted.and_then(|()| run("mount", &[], &[Path::new(&device), &self.mounted()]));
        // It goes when it is unmounted.
        run("losetup", &["--detach"], &[Path::new(&device)])?;
        mounted
    }

    /// What is in the page cache only is gone.
    fn mount_again(&self) {
        unmount(&self.mounted()).unwrap();
        self.mount().unwrap();
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        for mounted in [self.mounted(), self.behind()] {
            let _ = unmount(&mounted);
        }
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Takes a file system away, if there is one. A child of another test's that has not run its
/// program yet has this process' files open, and a loop device goes a while after what was mounted
/// of it.
fn unmount(place: &Path) -> Result<(), String> {
    let end = Instant::now() + Duration::from_secs(60);
    let line = format!(" {} ", place.display());
    loop {
        let mounts = std::fs::read_to_string("/proc/mounts").map_err(|error| error.to_string())?;
        if !mounts.contains(&line) {
            return Ok(());
        }
        match run("umount", &[], &[place]) {
            Err(reason) if Instant::now() > end => return Err(reason),
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn run(command: &str, options: &[&str], paths: &[&Path]) -> Result<(), String> {
    let output = Command::new(command).args(options).args(paths).output();
    let output = output.map_err(|error| format!("{command}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// A device, or none where this machine has no means for one, which is said.
fn device(name: &str) -> Option<Device> {
    match Device::new(name) {
        Ok(device) => Some(device),
        Err(reason) => {
            let mut out = std::io::stdout();
            writeln!(out, "skipped: no file system on a loop device: {reason}").unwrap();
            None
        }
    }
}

type Opened = (Store<Folder, u64>, BTreeMap<Tag, u8>);

fn open(path: &Path) -> Result<Opened, StoreError> {
    let wanted = Wanted {
        rack: 1,
        group: 0,
        layout: Layout::new(LINE as u32, 64 * LINE as u64).unwrap(),
        fresh: 5,
    };
    let mut lines = BTreeMap::new();
    let apply = |tag, bytes: &[u8]| {
        lines.insert(tag, bytes[0]);
    };
    let (store, restored) = Store::open(Folder::open(path)?, &wanted, Limits::default(), apply)?;
    assert_eq!(restored.life, 5);
    Ok((store, lines))
}

fn put(store: &mut Store<Folder, u64>, stamp: u64) -> Result<(), StoreError> {
    let bytes = [stamp as u8; LINE];
    let line = Entry::Line {
        tag: tag(stamp % 64),
        stamp: Stamp(stamp),
        bytes: &bytes,
    };
    store.put(&line, stamp)
}

/// Writes until the store has ended: the last that it has acknowledged, and why it has.
fn fill(store: &mut Store<Folder, u64>) -> (u64, StoreError) {
    let mut acknowledged = 0;
    for stamp in 1..=DEVICE / LINE as u64 {
        put(store, stamp).unwrap();
        match store.commit() {
            Ok(tickets) => acknowledged = tickets.last().copied().unwrap_or(acknowledged),
            Err(error) => return (acknowledged, error),
        }
    }
    panic!("a device of 4 MiB took 64");
}

#[test]
fn a_device_that_fails_and_then_says_that_all_is_well_ends_the_store_for_good() {
    let Some(device) = device("fails") else {
        return;
    };
    let folder = device.mounted();
    let (mut store, _) = open(&folder).unwrap();
    let (acknowledged, error) = fill(&mut store);
    let of_the_disk = matches!(error, StoreError::Full { .. } | StoreError::Io { .. });
    assert!(of_the_disk && acknowledged > 200, "{acknowledged}: {error}");
    // There is room again, and the system says of the same file that it is durable.
    let larger = ["-o", "remount,size=96m"];
    run("mount", &larger, &[&device.behind()]).unwrap();
    let journal = std::fs::read_dir(&folder).unwrap().flatten().find(|entry| {
        let name = entry.file_name();
        name.as_encoded_bytes().starts_with(b"journal")
    });
    let journal = journal.expect("one that the store writes").path();
    File::open(journal).unwrap().sync_data().unwrap();
    // The store trusts neither, and acknowledges nothing any more.
    for stamp in 1..4 {
        assert!(matches!(put(&mut store, stamp), Err(StoreError::Ended)));
        assert!(matches!(store.commit(), Err(StoreError::Ended)));
    }
    drop(store);
    device.mount_again();
    match open(&folder) {
        Ok((_store, lines)) => {
            for nth in 0..64 {
                let kept = (1..=acknowledged).rev().find(|stamp| stamp % 64 == nth);
                // What it could not make durable may be there as well: it promised nothing.
                let more = Some((acknowledged + 1) as u8);
                let found = lines.get(&tag(nth)).copied();
                let is_next = (acknowledged + 1) % 64 == nth && found == more;
                assert!(
                    is_next || found == kept.map(|stamp| stamp as u8),
                    "line {nth}: {found:?} of {acknowledged}, {error}"
                );
            }
        }
        // A later block of the last batch is there and an earlier one is not.
        Err(error) => assert!(matches!(error, StoreError::Damaged { .. }), "{error}"),
    }
}

#[test]
fn a_device_that_cannot_be_read_gives_no_store_and_none_that_is_new() {
    let Some(device) = device("unread") else {
        return;
    };
    let folder = device.mounted();
    let (mut store, _) = open(&folder).unwrap();
    for stamp in 1..=200 {
        put(&mut store, stamp).unwrap();
        store.commit().unwrap();
    }
    drop(store);
    device.mount_again();
    let whole = open(&folder).unwrap().1;
    assert_eq!(whole.len(), 64);
    device.mount_again();
    // The end of the device is gone, and the journal with it; the file system's own is in front.
    let image = File::options().write(true).open(device.image()).unwrap();
    image.set_len(1 << 20).unwrap();
    let error = open(&folder).map(|_| ()).unwrap_err();
    let told = error.to_string();
    assert!(matches!(error, StoreError::Io { .. }), "{told}");
    assert!(told.contains("check the disk"), "{told}");
}
