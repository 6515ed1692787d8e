//! Fingerprints: what makes two calls, or two requests, the same.

use std::cell::RefCell;
use std::fmt;

use sha2::{Digest, Sha256};

use crate::canonical::{Keep, Writer};
use crate::saved::Saved;

/// SHA-256 over length-framed fields.
///
/// ```
/// use loopbreaker::Fingerprint;
/// let a = Fingerprint::of_call("search", Some(r#"{"q": "rust", "page": 1}"#));
/// let b = Fingerprint::of_call("search", Some(r#"{"page": 1.0, "q": "rust"}"#));
/// assert_eq!(a, b);
/// assert_eq!(a.to_string().len(), 64);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fingerprint([u8; 32]);

impl Saved for Fingerprint {
    fn save(&self, out: &mut Vec<u8>) {
        self.0.save(out);
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        Saved::load(from).map(Self)
    }
}

impl Fingerprint {
    /// The fingerprint of a tool call: the tool's name and its canonical arguments.
    ///
    /// `args` is JSON text, or a JSON string that holds an object; `null`, `{}`, `""` and absent arguments are equal.
    /// Text that is not JSON is taken as it is.
    pub fn of_call(tool: &str, args: Option<&str>) -> Self {
        with_call(tool, args, Keep::All, |fingerprint, _| fingerprint)
    }

    /// The fingerprint of a tool call, and whether the call says something about itself.
    pub(crate) fn of_call_and_remarks(tool: &str, args: Option<&str>) -> (Self, bool) {
        with_scratch(|scratch| {
            let fingerprint = call_in(scratch, tool, args, Keep::All, |fingerprint, _| fingerprint);
            (fingerprint, args.is_some() && scratch.writer.has_remarks())
        })
    }

    /// The fingerprint of an HTTP request.
    ///
    /// A JSON body is canonicalised first, so key order and white space do not matter; any other body counts as
    /// bytes. Query pairs and descriptors are sorted, repeated names are kept.
    ///
    /// ```
    /// use loopbreaker::{Fingerprint, Request};
    /// let request = Request {
    ///     method: "POST",
    ///     path: "/v1/chat/completions",
    ///     query: &[("b", "2"), ("a", "1")],
    ///     body: br#"{"model":"m","messages":[]}"#,
    ///     descriptors: &[("tenant", "acme")],
    /// };
    /// let reordered = Request { query: &[("a", "1"), ("b", "2")], ..request };
    /// assert_eq!(Fingerprint::of_request(&request), Fingerprint::of_request(&reordered));
    /// ```
    pub fn of_request(request: &Request<'_>) -> Self {
        let mut frames = Frames::new(b"request");
        frames.add(request.method.as_bytes());
        frames.add(request.path.as_bytes());
        frames.add_sorted(request.query);
        frames.add_document(request.body);
        frames.add_sorted(request.descriptors);
        frames.finish()
    }

    /// The fingerprint of a document: JSON in canonical form, so key order and white space do not matter; anything
    /// else byte by byte.
    ///
    /// ```
    /// use loopbreaker::Fingerprint;
    /// let one = Fingerprint::of_document(br#"{"a": 1, "b": [2]}"#);
    /// assert_eq!(one, Fingerprint::of_document(br#"{"b":[2.0],"a":1}"#));
    /// assert_ne!(one, Fingerprint::of_document(b"a=1&b=2"));
    /// ```
    pub fn of_document(document: &[u8]) -> Self {
        let mut frames = Frames::new(b"document");
        frames.add_document(document);
        frames.finish()
    }

    /// The fingerprint of one run of bytes, apart from every other `domain`.
    pub(crate) fn of_bytes(domain: &[u8], bytes: &[u8]) -> Self {
        let mut frames = Frames::new(domain);
        frames.add(bytes);
        frames.finish()
    }

