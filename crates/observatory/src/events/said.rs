//! What an event says: as text, or as what the text is made of. Most events are read by nobody.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// What there is to say, as JSON.
#[derive(Debug, Clone)]
pub(crate) enum Said {
    Written(Box<str>),
    /// It is written whenever somebody reads it.
    Unwritten(Arc<dyn Writable>),
}

/// What can be written as JSON later, elsewhere.
pub(crate) trait Writable: fmt::Debug + Send + Sync {
    fn write(&self) -> Box<str>;
}

impl<T: Serialize + fmt::Debug + Send + Sync> Writable for T {
    fn write(&self) -> Box<str> {
        written(self)
    }
}

impl Said {
    /// Written down as it is now.
    pub(crate) fn now(said: &impl Serialize) -> Self {
        Self::Written(written(said))
    }

    /// To be written when it is read.
    pub(crate) fn later(said: impl Writable + 'static) -> Self {
        Self::Unwritten(Arc::new(said))
    }

    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Written(text) => Cow::Borrowed(text),
            Self::Unwritten(said) => Cow::Owned(said.write().into()),
        }
    }
}

impl PartialEq for Said {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Self::Written(text.into())
    }
}

fn written(said: &impl Serialize) -> Box<str> {
    thread_local! {
        /// It is written where there is room for it, and kept as long as it is.
        static PAGE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    PAGE.with_borrow_mut(|page| {
        page.clear();
        // Text keys and finite numbers can always be written, and JSON is always UTF-8.
        serde_json::to_writer(&mut *page, said).unwrap_or_default();
        std::str::from_utf8(page).unwrap_or_default().into()
    })
}

#[cfg(test)]
mod tests {
    use super::Said;

    #[test]
    fn what_is_written_later_says_the_same() {
        let said = vec!["a", "\"b\""];
        assert_eq!(Said::later(said.clone()), Said::now(&said));
        assert_eq!(Said::later(said).text(), r#"["a","\"b\""]"#);
    }
}
