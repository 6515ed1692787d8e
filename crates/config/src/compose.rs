//! Builds the tree from the parser's events, without recursion and within bounds.

use std::collections::HashMap;
use std::rc::Rc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag};

use crate::guard::MAX_BYTES;
use crate::path::{Path, quote};
use crate::problem::Problem;
use crate::report::Report;
use crate::syntax;
use crate::tree::{Key, Node, Spot, Value};

/// Lists and maps inside each other. The tree is walked by recursion later, so this also bounds the stack.
pub(crate) const MAX_DEPTH: usize = 64;

/// The tree of a text; `None` when it holds nothing but comments. Mistakes that leave a tree behind (a key that
/// stands twice) go to the report, so that reading goes on and finds the others too.
pub(crate) fn compose(text: &str, report: &Report) -> Result<Option<Node>, Problem> {
    let mut composer =
        Composer { report, open: Vec::new(), anchors: HashMap::new(), spare: MAX_BYTES, root: None };
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => composer.take(event, spot(span.start))?,
            Err(error) => return Err(composer.explain(&error, text)),
        }
    }
    Ok(composer.root.filter(|root| !root.is_blank()))
}

struct Composer<'r> {
    report: &'r Report,
    /// Lists and maps that have begun and not ended, outermost first.
    open: Vec<Frame>,
    anchors: HashMap<usize, Node>,
    /// What anchors and aliases may still copy, in the measure of [`Node::weight`]. A few lines of aliases to
    /// aliases can stand for billions of nodes, so the copies are paid for before they are made.
    spare: usize,
    root: Option<Node>,
}

struct Frame {
    spot: Spot,
    anchor: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map { entries: Vec<(Key, Node)>, awaiting: Awaiting, lines: HashMap<Rc<str>, u64> },
}

/// What the next node of a map is.
enum Awaiting {
    Key,
    ValueOf(Key),
    /// The value of a key that was refused; it is dropped with its key.
    Nothing,
}

