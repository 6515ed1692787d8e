//! Reading a request.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use twox_hash::XxHash3_64;

use crate::digest::Digest;
use crate::events::Listener;
use crate::facts::{Facts, is_signed};
use crate::json::{Broken, Cursor};
use crate::written::{Form, Part, Written};
use crate::{Dialect, Event};

/// Reads a body: `take` gets its messages one after the other, once all of the body has been understood.
///
/// With `from`, the caller vouches that the body begins with the same [`Mark::offset`] bytes as the one that the mark
/// is from. Only what is behind them is read then, and `take` gets only the messages that are new. A mark that does
/// not fit this body is not used.
///
/// ```
/// use loopbreaker_dialect::{Dialect, Speaker, read_request};
///
/// let first = br#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}"#;
/// let reading = read_request(Dialect::Chat, first, None, &mut |_| ())?;
/// assert_eq!((reading.facts.model.as_deref(), reading.facts.stream, reading.messages), (Some("m"), true, 1));
///
/// let second = br#"{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}],"stream":true}"#;
/// let mut speakers = Vec::new();
/// let reading =
///     read_request(Dialect::Chat, second, reading.mark.as_ref(), &mut |message| speakers.push(message.speaker))?;
/// assert_eq!((speakers.as_slice(), reading.messages), (&[Speaker::Agent][..], 2));
/// # Ok::<(), loopbreaker_dialect::Unreadable>(())
/// ```
pub fn read_request<'a>(
    dialect: Dialect,
    body: &'a [u8],
    from: Option<&Mark>,
    take: &mut dyn FnMut(Message<'a>),
) -> Result<Reading, Unreadable> {
    let (reading, messages) = read_messages(dialect, body, from)?;
    messages.into_iter().for_each(take);
    Ok(reading)
}

/// [`read_request`], with the messages that `take` would get.
pub fn read_messages<'a>(
    dialect: Dialect,
    body: &'a [u8],
    from: Option<&Mark>,
) -> Result<(Reading, Vec<Message<'a>>), Unreadable> {
    let mut messages = Messages::new(dialect);
    let reading = match from.filter(|mark| mark.fits(body)) {
        Some(mark) => messages.read_on(body, mark)?,
        None => messages.read_all(body)?,
    };
    Ok((reading, messages.list))
}

/// Why a body cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The body is no text.
    #[error("the body is not valid UTF-8; send JSON in UTF-8")]
    Utf8,
    /// The body is no JSON object.
    #[error("the body is not a JSON object; repair it at byte {at}")]
    Json {
        /// Where it goes wrong.
        at: usize,
    },
    /// The messages are something else than a list.
    #[error("the messages at byte {at} are not a list; send a list of messages")]
    NoList {
        /// Where they are.
        at: usize,
    },
    /// There are more messages than any conversation has.
    #[error("the body has more than {max} messages; send fewer")]
    TooMany {
        /// The most that are read.
        max: usize,
    },
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Speaker {
    /// Instructions.
    System,
    /// A person or the environment.
    Outside,
    /// The model.
    Agent,
    /// Tools that return, with or without words from outside beside them.
    Tool,
}

/// One message of a request, or one input item.
#[derive(Debug)]
pub struct Message<'a> {
    /// Where it stands in the body.
    pub span: Range<usize>,
    /// Who speaks.
    pub speaker: Speaker,
    form: Form,
    written: Written<'a>,
    /// All of it.
    text: &'a str,
    digest: OnceCell<u128>,
}

impl<'a> Message<'a> {
    /// What the message amounts to: speaker, words, tools, arguments however they are written, and results.
    ///
    /// It leaves out ids, cache marks, signatures, what the model only thought, and the billing header of Claude Code.
    /// A string and a single block of the same words are equal.
    pub fn digest(&self) -> u128 {
        *self.digest.get_or_init(|| self.digest_and(&mut |_| ()))
    }

    /// Whether it is an answer that has only words: as the last message of a request, its beginning, which the model is to
    /// go on with.
    pub fn is_begun_answer(&self) -> bool {
        let mut says = false;
        let mut does = false;
        if matches!(self.form, Form::Answer | Form::AnswerPart) {
            self.each_part(&mut |part| match part {
                Part::Said(_) => says = true,
                Part::Thought(_) | Part::Shown(_) => {}
                Part::Called(_) | Part::Returned(_) | Part::Compacted => does = true,
            });
        }
        says && !does
    }