    /// The fingerprint of a set: order and repeats do not matter.
    pub(crate) fn of_set(domain: &[u8], members: &mut Vec<Self>) -> Self {
        members.sort_unstable();
        members.dedup();
        let mut frames = Frames::new(domain);
        for member in members {
            frames.add(&member.0);
        }
        frames.finish()
    }

    /// The fingerprint's 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The fingerprint of what somebody else tells apart by 128 bits of their own.
    ///
    /// ```
    /// use loopbreaker::Fingerprint;
    /// assert_eq!(Fingerprint::known_as(7).short(), 7);
    /// ```
    pub fn known_as(short: u128) -> Self {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&short.to_le_bytes());
        Self(bytes)
    }

    /// The first 128 bits: enough to tell apart whatever one process remembers.
    pub fn short(&self) -> u128 {
        u128::from_le_bytes(std::array::from_fn(|index| self.0[index]))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// An HTTP request as far as its fingerprint goes.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The method, as it came.
    pub method: &'a str,
    /// The path without the query.
    pub path: &'a str,
    /// Names and values of the query, in any order.
    pub query: &'a [(&'a str, &'a str)],
    /// The body, decompressed.
    pub body: &'a [u8],
    /// Whatever else keeps two callers apart (tenant, session, headers), in any order.
    pub descriptors: &'a [(&'a str, &'a str)],
}

/// Hands the canonical form of a document to `then`, for whoever hashes it in another way: JSON with sorted keys and
/// without white space. It gets `None` when the document is no JSON.
///
/// ```
/// use loopbreaker::with_canonical;
/// let sorted = |document: &[u8]| with_canonical(document, |canonical| canonical.map(<[u8]>::to_vec));
/// assert_eq!(sorted(br#"{"b": 1.0, "a": []}"#).as_deref(), Some(&br#"{"a":[],"b":1}"#[..]));
/// assert_eq!(sorted(b"a=1&b=2"), None);
/// ```
pub fn with_canonical<T>(document: &[u8], then: impl FnOnce(Option<&[u8]>) -> T) -> T {
    match std::str::from_utf8(document) {
        Ok(text) => with_canonical_text(text, then),
        Err(_) => then(None),
    }
}

/// [`with_canonical`] for what is known to be text.
///
/// ```
/// use loopbreaker::with_canonical_text;
/// assert!(with_canonical_text("[ 1.0 ]", |canonical| canonical == Some(b"[1]")));
/// ```
pub fn with_canonical_text<T>(text: &str, then: impl FnOnce(Option<&[u8]>) -> T) -> T {
    with_scratch(|Scratch { writer, .. }| {
        let is_json = writer.write(text, Keep::All).is_ok();
        then(is_json.then(|| writer.written()))
    })
}

/// Computes a call's fingerprint and hands it to `then` with the canonical arguments, which are gone afterwards.
pub(crate) fn with_call<T>(
    tool: &str,
    args: Option<&str>,
    keep: Keep<'_>,
    then: impl FnOnce(Fingerprint, &[u8]) -> T,
) -> T {
    with_scratch(|scratch| call_in(scratch, tool, args, keep, then))
}

fn call_in<T>(
    scratch: &mut Scratch,
    tool: &str,
    args: Option<&str>,
    keep: Keep<'_>,
    then: impl FnOnce(Fingerprint, &[u8]) -> T,
) -> T {
    let (tag, canonical) = canonical_args(scratch, args, keep);
    let mut frames = Frames::new(b"call");
    frames.add(tool.as_bytes());
    frames.add_tagged(tag, canonical);
    then(frames.finish(), canonical)
}

