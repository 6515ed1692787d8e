//! Agent text on a page: shown, never obeyed.

use std::fmt::{self, Write as _};

use crate::terminal::printable;

/// Text that stands as text wherever it is put: between tags and inside quoted attributes.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in printable(self.0).chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// A sentence of ours, in which `backticks` mark names that came from the agent.
pub(super) struct Sentence<'a>(pub(super) &'a str);

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((before, (name, after))) =
            rest.split_once('`').and_then(|(before, behind)| Some((before, behind.split_once('`')?)))
        {
            write!(f, "{}<code>{}</code>", Escaped(before), Escaped(name))?;
            rest = after;
        }
        Escaped(rest).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Escaped, Sentence};

    #[test]
    fn a_script_stays_text() {
        let text = Escaped("<script>alert('x' + \"&\")</script>\0").to_string();
        assert_eq!(text, "&lt;script&gt;alert(&#39;x&#39; + &quot;&amp;&quot;)&lt;/script&gt;\u{FFFD}");
    }

    #[test]
    fn names_in_backticks_are_code() {
        assert_eq!(Sentence("`a<b` was called").to_string(), "<code>a&lt;b</code> was called");
        assert_eq!(Sentence("one ` alone").to_string(), "one ` alone");
    }

    proptest! {
        #[test]
        fn nothing_that_ends_a_text_or_an_attribute_is_left(text in any::<String>()) {
            prop_assert!(!Escaped(&text).to_string().contains(['<', '>', '"', '\'']));
        }
    }
}