    /// Whether it only names something that an answer said or called, which the provider has kept.
    ///
    /// ```
    /// use loopbreaker_dialect::{Dialect, read_request};
    /// let body = br#"{"input":[{"role":"user","content":"go"},{"type":"item_reference","id":"lsh_1"}]}"#;
    /// let mut found = Vec::new();
    /// read_request(Dialect::Responses, body, None, &mut |message| found.push(message.is_reference()))?;
    /// assert_eq!(found, [false, true]);
    /// # Ok::<(), loopbreaker_dialect::Unreadable>(())
    /// ```
    pub fn is_reference(&self) -> bool {
        self.form == Form::Nothing && self.written.is_reference()
    }

    /// What it says to the letter: equal for two messages exactly when all that stands in them is, however their JSON is
    /// spelt.
    ///
    /// ```
    /// use loopbreaker_dialect::{Dialect, read_request};
    /// let said = |body: &str| {
    ///     let mut said = Vec::new();
    ///     read_request(Dialect::Chat, body.as_bytes(), None, &mut |message| said.push(message.to_the_letter()))?;
    ///     Ok::<_, loopbreaker_dialect::Unreadable>(said)
    /// };
    /// let one = said(r#"{"messages":[{"role":"user","content":"a/b","id":1}]}"#)?;
    /// assert_eq!(one, said(r#"{"messages":[{"id":1.0, "content":"a\/b", "role":"user"}]}"#)?);
    /// assert_ne!(one, said(r#"{"messages":[{"role":"user","content":"a/b","id":2}]}"#)?);
    /// # Ok::<(), loopbreaker_dialect::Unreadable>(())
    /// ```
    pub fn to_the_letter(&self) -> u128 {
        self.written.members().hash(self.text)
    }

