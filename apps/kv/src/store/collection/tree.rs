//! A tree of entries that knows how many are below each node: found by key or by position.
//!
//! Nodes are never changed where they are. What a change touches is made anew in this process, and
//! stored elsewhere when it is whole ([`Tree::store`]); the old nodes are freed when nothing points
//! to them any more. So who fails in the middle has changed nothing, and readers of the old root
//! find the old tree.

use std::ops::Range;

use super::node::{Child, INNER_MAX, LEAF_MAX, LEVELS_MAX, Leaf, Link, Node, Place, separator};
use crate::error::{Error, Result};

/// Memory for nodes.
pub(crate) trait Nodes {
    fn load(&self, place: Place) -> Result<Vec<u8>>;
    fn store(&self, bytes: &[u8]) -> Result<u64>;
}

/// A tree, as far as it has been looked at.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    root: Child,
    /// Nodes that are not of it any more.
    pub freed: Vec<Place>,
    pub changed: bool,
}

/// Where an entry goes.
#[derive(Clone, Copy)]
enum Spot {
    /// Where its key belongs.
    ByKey,
    /// Before the one at this position.
    At(u64),
    /// Over the one at this position.
    Over(u64),
}

impl Default for Tree {
    fn default() -> Self {
        Tree::from(Child::of(Node::Leaf(Leaf::default()), Vec::new()))
    }
}

impl From<Child> for Tree {
    fn from(root: Child) -> Self {
        Tree {
            root,
            freed: Vec::new(),
            changed: false,
        }
    }
}

/// Shows `f` a node.
fn peek<R>(link: &Link, nodes: &dyn Nodes, f: impl FnOnce(&Node) -> Result<R>) -> Result<R> {
    match link {
        Link::Here(node) => f(node),
        Link::Stored(place) => f(&fetch(*place, nodes)?),
    }
}

fn fetch(place: Place, nodes: &dyn Nodes) -> Result<Node> {
    let node = Node::decode(&nodes.load(place)?)?;
    match node.level() == place.level {
        true => Ok(node),
        false => Err(Error::Corrupt("a node of a collection has another level")),
    }
}

/// The child that a key belongs to.
fn by_key(children: &[Child], key: &[u8]) -> usize {
    let behind = children.iter().skip(1);
    behind
        .take_while(|child| child.separator.as_slice() <= key)
        .count()
}

/// The child that an entry at `index` is in, and its position there. With `end`, the position
/// behind a child's last entry is that child's, too.
fn by_index(children: &[Child], mut index: u64, end: bool) -> (usize, u64) {
    for (i, child) in children.iter().enumerate() {
        if index < child.count || end && index == child.count {
            return (i, index);
        }
        index -= child.count;
    }
    (children.len().saturating_sub(1), index)
}

/// The node to be changed, which is made one that is here only.
fn touch<'a>(
    child: &'a mut Child,
    nodes: &dyn Nodes,
    freed: &mut Vec<Place>,
) -> Result<&'a mut Node> {
    if let Link::Stored(place) = child.link {
        let node = fetch(place, nodes)?;
        freed.push(place);
        child.link = Link::Here(Box::new(node));
    }
    match &mut child.link {
        Link::Here(node) => Ok(node),
        Link::Stored(_) => Err(Error::Corrupt("a node of a collection is away")),
    }
}

impl Tree {
    /// Entries.
    pub fn count(&self) -> u64 {
        self.root.count
    }

    /// The root, for those that store it.
    pub fn root(&self) -> &Child {
        &self.root
    }

    /// The value of a key.
    pub fn get(&self, nodes: &dyn Nodes, key: &[u8]) -> Result<Option<Vec<u8>>> {
        fn get(link: &Link, nodes: &dyn Nodes, key: &[u8]) -> Result<Option<Vec<u8>>> {
            peek(link, nodes, |node| match node {
                Node::Leaf(leaf) => {
                    let found = leaf.find(key).1.filter(|entry| entry.key == key);
                    Ok(found.map(|entry| entry.value.to_vec()))
                }
                Node::Inner { children, .. } => {
                    get(&children[by_key(children, key)].link, nodes, key)
                }
            })
        }
        get(&self.root.link, nodes, key)
    }