/// Canonical arguments, with a tag that keeps absent, JSON and plain-text arguments apart.
fn canonical_args<'a>(scratch: &'a mut Scratch, args: Option<&'a str>, keep: Keep<'_>) -> (u8, &'a [u8]) {
    let Scratch { writer, inner } = scratch;
    let Some(text) = args else { return (b'-', b"") };
    if writer.write(text, keep).is_err() {
        return if text.trim_ascii().is_empty() { (b'-', b"") } else { (b't', text.as_bytes()) };
    }
    // A string that holds an object, as OpenAI sends arguments, is that object.
    if writer.written().first() == Some(&b'"')
        && writer.written().contains(&b'{')
        && decode_string(writer.written(), inner).is_some()
        && inner.trim_start().starts_with('{')
        && writer.write(inner, keep).is_err()
        && writer.write(text, keep).is_err()
    {
        return (b't', text.as_bytes());
    }
    match writer.written() {
        b"null" | b"{}" | b"\"\"" | b"\"null\"" => (b'-', b""),
        canonical => (b'j', canonical),
    }
}

/// Writes the text that a canonical JSON string stands for; `None` when it has a lone surrogate.
fn decode_string(canonical: &[u8], text: &mut String) -> Option<()> {
    text.clear();
    let quoted = std::str::from_utf8(canonical).ok()?;
    let mut rest = quoted.strip_prefix('"')?.strip_suffix('"')?;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let escape = *rest.as_bytes().get(at + 1)?;
        let mut used = at + 2;
        text.push(match escape {
            b'b' => '\u{8}',
            b't' => '\t',
            b'n' => '\n',
            b'f' => '\u{c}',
            b'r' => '\r',
            b'u' => {
                used += 4;
                char::from_u32(u32::from_str_radix(rest.get(at + 2..at + 6)?, 16).ok()?)?
            }
            byte => byte as char,
        });
        rest = &rest[used..];
    }
    text.push_str(rest);
    Some(())
}

/// Buffers that are kept from call to call.
#[derive(Default)]
struct Scratch {
    writer: Writer,
    /// The object that a string holds.
    inner: String,
}

thread_local! {
    /// Warm buffers of each thread: a fingerprint allocates nothing once it has seen its largest call.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    SCRATCH.with(|cell| match cell.try_borrow_mut() {
        Ok(mut scratch) => {
            let done = work(&mut scratch);
            scratch.writer.shrink();
            if scratch.inner.capacity() > Writer::KEEP {
                scratch.inner = String::new();
            }
            done
        }
        // Only a caller that fingerprints inside of `then` gets here.
        Err(_) => work(&mut Scratch::default()),
    })
}

/// Hashes fields with their lengths, so that no two lists of fields run together.
struct Frames(Sha256);

impl Frames {
    fn new(domain: &[u8]) -> Self {
        let mut frames = Self(Sha256::new());
        frames.add(domain);
        frames
    }

    fn add(&mut self, field: &[u8]) {
        self.0.update((field.len() as u64).to_le_bytes());
        self.0.update(field);
    }

    fn add_tagged(&mut self, tag: u8, field: &[u8]) {
        self.0.update([tag]);
        self.add(field);
    }

    /// JSON in canonical form, anything else as it is.
    fn add_document(&mut self, document: &[u8]) {
        with_canonical(document, |canonical| match canonical {
            Some(canonical) => self.add_tagged(b'j', canonical),
            None => self.add_tagged(b'b', document),
        });
    }

    fn add_sorted(&mut self, pairs: &[(&str, &str)]) {
        let mut sorted: Vec<_> = pairs.to_vec();
        sorted.sort_unstable();
        self.0.update((sorted.len() as u64).to_le_bytes());
        for (name, value) in sorted {
            self.add(name.as_bytes());
            self.add(value.as_bytes());
        }
    }