    /// What happens in it.
    pub fn events(&self, take: &mut dyn FnMut(Event<'a>)) {
        let mut listener = Listener::of(&self.written, self.form, take);
        self.each_part(&mut |part| listener.hear(part, take));
        listener.finish(None, take);
    }

    /// [`events`](Self::events) and [`digest`](Self::digest), in one pass where the digest is not known yet.
    pub fn read(&self, take: &mut dyn FnMut(Event<'a>)) -> u128 {
        if let Some(digest) = self.digest.get() {
            self.events(take);
            return *digest;
        }
        let mut listener = Listener::of(&self.written, self.form, take);
        let digest = self.digest_and(&mut |part| listener.hear(part, take));
        listener.finish(None, take);
        *self.digest.get_or_init(|| digest)
    }

    fn digest_and(&self, hear: &mut dyn FnMut(Part<'a>)) -> u128 {
        if self.form == Form::Unknown {
            return Digest::of_bytes(self.text);
        }
        let long = self.written.members().long();
        let mut digest = Digest::of(self.form, self.written.name().as_deref(), long);
        self.each_part(&mut |part| {
            digest.add(&part);
            hear(part);
        });
        digest.finish()
    }

    pub(crate) fn each_part(&self, visit: &mut dyn FnMut(Part<'a>)) {
        // What was understood before the message turned strange is all that is known of it.
        drop(self.written.each_part(self.form, visit));
    }

    #[inline]
    fn of(written: Written<'a>, form: Form, text: &'a str, span: Range<usize>) -> Self {
        let digest = OnceCell::new();
        let mut message = Self { span: 0..0, speaker: Speaker::Outside, form, written, text, digest };
        message.becomes(form, text, span);
        message
    }

    /// What it is, where it stands, and so who speaks.
    #[inline]
    fn becomes(&mut self, form: Form, text: &'a str, span: Range<usize>) {
        (self.form, self.text, self.span) = (form, text, span);
        self.speaker = match form {
            Form::System => Speaker::System,
            Form::Result | Form::CallOutput => Speaker::Tool,
            Form::Outside if self.written.holds_results() => Speaker::Tool,
            Form::Outside | Form::Unknown => Speaker::Outside,
            // Nobody outside says what says nothing: it stands for something that the provider has.
            Form::Answer
            | Form::AnswerPart
            | Form::Reasoning
            | Form::Call
            | Form::Compaction
            | Form::Nothing => Speaker::Agent,
        };
    }
}

/// What a body says.
#[derive(Debug, Clone)]
pub struct Reading {
    /// What it says beside its messages.
    pub facts: Arc<Facts>,
    /// Where a body that goes on from this one can be taken up; `None` where that cannot be said.
    pub mark: Option<Mark>,
    /// How many messages it has in all, those before the mark included.
    pub messages: usize,
}

/// A remembered place: where the messages of a body ended.
#[derive(Debug, Clone)]
pub struct Mark {
    offset: usize,
    messages: usize,
    /// What was said before the messages.
    head: Arc<Facts>,
    /// What was said in all.
    facts: Arc<Facts>,
    /// The hash of everything behind the last message.
    tail: u64,
}

impl Mark {
    /// The offset just behind the last message.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// How many messages end there.
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// How much memory the mark takes, for whoever keeps many of them.
    pub fn bytes(&self) -> usize {
        let mut bytes = size_of::<Self>() + size_of::<Facts>() + self.facts.bytes();
        if !Arc::ptr_eq(&self.facts, &self.head) {
            bytes += size_of::<Facts>() + self.head.bytes();
        }
        bytes
    }

    /// Whether the list of messages can go on at the offset.
    fn fits(&self, body: &[u8]) -> bool {
        let rest = body.get(self.offset..).unwrap_or_default();
        matches!(rest.trim_ascii_start().first(), Some(b',' | b']'))
    }
}

/// The messages of a body so far.
struct Messages<'a> {
    dialect: Dialect,
    list: Vec<Message<'a>>,
    /// How many messages came before those of the list.
    before: usize,
    /// The offset behind the last message.
    end: usize,
    /// Whether a system message has the billing header.
    signed: bool,
}

/// More messages than this are no conversation; each takes a few hundred bytes while a body is read.
const MAX_MESSAGES: usize = 65_536;

impl<'a> Messages<'a> {
    fn new(dialect: Dialect) -> Self {
        Self { dialect, list: Vec::new(), before: 0, end: 0, signed: false }
    }

    fn read_all(&mut self, body: &'a [u8]) -> Result<Reading, Unreadable> {
        let text = str::from_utf8(body).map_err(|_| Unreadable::Utf8)?;
        let mut cursor = Cursor::new(text);
        let mut facts = Facts::default();
        let mut head = None;
        let mut lists = 0;
        let mut walk = || -> Result<(), Stopped<'a>> {
            cursor.open(b'{')?;
            while cursor.has_element(b'}')? {
                let key = cursor.key()?;
                if key == self.key() {
                    lists += 1;
                    head = Some(facts.clone());
                    self.list.clear();
                    self.read_value(&mut cursor)?;
                } else {
                    facts.learn(self.dialect, &key, cursor.skip()?);
                }
            }
            Ok(cursor.end()?)
        };
        walk().map_err(|stopped| stopped.in_body(text))?;
        // Of two lists the last one counts, but nothing can go on from there.
        let head = head.filter(|_| lists == 1);
        Ok(self.reading(body, head, facts))
    }

    fn read_on(&mut self, body: &'a [u8], mark: &Mark) -> Result<Reading, Unreadable> {
        let behind = body.get(mark.offset..).unwrap_or_default();
        let text = str::from_utf8(behind).map_err(|_| Unreadable::Utf8)?;
        let shifted = |stopped: Stopped<'a>| stopped.in_body(text).shifted(mark.offset);
        let mut cursor = Cursor::behind_element(text);
        // Most requests bring an answer and its result, and room for more is not had as cheaply.
        self.list = Vec::with_capacity(2);
        (self.before, self.end) = (mark.messages, mark.offset);
        self.read_list(&mut cursor, mark.offset).map_err(shifted)?;
        let tail = body.get(self.end..).unwrap_or_default();
        if XxHash3_64::oneshot(tail) == mark.tail && !self.signed {
            let messages = self.before + self.list.len();
            let mark = Mark { offset: self.end, messages, ..mark.clone() };
            return Ok(Reading { facts: Arc::clone(&mark.facts), mark: Some(mark), messages });
        }
        let mut facts = Facts::clone(&mark.head);
        let mut lists = 1;
        let mut walk = || -> Result<(), Stopped<'a>> {
            while cursor.has_element(b'}')? {
                let key = cursor.key()?;
                if key == self.key() {
                    lists += 1;
                }
                facts.learn(self.dialect, &key, cursor.skip()?);
            }
            Ok(cursor.end()?)
        };
        walk().map_err(shifted)?;
        if lists > 1 {
            // The messages that are known are not those that count.
            *self = Self::new(self.dialect);
            return self.read_all(body);
        }
        Ok(self.reading(body, Some(Facts::clone(&mark.head)), facts))
    }

    /// The key of the messages.
    fn key(&self) -> &'static str {
        match self.dialect {
            Dialect::Chat | Dialect::Anthropic => "messages",
            Dialect::Responses => "input",
            Dialect::Gemini => "contents",
        }
    }