    /// How many keys are lower, and whether this one is there.
    pub fn rank(&self, nodes: &dyn Nodes, key: &[u8]) -> Result<(u64, bool)> {
        fn rank(link: &Link, nodes: &dyn Nodes, key: &[u8], before: u64) -> Result<(u64, bool)> {
            peek(link, nodes, |node| match node {
                Node::Leaf(leaf) => {
                    let (index, entry) = leaf.find(key);
                    Ok((before + index as u64, entry.is_some_and(|e| e.key == key)))
                }
                Node::Inner { children, .. } => {
                    let i = by_key(children, key);
                    let skipped: u64 = children[..i].iter().map(|child| child.count).sum();
                    rank(&children[i].link, nodes, key, before + skipped)
                }
            })
        }
        rank(&self.root.link, nodes, key, 0)
    }

    /// Key and value at a position.
    pub fn at(&self, nodes: &dyn Nodes, index: u64) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let mut found = None;
        self.walk(nodes, index, &mut |key, value| {
            found = Some((key.to_vec(), value.to_vec()));
            false
        })?;
        Ok(found)
    }

    /// Shows `f` keys and values from a position on, until it says `false`.
    pub fn walk(
        &self,
        nodes: &dyn Nodes,
        from: u64,
        f: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        fn walk(
            child: &Child,
            nodes: &dyn Nodes,
            skip: u64,
            f: &mut dyn FnMut(&[u8], &[u8]) -> bool,
        ) -> Result<bool> {
            peek(&child.link, nodes, |node| match node {
                Node::Leaf(leaf) => {
                    let mut entries = leaf.entries().skip(skip as usize);
                    Ok(entries.all(|entry| f(entry.key, entry.value)))
                }
                Node::Inner { children, .. } => {
                    let (first, mut skip) = by_index(children, skip, false);
                    for child in &children[first..] {
                        if !walk(child, nodes, skip, f)? {
                            return Ok(false);
                        }
                        skip = 0;
                    }
                    Ok(true)
                }
            })
        }
        if from < self.count() {
            walk(&self.root, nodes, from, f)?;
        }
        Ok(())
    }

    /// The same from a position downwards.
    pub fn walk_back(
        &self,
        nodes: &dyn Nodes,
        from: u64,
        f: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        fn walk(
            child: &Child,
            nodes: &dyn Nodes,
            from: u64,
            f: &mut dyn FnMut(&[u8], &[u8]) -> bool,
        ) -> Result<bool> {
            peek(&child.link, nodes, |node| match node {
                Node::Leaf(leaf) => {
                    let entries: Vec<_> = leaf.entries().take(from as usize + 1).collect();
                    Ok(entries.iter().rev().all(|entry| f(entry.key, entry.value)))
                }
                Node::Inner { children, .. } => {
                    let (last, mut from) = by_index(children, from, false);
                    for child in children[..=last].iter().rev() {
                        if child.count != 0 && !walk(child, nodes, from.min(child.count - 1), f)? {
                            return Ok(false);
                        }
                        from = u64::MAX;
                    }
                    Ok(true)
                }
            })
        }
        if self.count() != 0 {
            walk(&self.root, nodes, from.min(self.count() - 1), f)?;
        }
        Ok(())
    }

    /// Sets the value of a key; says the old one.
    pub fn put(&mut self, nodes: &dyn Nodes, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>> {
        let (index, there) = self.rank(nodes, key)?;
        if !there {
            self.change(nodes, Spot::ByKey, key, value)?;
            return Ok(None);
        }
        let old = self.at(nodes, index)?.map(|(_, value)| value);
        if old.as_deref() != Some(value) {
            self.change(nodes, Spot::Over(index), key, value)?;
        }
        Ok(old)
    }

    /// Puts an entry before the one at `index`. For trees whose entries are found by position only.
    pub fn insert(&mut self, nodes: &dyn Nodes, index: u64, value: &[u8]) -> Result<()> {
        self.change(nodes, Spot::At(index.min(self.count())), &[], value)
    }

    /// Sets the value at a position, if there is one.
    pub fn set(&mut self, nodes: &dyn Nodes, index: u64, value: &[u8]) -> Result<bool> {
        let Some((key, _)) = self.at(nodes, index)? else {
            return Ok(false);
        };
        self.change(nodes, Spot::Over(index), &key, value)?;
        Ok(true)
    }

    /// Takes a key out; says its value.
    pub fn remove(&mut self, nodes: &dyn Nodes, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let (index, there) = self.rank(nodes, key)?;
        if !there {
            return Ok(None);
        }
        let old = self.at(nodes, index)?.map(|(_, value)| value);
        self.cut(nodes, index..index + 1)?;
        Ok(old)
    }

    fn change(&mut self, nodes: &dyn Nodes, spot: Spot, key: &[u8], value: &[u8]) -> Result<()> {
        if key.len().saturating_add(value.len()) > crate::MAX_VALUE {
            return Err(Error::ValueTooLong);
        }
        self.changed = true;
        let mut new = put(&mut self.root, nodes, &mut self.freed, spot, key, value)?;
        while !new.is_empty() {
            let level = new[0].level();
            if level == LEVELS_MAX {
                return Err(Error::Corrupt("a collection has too many levels"));
            }
            let empty = Child::of(Node::Leaf(Leaf::default()), Vec::new());
            let mut children = vec![std::mem::replace(&mut self.root, empty)];
            children.append(&mut new);
            new = split_inner(&mut children, true, level + 1);
            self.root = Child::of(
                Node::Inner {
                    level: level + 1,
                    children,
                },
                Vec::new(),
            );
        }
        Ok(())
    }

    /// Takes out what is at these positions.
    pub fn cut(&mut self, nodes: &dyn Nodes, range: Range<u64>) -> Result<()> {
        let range = range.start..range.end.min(self.count());
        if range.is_empty() {
            return Ok(());
        }
        self.changed = true;
        if range == (0..self.count()) {
            release(&self.root, nodes, &mut self.freed)?;
            self.root = Child::of(Node::Leaf(Leaf::default()), Vec::new());
            return Ok(());
        }
        cut(&mut self.root, nodes, &mut self.freed, range)?;
        while let Link::Here(node) = &mut self.root.link
            && let Node::Inner { children, .. } = node.as_mut()
            && children.len() == 1
        {
            self.root = children.swap_remove(0);
        }
        Ok(())
    }

    /// All nodes that are stored.
    pub fn places(&self, nodes: &dyn Nodes) -> Result<Vec<Place>> {
        let mut places = Vec::new();
        release(&self.root, nodes, &mut places)?;
        Ok(places)
    }

    /// Stores anew the nodes at addresses that `there` names, and those that lead to them, one by
    /// one: whether there were any. `fresh` gets what was stored, also when it fails.
    pub fn renew(
        &mut self,
        nodes: &dyn Nodes,
        there: &impl Fn(u64) -> bool,
        fresh: &mut Vec<Place>,
    ) -> Result<bool> {
        renew(&mut self.root, nodes, there, (fresh, &mut self.freed))
    }

    /// The same entries in nodes that have yet to be stored.
    pub fn duplicate(&self, nodes: &dyn Nodes) -> Result<Tree> {
        fn duplicate(child: &Child, nodes: &dyn Nodes) -> Result<Child> {
            let mut copy = child.clone();
            if let Node::Inner { children, .. } = touch(&mut copy, nodes, &mut Vec::new())? {
                for child in children {
                    *child = duplicate(child, nodes)?;
                }
            }
            Ok(copy)
        }
        duplicate(&self.root, nodes).map(Tree::from)
    }

    /// Stores what is not yet, but for a root that is a leaf of `inline` bytes at most. `fresh`
    /// gets what was stored, also when it fails.
    pub fn store(
        &mut self,
        nodes: &dyn Nodes,
        inline: usize,
        fresh: &mut Vec<Place>,
    ) -> Result<()> {
        if let Link::Here(node) = &self.root.link
            && let Node::Leaf(leaf) = node.as_ref()
            && leaf.bytes.len() <= inline
        {
            return Ok(());
        }
        store(&mut self.root, nodes, fresh)
    }
}

