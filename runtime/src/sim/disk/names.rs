//! The names on a disk: what programs see, what is durable, and the operations between, in order.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::inode::Inode;
use crate::sim::random::Stream;

pub(crate) type SharedInode = Rc<RefCell<Inode>>;

/// What a name stands for.
#[derive(Clone)]
pub(crate) enum Entry {
    Dir,
    File(SharedInode),
}

/// One change of names.
#[derive(Clone)]
pub(crate) enum NameOp {
    Add(PathBuf, Entry),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf),
}

impl NameOp {
    /// Whether a sync of directory `dir` makes it durable.
    fn is_in(&self, dir: &Path) -> bool {
        match self {
            NameOp::Add(path, _) | NameOp::Remove(path) => path.parent() == Some(dir),
            NameOp::Rename(from, to) => from.parent() == Some(dir) || to.parent() == Some(dir),
        }
    }
}

type Tree = BTreeMap<PathBuf, Entry>;

/// Both trees; the root directory is always there.
#[derive(Default)]
pub(crate) struct Names {
    seen: Tree,
    durable: Tree,
    pending: Vec<NameOp>,
}

impl Names {
    pub(crate) fn entry(&self, path: &Path) -> Option<&Entry> {
        if path.parent().is_none() { Some(&Entry::Dir) } else { self.seen.get(path) }
    }

    pub(crate) fn file(&self, path: &Path) -> Option<&SharedInode> {
        match self.seen.get(path) {
            Some(Entry::File(inode)) => Some(inode),
            _ => None,
        }
    }

    pub(crate) fn is_dir(&self, path: &Path) -> bool {
        matches!(self.entry(path), Some(Entry::Dir))
    }

    /// All files, by path.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&Path, &SharedInode)> {
        self.seen.iter().filter_map(|(path, entry)| match entry {
            Entry::File(inode) => Some((path.as_path(), inode)),
            Entry::Dir => None,
        })
    }

    /// The entries right below `dir`.
    pub(crate) fn children<'a>(&'a self, dir: &'a Path) -> impl Iterator<Item = (&'a Path, &'a Entry)> {
        self.below(dir).filter(move |(path, _)| path.parent() == Some(dir))
    }

    /// The entries anywhere below `dir`, parents first.
    pub(crate) fn below<'a>(&'a self, dir: &'a Path) -> impl Iterator<Item = (&'a Path, &'a Entry)> {
        let from = self.seen.range::<Path, _>((Bound::Included(dir), Bound::Unbounded));
        from.map(|(path, entry)| (path.as_path(), entry))
            .take_while(move |(path, _)| path.starts_with(dir))
            .filter(move |(path, _)| *path != dir)
    }

    /// `NotFound` unless the parent of `path` is a directory.
    pub(crate) fn check_parent(&self, path: &Path) -> io::Result<()> {
        match path.parent() {
            Some(parent) if self.is_dir(parent) => Ok(()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(crate) fn apply(&mut self, op: NameOp) {
        apply(&mut self.seen, &op);
        self.pending.push(op);
    }

    /// Makes the operations in `dir` durable, in their order.
    pub(crate) fn sync_dir(&mut self, dir: &Path) {
        for op in self.pending.extract_if(.., |op| op.is_in(dir)) {
            apply(&mut self.durable, &op);
        }
    }

    /// Keeps a prefix of the pending operations, and only what its durable parents lead to.
    pub(crate) fn lose_power(&mut self, random: &Stream) {
        let kept = match random.below(3) {
            0 => 0,
            1 => self.pending.len(),
            _ => random.index(self.pending.len() + 1),
        };
        for op in self.pending.drain(..).take(kept) {
            apply(&mut self.durable, &op);
        }
        let mut reachable = Tree::new();
        for (path, entry) in std::mem::take(&mut self.durable) {
            let parent = path.parent();
            let is_root = parent.is_some_and(|parent| parent.parent().is_none());
            if is_root || parent.is_some_and(|parent| matches!(reachable.get(parent), Some(Entry::Dir))) {
                reachable.insert(path, entry);
            }
        }
        self.durable = reachable.clone();
        self.seen = reachable;
    }
}

fn apply(tree: &mut Tree, op: &NameOp) {
    match op {
        NameOp::Add(path, entry) => drop(tree.insert(path.clone(), entry.clone())),
        NameOp::Remove(path) => drop(tree.remove(path)),
        NameOp::Rename(from, to) => {
            let moved: Vec<PathBuf> = tree
                .range::<Path, _>((Bound::Included(from.as_path()), Bound::Unbounded))
                .map(|(path, _)| path)
                .take_while(|path| path.starts_with(from))
                .cloned()
                .collect();
            for path in moved {
                let Some(entry) = tree.remove(&path) else { continue };
                let Ok(rest) = path.strip_prefix(from) else { continue };
                let target = if rest.as_os_str().is_empty() { to.clone() } else { to.join(rest) };
                tree.insert(target, entry);
            }
        }
    }
}
