//! The probe for people.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use loopbreaker_config::BaseUrl;

use super::News;
use super::conclusion::Conclusion;
use super::health::Health;
use crate::terminal::{self, printable, wrap};
use crate::told::style_of;

/// Writes what has just been learnt.
pub(super) fn news<W: Write>(out: &mut W, url: &BaseUrl, news: &News<'_>) -> io::Result<()> {
    match news {
        News::Health(None) => {
            writeln!(out, "{url} is a gateway; its health is told elsewhere (`admin_listen`)")?;
        }
        News::Health(Some(health)) => writeln!(out, "{url} is {}", printable(&in_words(health)))?,
        News::Judged(judged) => {
            let seen = judged.seen.as_ref().map(ToString::to_string);
            let because = seen.or_else(|| judged.code.clone()).unwrap_or_default();
            let (verdict, style) = match judged.verdict {
                Some(action) => (action.as_str(), style_of(action)),
                None => ("-", Style::new().dimmed()),
            };
            let number = judged.request;
            if because.is_empty() {
                writeln!(out, "  request {number:>2}  {style}{verdict}{style:#}")?;
            } else {
                let because = printable(&because);
                writeln!(out, "  request {number:>2}  {style}{verdict:<WORD$}{style:#}  {because}")?;
            }
        }
        News::Again => {
            writeln!(
                out,
                "the loop went through; this session may be one of the `holdout`, so another one tries"
            )?;
        }
    }
    out.flush()
}

/// Writes what it all comes to.
pub(super) fn end<W: Write>(out: &mut W, conclusion: &Conclusion) -> io::Result<()> {
    let style = match conclusion {
        Conclusion::Enforced { .. } => AnsiColor::Green.on_default().bold(),
        Conclusion::Shadow | Conclusion::Silent | Conclusion::Stopped { .. } => {
            AnsiColor::Yellow.on_default().bold()
        }
        Conclusion::Ignored => AnsiColor::Red.on_default().bold(),
    };
    writeln!(out)?;
    for line in wrap(&printable(&conclusion.to_string()), terminal::width().max(20)) {
        writeln!(out, "{style}{line}{style:#}")?;
    }
    if let Some(hint) = conclusion.hint() {
        for line in wrap(hint, terminal::width().max(20)) {
            writeln!(out, "{line}")?;
        }
    }
    out.flush()
}

/// `live and ready`, `live and degraded: config; nothing is sent to api.openai.com:443`.
fn in_words(health: &Health) -> String {
    let live = if health.live { "live" } else { "not live" };
    let mut words = format!("{live} and {}", health.status);
    if !health.degraded.is_empty() {
        words = format!("{words}: {}", health.degraded.join(", "));
    }
    if !health.open_breakers.is_empty() {
        words = format!("{words}; nothing is sent to {} at present", health.open_breakers.join(", "));
    }
    words
}

/// Characters of the longest verdict.
const WORD: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degraded_parts_are_named() {
        let health = Health {
            live: true,
            status: "degraded".into(),
            degraded: vec!["config".into(), "data_dir".into()],
            open_breakers: vec!["api.openai.com:443".into()],
        };
        let told = "live and degraded: config, data_dir; nothing is sent to api.openai.com:443 at present";
        assert_eq!(in_words(&health), told);
    }
}