impl Child {
    pub fn level(&self) -> u8 {
        match &self.link {
            Link::Stored(place) => place.level,
            Link::Here(node) => node.level(),
        }
    }
}

fn renew(
    child: &mut Child,
    nodes: &dyn Nodes,
    there: &impl Fn(u64) -> bool,
    (fresh, freed): (&mut Vec<Place>, &mut Vec<Place>),
) -> Result<bool> {
    let Link::Stored(place) = child.link else {
        return Ok(false);
    };
    let mut goes = there(place.addr);
    if place.level == 0 && !goes {
        return Ok(false);
    }
    let mut node = fetch(place, nodes)?;
    if let Node::Inner { children, .. } = &mut node {
        for child in children {
            goes |= renew(child, nodes, there, (fresh, freed))?;
        }
    }
    if goes {
        let bytes = node.encode();
        let new = Place {
            addr: nodes.store(&bytes)?,
            len: bytes.len(),
            level: place.level,
        };
        fresh.push(new);
        freed.push(place);
        child.link = Link::Stored(new);
    }
    Ok(goes)
}

/// Puts an entry below a child. What it had too much is returned, to stand behind it.
fn put(
    child: &mut Child,
    nodes: &dyn Nodes,
    freed: &mut Vec<Place>,
    spot: Spot,
    key: &[u8],
    value: &[u8],
) -> Result<Vec<Child>> {
    let new = match touch(child, nodes, freed)? {
        Node::Leaf(leaf) => put_in_leaf(leaf, spot, key, value),
        Node::Inner { level, children } => {
            let (i, below) = match spot {
                Spot::ByKey => (by_key(children, key), Spot::ByKey),
                Spot::At(index) => {
                    let (i, index) = by_index(children, index, true);
                    (i, Spot::At(index))
                }
                Spot::Over(index) => {
                    let (i, index) = by_index(children, index, false);
                    (i, Spot::Over(index))
                }
            };
            let new = put(&mut children[i], nodes, freed, below, key, value)?;
            let last = i + 1 == children.len();
            children.splice(i + 1..i + 1, new);
            split_inner(children, last, *level)
        }
    };
    let moved: u64 = new.iter().map(|child| child.count).sum();
    let added = u64::from(!matches!(spot, Spot::Over(_)));
    child.count = (child.count + added).saturating_sub(moved);
    Ok(new)
}