impl Composer<'_> {
    fn take(&mut self, event: Event<'_>, spot: Spot) -> Result<(), Problem> {
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                let problem = Problem::at(spot, "a second document begins here, a config is only one");
                return Err(problem.hint("remove the `---`, or put the rest into a file of its own"));
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_tag(tag.as_deref(), spot);
                let value = Value::Scalar { text: Rc::from(&*text), quoted: style != ScalarStyle::Plain };
                return self.complete(Node { spot, value }, anchor);
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_tag(tag.as_deref(), spot);
                return self.begin(Frame { spot, anchor, content: Content::List(Vec::new()) });
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_tag(tag.as_deref(), spot);
                let (entries, lines) = (Vec::new(), HashMap::new());
                let content = Content::Map { entries, awaiting: Awaiting::Key, lines };
                return self.begin(Frame { spot, anchor, content });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(Frame { spot, anchor, content }) = self.open.pop() {
                    let value = match content {
                        Content::List(items) => Value::List(items),
                        Content::Map { entries, .. } => Value::Map(entries),
                    };
                    return self.complete(Node { spot, value }, anchor);
                }
            }
            Event::Alias(anchor) => return self.expand(anchor, spot),
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, frame: Frame) -> Result<(), Problem> {
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(frame.spot));
        }
        self.open.push(frame);
        Ok(())
    }

    /// Puts a finished node where it belongs.
    fn complete(&mut self, mut node: Node, anchor: usize) -> Result<(), Problem> {
        if anchor != 0 {
            self.pay(&node)?;
            self.anchors.insert(anchor, node.clone());
        }
        let Some(frame) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut frame.content {
            Content::List(items) => items.push(node),
            Content::Map { entries, awaiting, lines } => match std::mem::replace(awaiting, Awaiting::Key) {
                Awaiting::ValueOf(key) => {
                    if node.is_blank() {
                        // The parser puts a value that is not there on the colon; the key is easier to find.
                        node.spot = key.spot;
                    }
                    entries.push((key, node));
                }
                Awaiting::Nothing => {}
                Awaiting::Key => {
                    let (next, problem) = read_key(node, lines);
                    *awaiting = next;
                    if let Some(problem) = problem.filter(|_| !self.report.is_full()) {
                        self.report.problem(problem.path(self.here()));
                    }
                }
            },
        }
        Ok(())
    }

    /// Puts a copy of the anchored node in place of its alias. The copy stands where the alias is written, what
    /// is inside it keeps its own place: that is the text to correct.
    fn expand(&mut self, anchor: usize, spot: Spot) -> Result<(), Problem> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            let problem = Problem::at(spot, "this alias stands inside what it refers to").path(self.here());
            return Err(problem.hint("write the value out"));
        };
        if self.open.len() + node.depth() > MAX_DEPTH {
            return Err(too_deep(spot));
        }
        self.pay(&node)?;
        self.complete(Node { spot, ..node }, 0)
    }

    fn pay(&mut self, node: &Node) -> Result<(), Problem> {
        let Some(left) = self.spare.checked_sub(node.weight()) else {
            let problem = Problem::at(node.spot, "anchors and aliases stand for more than 1 MiB of settings");
            return Err(problem.path(self.here()).hint("write the values out, or use fewer aliases"));
        };
        self.spare = left;
        Ok(())
    }

    fn refuse_tag(&self, tag: Option<&Tag>, spot: Spot) {
        let Some(tag) = tag.filter(|_| !self.report.is_full()) else { return };
        let written = if tag.is_yaml_core_schema() { format!("!!{}", tag.suffix) } else { tag.to_string() };
        let problem = Problem::at(spot, format!("the tag {} is not supported", quote(&written)));
        let hint = "remove it; the type of a value follows from its key";
        self.report.problem(problem.path(self.here()).hint(hint));
    }

    fn explain(&self, error: &ScanError, text: &str) -> Problem {
        let innermost = self.open.last().map(|frame| frame.spot);
        let problem = syntax::problem(error, text, innermost);
        let blames_innermost =
            innermost.is_some_and(|spot| (spot.line, spot.column) == (problem.line, problem.column));
        let inside = self.open.len() - usize::from(blames_innermost);
        problem.path(path_text(&self.open[..inside], &Path::Root))
    }

    /// Where the next node will stand.
    fn here(&self) -> String {
        path_text(&self.open, &Path::Root)
    }
}

fn path_text(open: &[Frame], path: &Path<'_>) -> String {
    let Some((frame, inner)) = open.split_first() else {
        return path.to_string();
    };
    match &frame.content {
        Content::List(items) => path_text(inner, &Path::Index(path, items.len())),
        Content::Map { awaiting: Awaiting::ValueOf(key), .. } => {
            path_text(inner, &Path::Key(path, &key.text))
        }
        Content::Map { .. } => path_text(inner, path),
    }
}

/// Takes a node as the key of the next entry. `lines` knows where each key of the map stood first.
fn read_key(node: Node, lines: &mut HashMap<Rc<str>, u64>) -> (Awaiting, Option<Problem>) {
    let spot = node.spot;
    let Value::Scalar { text, .. } = node.value else {
        let problem = Problem::at(spot, "a list or a map cannot be a key").hint("write `key: value`");
        return (Awaiting::Nothing, Some(problem));
    };
    let problem = lines.get(&text).map(|first| {
        let message = format!("the key {} stands twice, first on line {first}", quote(&text));
        Problem::at(spot, message).hint("remove one of them, or merge the two")
    });
    lines.entry(text.clone()).or_insert(spot.line);
    (Awaiting::ValueOf(Key { spot, text }), problem)
}

fn too_deep(spot: Spot) -> Problem {
    Problem::at(spot, format!("lists and maps are nested more than {MAX_DEPTH} levels deep"))
        .hint("no setting is nested so deep; is a bracket missing?")
}

pub(crate) fn spot(marker: Marker) -> Spot {
    Spot { line: marker.line() as u64, column: marker.col() as u64 + 1 }
}

#[cfg(test)]
mod tests;