    fn finish(self) -> Fingerprint {
        Fingerprint(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::{Fingerprint, Request};

    fn call(tool: &str, args: &str) -> Fingerprint {
        Fingerprint::of_call(tool, Some(args))
    }

    #[test]
    fn a_name_never_runs_into_its_arguments() {
        assert_ne!(call("a::b", r#""x""#), call("a", r#""b::x""#));
        assert_ne!(call("ab", ""), call("a", "b"));
        assert_ne!(Fingerprint::of_call("atb", None), call("a", "b-"), "the tags are letters too");
    }

    #[test]
    fn empty_arguments_are_equal_however_they_are_missing() {
        let absent = Fingerprint::of_call("t", None);
        for args in ["", "null", "{}", " { } ", r#""""#, r#""{}""#] {
            assert_eq!(call("t", args), absent, "{args:?}");
        }
        for args in ["[]", "0", "false", r#"{"a":null}"#] {
            assert_ne!(call("t", args), absent, "{args:?}");
        }
    }

    #[test]
    fn a_string_that_holds_an_object_is_that_object() {
        assert_eq!(call("t", r#""{\"b\":1,\"a\":\"x\\ny\"}""#), call("t", r#"{"a":"x\ny","b":1.0}"#));
    }

    #[test]
    fn only_the_outermost_string_is_parsed() {
        assert_ne!(call("t", r#"{"a":"{\"b\":1}"}"#), call("t", r#"{"a":{"b":1}}"#));
        assert_ne!(call("t", r#""{\"b\":1""#), call("t", r#"{"b":1}"#));
        assert_ne!(call("t", r#""[1]""#), call("t", "[1]"));
    }

    #[test]
    fn text_that_is_not_json_counts_as_it_is() {
        assert_eq!(call("bash", "ls -la"), call("bash", "ls -la"));
        assert_ne!(call("bash", "ls -la"), call("bash", "ls  -la"));
    }

    #[test]
    fn array_order_matters() {
        assert_ne!(call("t", "[1,2]"), call("t", "[2,1]"));
    }

    fn request<'a>(path: &'a str, query: &'a [(&'a str, &'a str)], body: &'a [u8]) -> Fingerprint {
        let descriptors = &[("tenant", "a"), ("agent", "b")];
        Fingerprint::of_request(&Request { method: "POST", path, query, body, descriptors })
    }

    #[test]
    fn a_request_with_its_json_reordered_is_the_same() {
        assert_eq!(request("/x", &[], br#"{"a":1,"b":2}"#), request("/x", &[], b"{\"b\": 2,\n\"a\": 1}"));
    }

    #[test]
    fn a_body_that_is_not_json_counts_byte_by_byte() {
        assert_ne!(request("/x", &[], b"a=1 "), request("/x", &[], b"a=1"));
        assert_ne!(request("/x", &[], &[0xFF]), request("/x", &[], &[0xFE]));
    }

    #[test]
    fn repeated_query_names_are_kept() {
        assert_ne!(request("/x", &[("a", "1"), ("a", "1")], b""), request("/x", &[("a", "1")], b""));
        assert_eq!(
            request("/x", &[("b", "1"), ("a", "2")], b""),
            request("/x", &[("a", "2"), ("b", "1")], b"")
        );
    }

    #[test]
    fn path_query_and_descriptors_never_run_together() {
        assert_ne!(request("/x", &[("a", "b=c")], b""), request("/x", &[("a=b", "c")], b""));
        assert_ne!(request("/x", &[("a", "bc")], b""), request("/x", &[("ab", "c")], b""));
        let descriptors =
            |pairs| Request { method: "GET", path: "/", query: &[], body: b"", descriptors: pairs };
        let ab = Fingerprint::of_request(&descriptors(&[("key", "a"), ("key2", "b")]));
        let ba = Fingerprint::of_request(&descriptors(&[("key", "b"), ("key2", "a")]));
        assert_ne!(ab, ba);
    }

    #[test]
    fn method_path_and_body_each_count() {
        let plain = Request { method: "GET", path: "/a", query: &[], body: b"x", descriptors: &[] };
        let others = [
            Request { method: "POST", ..plain },
            Request { path: "/b", ..plain },
            Request { body: b"y", ..plain },
            Request { query: &[("a", "b")], ..plain },
            Request { descriptors: &[("a", "b")], ..plain },
        ];
        let mut all: Vec<_> = others.iter().chain([&plain]).map(Fingerprint::of_request).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 6);
    }
}
