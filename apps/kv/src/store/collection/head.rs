//! A collection's value in its record: each of its trees, which is a leaf or points to a node.
//!
//! ```text
//! 0: u8 | count | len | the leaf's entries
//! 1: u8 | count | address: u64 | len | level: u8
//! ```

use super::node::{Child, Cursor, Leaf, Link, Node, Place, push_number};
use super::tree::Tree;
use crate::error::{Error, Result};
use crate::layout::kind::Kind;

const INLINE: u8 = 0;
const STORED: u8 = 1;
/// Bytes of a tree that is a pointer, at most.
pub(crate) const POINTER: usize = 1 + 10 + 8 + 5 + 1;

// Two trees fit the smallest page's share for a value.
const _: () = assert!(2 * POINTER <= 64);

/// The trees in a record's value.
pub(crate) fn decode(kind: Kind, bytes: &[u8]) -> Result<Vec<Tree>> {
    let mut cursor = Cursor::new(bytes);
    let trees = (0..kind.trees()).map(|_| tree(&mut cursor));
    let trees = trees.collect::<Option<_>>();
    trees.ok_or(Error::Corrupt("a collection's record makes no sense"))
}

fn tree(cursor: &mut Cursor<'_>) -> Option<Tree> {
    let (form, count) = (cursor.byte()?, cursor.number()?);
    if form == STORED {
        let (addr, len, level) = (cursor.word()?, cursor.length()?, cursor.byte()?);
        let place = Place { addr, len, level };
        return Some(Tree::from(Child {
            separator: Vec::new(),
            count,
            link: Link::Stored(place),
        }));
    }
    let len = cursor.length()?;
    let leaf = Leaf {
        bytes: cursor.take(len)?.to_vec(),
        count: usize::try_from(count).ok()?,
    };
    let whole = form == INLINE && leaf.entries().count() == leaf.count;
    whole.then(|| Tree::from(Child::of(Node::Leaf(leaf), Vec::new())))
}

/// The value of a record with these trees, all of which are stored or leaves.
pub(crate) fn encode(trees: &[Tree]) -> Vec<u8> {
    let mut out = Vec::new();
    for tree in trees {
        let root = tree.root();
        match &root.link {
            Link::Stored(place) => {
                out.push(STORED);
                push_number(root.count, &mut out);
                out.extend_from_slice(&place.addr.to_le_bytes());
                push_number(place.len as u64, &mut out);
                out.push(place.level);
            }
            Link::Here(node) => {
                let Node::Leaf(leaf) = node.as_ref() else {
                    continue; // it would have been stored
                };
                out.push(INLINE);
                push_number(leaf.count as u64, &mut out);
                push_number(leaf.bytes.len() as u64, &mut out);
                out.extend_from_slice(&leaf.bytes);
            }
        }
    }
    out
}