fn put_in_leaf(leaf: &mut Leaf, spot: Spot, key: &[u8], value: &[u8]) -> Vec<Child> {
    let entry = match spot {
        Spot::ByKey => leaf.find(key).1,
        Spot::At(index) | Spot::Over(index) => leaf.nth(index as usize),
    };
    let (at, end) = entry.map_or((leaf.bytes.len(), leaf.bytes.len()), |e| (e.at, e.end));
    let appended = at == leaf.bytes.len();
    match spot {
        Spot::Over(_) => leaf.splice(at, end, key, value),
        Spot::ByKey | Spot::At(_) => {
            leaf.splice(at, at, key, value);
            leaf.count += 1;
        }
    }
    if leaf.bytes.len() <= LEAF_MAX || leaf.count == 1 {
        return Vec::new();
    }
    let rest = leaf.split(appended);
    let mut low = last_key(leaf);
    let mut new = Vec::with_capacity(rest.len());
    for piece in rest {
        let high = piece.nth(0).map_or(&[][..], |entry| entry.key);
        let between = separator(&low, high);
        low = last_key(&piece);
        new.push(Child::of(Node::Leaf(piece), between));
    }
    new
}

fn last_key(leaf: &Leaf) -> Vec<u8> {
    leaf.entries().last().map_or(Vec::new(), |e| e.key.to_vec())
}

