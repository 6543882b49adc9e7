//! What durable copies are written to, where that is no folder.

use rackmem_journal::Disk;
use rackmem_proto::wire::NodeId;
use std::fmt;
use std::sync::Arc;

/// What a store is written to.
pub(crate) type Medium = Box<dyn Disk + Send>;
/// What takes the place of a node's folders, and whether it has a store.
type Make = Arc<dyn Fn(NodeId) -> (Medium, bool) + Send + Sync>;

/// For disks that fail; none: folders.
#[derive(Clone, Default)]
pub(crate) struct Disks(pub Option<Make>);

impl fmt::Debug for Disks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "others"
        } else {
            "folders"
        })
    }
}
