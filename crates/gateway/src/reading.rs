//! A body is read, and what it says is noted in the case of its request.

use std::sync::Arc;

use loopbreaker::{Outcome, Step};
use loopbreaker_dialect::Facts;
use loopbreaker_embed::Delta;
use loopbreaker_telemetry::Part;

use crate::consider::{Case, Looked};
use crate::inspect::Reader;
use crate::journal::Heard;
use crate::settings::Settings;
use crate::state::Shared;

/// How a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// From where an earlier request ended.
    GoesOn,
    /// From the start, for what is known of it was said by another session.
    Anew,
    /// The same, for the words at its end are a reminder.
    WithoutTheEnd,
}

/// What is known of a body before it is read. Each thread has it once: most requests hold it for a moment only.
pub(crate) fn nothing_said() -> Arc<Facts> {
    thread_local! {
        static NOTHING: Arc<Facts> = Arc::default();
    }
    NOTHING.with(Arc::clone)
}

/// What does the body say, and what of it is new?
pub(crate) fn read_body(
    shared: &Shared,
    settings: &Settings,
    looked: &Looked<'_>,
    case: &mut Case<'_>,
    reading: Reading,
) {
    let reader = Reader {
        tenant: case.tenant.key,
        rules: &settings.rules,
        transcripts: &shared.transcripts,
        fingerprint: settings.counts_requests,
        anew: reading != Reading::GoesOn,
        knows_the_end: reading == Reading::WithoutTheEnd,
    };
    (case.heard, case.delta) = (Vec::new(), Delta::default());
    let (heard, delta, is_kept) = (&mut case.heard, &mut case.delta, shared.journal().is_some());
    let mut tell = |position: usize, step: &Step<'_>, outcome: &Outcome| {
        if is_kept {
            // Of a long transcript that is read for the first time, the newest steps are kept.
            if heard.len() >= Heard::MAX_STEPS {
                heard.drain(..Heard::MAX_STEPS / 2);
            }
            heard.push(Heard::of(position, step, outcome));
        }
        if settings.compares {
            delta.take(step);
        }
    };
    let read = looked.dialect.zip(looked.body).map(|(dialect, body)| reader.read(dialect, body, &mut tell));
    match read {
        Some(Ok(inspection)) => {
            case.facts = Arc::clone(&inspection.facts);
            case.model = case.facts.model.as_deref().map(Into::into).or(case.model.take());
            case.tip = inspection.transcript.tip;
            case.anchor = inspection.transcript.anchor.unwrap_or(case.tip);
            case.position = inspection.transcript.loops.steps();
            case.has_looped = inspection.transcript.loops.has_looped();
            case.inspection = Some(inspection);
        }
        Some(Err(_)) => case.degraded.insert(Part::Body),
        None if looked.dialect.is_some() => case.degraded.insert(Part::Body),
        None => {}
    }
}