/// Leaves as many children as a node may have; the others in nodes of their own.
fn split_inner(children: &mut Vec<Child>, appended: bool, level: u8) -> Vec<Child> {
    if children.len() <= INNER_MAX {
        return Vec::new();
    }
    let keep = if appended {
        INNER_MAX
    } else {
        children.len() / 2
    };
    let mut rest = children.split_off(keep);
    let between = std::mem::take(&mut rest[0].separator);
    let inner = Node::Inner {
        level,
        children: rest,
    };
    vec![Child::of(inner, between)]
}

/// Takes out a part of what is below a child, not all of it.
fn cut(
    child: &mut Child,
    nodes: &dyn Nodes,
    freed: &mut Vec<Place>,
    range: Range<u64>,
) -> Result<()> {
    match touch(child, nodes, freed)? {
        Node::Leaf(leaf) => leaf.remove(range.start as usize, range.end as usize),
        Node::Inner { level, children } => {
            let (mut begin, mut first) = (0, None);
            let mut kept = Vec::with_capacity(children.len());
            for mut child in children.drain(..) {
                let end = begin + child.count;
                let part = range.start.max(begin)..range.end.min(end);
                if part == (begin..end) && !part.is_empty() {
                    first.get_or_insert(kept.len());
                    release(&child, nodes, freed)?;
                } else {
                    if !part.is_empty() {
                        first.get_or_insert(kept.len());
                        cut(
                            &mut child,
                            nodes,
                            freed,
                            part.start - begin..part.end - begin,
                        )?;
                    }
                    kept.push(child);
                }
                begin = end;
            }
            *children = kept;
            let first = first.unwrap_or_default();
            for i in [first + 1, first, first.saturating_sub(1)] {
                join(children, i, nodes, freed, *level - 1)?;
            }
        }
    }
    child.count -= range.end - range.start;
    Ok(())
}

/// Joins a child with the next if one of them has little and both fit one node.
fn join(
    children: &mut Vec<Child>,
    i: usize,
    nodes: &dyn Nodes,
    freed: &mut Vec<Place>,
    level: u8,
) -> Result<()> {
    let Some([one, two]) = children.get_mut(i..i + 2) else {
        return Ok(());
    };
    if !(one.is_meagre() || two.is_meagre()) || !one.fits_with(two, level) {
        return Ok(());
    }
    let separator = two.separator.clone();
    let more = two.count;
    let taken = std::mem::replace(touch(two, nodes, freed)?, Node::Leaf(Leaf::default()));
    match (touch(one, nodes, freed)?, taken) {
        (Node::Leaf(leaf), Node::Leaf(next)) => {
            leaf.bytes.extend_from_slice(&next.bytes);
            leaf.count += next.count;
        }
        (
            Node::Inner { children, .. },
            Node::Inner {
                children: mut next, ..
            },
        ) => {
            if let Some(first) = next.first_mut() {
                first.separator = separator;
            }
            children.append(&mut next);
        }
        _ => {
            return Err(Error::Corrupt(
                "neighbours in a collection have other levels",
            ));
        }
    }
    one.count += more;
    children.remove(i + 1);
    Ok(())
}

/// Notes all stored nodes below and including a child.
fn release(child: &Child, nodes: &dyn Nodes, places: &mut Vec<Place>) -> Result<()> {
    if let Link::Stored(place) = child.link {
        places.push(place);
        if place.level == 0 {
            return Ok(());
        }
    }
    peek(&child.link, nodes, |node| match node {
        Node::Leaf(_) => Ok(()),
        Node::Inner { children, .. } => children
            .iter()
            .try_for_each(|child| release(child, nodes, places)),
    })
}

fn store(child: &mut Child, nodes: &dyn Nodes, fresh: &mut Vec<Place>) -> Result<()> {
    let Link::Here(node) = &mut child.link else {
        return Ok(());
    };
    if let Node::Inner { children, .. } = node.as_mut() {
        for child in children {
            store(child, nodes, fresh)?;
        }
    }
    let (bytes, level) = (node.encode(), node.level());
    let place = Place {
        addr: nodes.store(&bytes)?,
        len: bytes.len(),
        level,
    };
    fresh.push(place);
    child.link = Link::Stored(place);
    Ok(())
}
