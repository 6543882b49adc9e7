//! Who is where: a rack's members, and their memory.

use super::folder::{Folder, ROOT};
use super::layout::{Geometry, Layout, PORTS, SERVICES};
use super::map::nameless;
use super::segment::Segment;
use super::sender::Silence;
use crate::End;
use crate::Whole;
use rackmem_wire::NodeId;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

/// How long a member that was not there is taken for absent without looking again.
const ABSENT: Duration = Duration::from_millis(1);

/// What is known of a member.
#[derive(Default)]
struct Known {
    segment: Option<Arc<Segment>>,
    looked: Option<Instant>,
}

/// A rack's members, as one process knows them.
pub struct Hub {
    layout: Arc<Layout>,
    /// None where all members are in this process.
    folder: Option<Folder>,
    known: Mutex<Vec<Known>>,
    /// Memory without names that members of this process let others read, by what it is called.
    published: Mutex<HashMap<String, File>>,
}

impl Hub {
    /// For a rack whose members are all in this process: memory without names.
    pub fn in_process(geometry: Geometry) -> Arc<Hub> {
        Hub::new(geometry, None)
    }

    /// For the rack of this name whose members are processes of this user on this host.
    /// `rack` is part of a file name. What dead racks of this user have left in the system's memory
    /// is removed.
    pub fn on_this_host(rack: &str, geometry: Geometry) -> io::Result<Arc<Hub>> {
        Hub::in_folder(Path::new(ROOT), rack, geometry)
    }

    pub(super) fn in_folder(root: &Path, rack: &str, geometry: Geometry) -> io::Result<Arc<Hub>> {
        Ok(Hub::new(geometry, Some(Folder::open(root, rack)?)))
    }

    fn new(geometry: Geometry, folder: Option<Folder>) -> Arc<Hub> {
        let known = (0..geometry.members()).map(|_| Known::default()).collect();
        Arc::new(Hub {
            layout: Arc::new(Layout::new(geometry)),
            folder,
            known: Mutex::new(known),
            published: Mutex::default(),
        })
    }

    /// What its members have agreed on.
    pub fn geometry(&self) -> Geometry {
        self.layout.geometry
    }

    /// Takes a member's place. [`io::ErrorKind::AddrInUse`] when its holder is alive.
    pub fn claim(self: &Arc<Hub>, end: End) -> io::Result<Arc<Member>> {
        let index = self.index(end).ok_or(io::ErrorKind::InvalidInput)?;
        let name = name(end);
        let bytes = self.layout.len as u64 * 8;
        let mut known = self.known();
        let taken = known[index]
            .segment
            .as_ref()
            .is_some_and(|s| !s.is_closed());
        let file = match &self.folder {
            Some(folder) => folder.claim(&name, bytes)?,
            None if taken => return Err(io::ErrorKind::AddrInUse.into()),
            None => nameless(bytes)?,
        };
        let segment = Arc::new(Segment::create(file, self.layout.clone())?);
        known[index] = Known {
            segment: Some(segment.clone()),
            looked: None,
        };
        drop(known);
        Ok(Arc::new(Member {
            hub: self.clone(),
            index,
            name,
            segment,
            ports: Mutex::new([false; PORTS]),
            senders: Mutex::new(Some(Vec::new())),
        }))
    }

    pub(super) fn index(&self, end: End) -> Option<usize> {
        let switch = self.geometry().members() - 1;
        match end {
            End::Switch => Some(switch),
            End::Node(node) => Some(usize::from(node)).filter(|node| *node < switch),
        }
    }

    /// The memory of a member that lives, as far as is known.
    pub(super) fn find(&self, index: usize) -> io::Result<Arc<Segment>> {
        let mut known = self.known();
        let known = known.get_mut(index).ok_or(io::ErrorKind::NotFound)?;
        if let Some(segment) = known.segment.as_ref().filter(|s| !s.is_closed()) {
            return Ok(segment.clone());
        }
        known.segment = None;
        let folder = self.folder.as_ref().ok_or(io::ErrorKind::NotFound)?;
        if known.looked.is_some_and(|looked| looked.elapsed() < ABSENT) {
            return Err(io::ErrorKind::NotFound.into());
        }
        known.looked = Some(Instant::now());
        let end = match index == self.geometry().members() - 1 {
            true => End::Switch,
            false => End::Node(index as NodeId),
        };
        let file = folder.find(&name(end))?;
        let segment = Arc::new(Segment::attach(file, self.layout.clone())?);
        known.segment = Some(segment.clone());
        Ok(segment)
    }

    pub(super) fn folder(&self) -> Option<&Folder> {
        self.folder.as_ref()
    }

    pub(super) fn published(&self) -> &Mutex<HashMap<String, File>> {
        &self.published
    }

    fn known(&self) -> MutexGuard<'_, Vec<Known>> {
        self.known.lock().whole()
    }
}

fn name(end: End) -> String {
    match end {
        End::Switch => "switch".to_owned(),
        End::Node(node) => format!("node-{node}"),
    }
}

/// A member's place, which this process has. Given up by [`Member::leave`], by dropping it,
/// or by dying.
pub struct Member {
    hub: Arc<Hub>,
    index: usize,
    name: String,
    segment: Arc<Segment>,
    ports: Mutex<[bool; PORTS]>,
    /// None when the place has been given up.
    senders: Mutex<Option<Vec<Weak<Silence>>>>,
}

impl Member {
    /// What the rack's members have agreed on.
    pub fn geometry(&self) -> Geometry {
        self.hub.geometry()
    }

    pub(super) fn hub(&self) -> &Hub {
        &self.hub
    }

    pub(super) fn hub_shared(&self) -> Arc<Hub> {
        self.hub.clone()
    }

    pub(super) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Which member this is, among all.
    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// The number of an inbox for a requester, and of a sender of its own.
    pub(super) fn take_port(&self) -> Option<(usize, usize)> {
        let mut ports = self.ports.lock().whole();
        let port = ports.iter().position(|taken| !taken)?;
        ports[port] = true;
        Some((port + 1, SERVICES + port))
    }

    pub(super) fn give_port_back(&self, inbox: usize) {
        let mut ports = self.ports.lock().whole();
        ports[inbox - 1] = false;
    }

    pub(super) fn silence_at_the_end(&self, sender: &Arc<Silence>) {
        match self.senders().as_mut() {
            Some(senders) => {
                senders.retain(|sender| sender.strong_count() > 0);
                senders.push(Arc::downgrade(sender));
            }
            None => sender.keep(),
        }
    }

    fn senders(&self) -> MutexGuard<'_, Option<Vec<Weak<Silence>>>> {
        self.senders.lock().whole()
    }

    /// Gives the place up: nothing is sent from here any more when this returns,
    /// and nobody receives.
    pub fn leave(&self) {
        let Some(senders) = self.senders().take() else {
            return;
        };
        // A successor uses the same lanes, and a lane has one sender.
        senders
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|sender| sender.keep());
        self.segment.close();
        if let Some(folder) = &self.hub.folder {
            // The next process removes what stays behind.
            let _ = folder.release(&self.name, self.segment.file());
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.leave();
    }
}
