//! The config as a tree that remembers where everything was written.

use std::rc::Rc;

/// One value of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) spot: Spot,
    pub(crate) value: Value,
}

/// What a node holds. Scalars stay text: only the section that reads one knows what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// `quoted` tells the text `"3"` from the number `3`. An alias shares the text and does not copy it.
    Scalar {
        text: Rc<str>,
        quoted: bool,
    },
    List(Vec<Node>),
    /// In the order of the text, which decides between two globs that fit the same tool.
    Map(Vec<(Key, Node)>),
}

/// The key of one map entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) spot: Spot,
    pub(crate) text: Rc<str>,
}

/// A place in the text, both numbers counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

impl Spot {
    /// Where a text begins.
    pub(crate) const START: Self = Self { line: 1, column: 1 };
}

impl Node {
    /// Whether nothing was written at all, as after `key:`.
    pub(crate) fn is_blank(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, quoted: false } if text.is_empty())
    }

    /// How much memory and work the node stands for: nodes and bytes of text, everything below it included.
    pub(crate) fn weight(&self) -> usize {
        match &self.value {
            Value::Scalar { text, .. } => 1 + text.len(),
            Value::List(items) => 1 + items.iter().map(Self::weight).sum::<usize>(),
            Value::Map(entries) => {
                1 + entries.iter().map(|(key, node)| 1 + key.text.len() + node.weight()).sum::<usize>()
            }
        }
    }

    /// Levels of lists and maps, this node included; 0 for a scalar.
    pub(crate) fn depth(&self) -> usize {
        match &self.value {
            Value::Scalar { .. } => 0,
            Value::List(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Value::Map(entries) => 1 + entries.iter().map(|(_, node)| node.depth()).max().unwrap_or(0),
        }
    }
}
