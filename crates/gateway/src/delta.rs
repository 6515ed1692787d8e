//! All that a request says, where it is compared as a whole.

use loopbreaker::Step;
use loopbreaker_dialect::{Conversation, Dialect, Event, read_request};
use loopbreaker_embed::Delta;

/// All that a transcript says, as the design document compares it.
pub(crate) fn everything_said(dialect: Dialect, body: &[u8]) -> Delta {
    let mut all = Delta::default();
    let mut hear = |step: &Step<'_>| all.take_all(step);
    let mut conversation = Conversation::default();
    // What was understood before the body turned strange is all that there is.
    drop(read_request(dialect, body, None, &mut |message| {
        message.events(&mut |event: Event<'_>| conversation.take(event, &mut hear));
    }));
    conversation.finish(&mut hear);
    all
}