    /// Reads the value of the messages' key.
    fn read_value(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Stopped<'a>> {
        match cursor.peek() {
            Some(b'[') => {
                cursor.open(b'[')?;
                self.read_list(cursor, 0)
            }
            Some(b'"') if self.dialect == Dialect::Responses => {
                let start = cursor.at();
                let words = cursor.skip()?;
                let (written, span) = (Written::saying(words), start..cursor.at());
                self.list.push(Message::of(written, Form::Outside, words.get(), span));
                Ok(())
            }
            Some(b'n') => {
                cursor.value::<()>()?;
                Ok(())
            }
            Some(_) => Err(Stopped::NoList(cursor.at())),
            None => Err(cursor.broken().into()),
        }
    }

    /// Reads messages up to the end of their list. The cursor's text begins at `offset` of the body.
    fn read_list(&mut self, cursor: &mut Cursor<'a>, offset: usize) -> Result<(), Stopped<'a>> {
        while cursor.has_element(b']')? {
            if self.before + self.list.len() == MAX_MESSAGES {
                return Err(Stopped::TooMany);
            }
            let is_object = cursor.peek() == Some(b'{');
            let (start, rest) = (cursor.at(), cursor.rest());
            // It is large, so it is read where it stays.
            self.list.push(Message::of(Written::default(), Form::Unknown, "", 0..0));
            let Some(message) = self.list.last_mut() else { break };
            // A message that is none as we know them is still one, as long as it is JSON.
            if !is_object || message.written.fill(cursor).is_err() {
                message.written = Written::default();
                cursor.skip()?;
            }
            self.end = offset + cursor.at();
            let span = offset + start..self.end;
            let text = rest.get(..cursor.at() - start).unwrap_or_default();
            message.becomes(message.written.form(), text, span);
            self.signed = self.signed || message.speaker == Speaker::System && is_signed(text);
        }
        Ok(())
    }

    /// What has been read, with the facts before the messages where there is one list of them.
    fn reading(&self, body: &[u8], head: Option<Facts>, mut facts: Facts) -> Reading {
        let messages = self.before + self.list.len();
        facts.signed = facts.signed || self.signed;
        let facts = Arc::new(facts);
        let mark = head.filter(|_| self.end > 0).map(|mut head| {
            head.signed = head.signed || self.signed;
            let head = if *facts == head { Arc::clone(&facts) } else { Arc::new(head) };
            let tail = XxHash3_64::oneshot(body.get(self.end..).unwrap_or_default());
            Mark { offset: self.end, messages, head, facts: Arc::clone(&facts), tail }
        });
        Reading { facts, mark, messages }
    }
}

/// Why reading ended early.
enum Stopped<'a> {
    Broken(Broken<'a>),
    NoList(usize),
    TooMany,
}

impl<'a> From<Broken<'a>> for Stopped<'a> {
    fn from(broken: Broken<'a>) -> Self {
        Self::Broken(broken)
    }
}

impl Stopped<'_> {
    /// The same in words, with the offset in `text`, of which the broken part is the end.
    fn in_body(self, text: &str) -> Unreadable {
        match self {
            Self::Broken(broken) => Unreadable::Json { at: text.len() - broken.part.len() },
            Self::NoList(at) => Unreadable::NoList { at },
            Self::TooMany => Unreadable::TooMany { max: MAX_MESSAGES },
        }
    }
}

impl Unreadable {
    /// The same, when the text that it is about stands at `offset` of the body.
    fn shifted(self, offset: usize) -> Self {
        match self {
            Self::Json { at } => Self::Json { at: at + offset },
            Self::NoList { at } => Self::NoList { at: at + offset },
            other => other,
        }
    }
}
