//! The human in the loop: which sessions are held, and what operators have to say to them.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loopbreaker_record::TraceId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What an operator orders.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "lowercase")]
pub enum Order {
    /// Stop until somebody decides.
    Pause {
        /// Why.
        reason: String,
    },
    /// Go on.
    Resume,
    /// Do not go on, and do not try again.
    Reject {
        /// What the agent is told.
        message: String,
    },
    /// Go on with these words.
    Inject {
        /// What the agent is told.
        message: String,
    },
    /// Go on with another result or another input of one step.
    Rewrite {
        /// The step.
        trace_id: TraceId,
        /// What replaces its result.
        content: Option<String>,
        /// What replaces its input, as JSON text, while it has not run.
        tool_input: Option<String>,
        /// The tool that the step calls: a check of another one is not meant.
        #[serde(default)]
        tool: Option<String>,
        /// Names that call with its arguments, where they are known: only the very same call is meant.
        #[serde(default)]
        call: Option<String>,
        /// Who hands the input out, once it is kept for each of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<HandedOutBy>,
    },
}

/// Where an agent hears of another input: it may ask the guard, send logs, or do both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HandedOutBy {
    /// The guard, when it is asked about the call.
    Guard,
    /// The answer to the next decision log.
    Log,
}

impl Order {
    /// The order's name on every wire.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pause { .. } => "pause",
            Self::Resume => "resume",
            Self::Reject { .. } => "reject",
            Self::Inject { .. } => "inject",
            Self::Rewrite { .. } => "rewrite",
        }
    }

    /// Whether it is told here: by either of them, unless it is kept for the other.
    pub(crate) fn is_handed_out_by(&self, place: HandedOutBy) -> bool {
        !matches!(self, Self::Rewrite { by: Some(by), .. } if *by != place)
    }
}

/// A session that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Since when, in milliseconds since 1970.
    pub since: i64,
    /// By whom; `system` when the agent asked for it.
    pub operator: String,
    /// Why.
    pub reason: String,
}

/// Told of every order that took effect, and again when its words are handed out: the gateway holds and releases calls by
/// it.
pub type Observer = Arc<dyn Fn(&OrderGiven) + Send + Sync>;

/// An order that took effect.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OrderGiven {
    /// The session's tenant.
    pub tenant: String,
    /// The session.
    pub session_id: String,
    /// Who gave it.
    pub operator: String,
    /// What it is.
    pub order: Order,
    /// Whether another process was told it, and this one has only read of it.
    #[serde(skip, default = "elsewhere")]
    pub is_elsewhere: bool,
    /// Whether its words have just been handed out to the agent, by the guard or in the answer to a log.
    #[serde(default)]
    pub is_handed_out: bool,
}

/// What is read was written by somebody else.
const fn elsewhere() -> bool {
    true
}

/// A session that is held, by its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The session's tenant.
    pub tenant: String,
    /// The session.
    pub session_id: String,
    /// Since when, by whom and why.
    pub pause: Pause,
}

/// An order that a gateway puts into every request of a session from now on.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The session's tenant.
    pub tenant: String,
    /// The session.
    pub session_id: String,
    /// What it is.
    pub order: Order,
    /// The place in the transcript at which it was put in first, as the gateway names it; `None` until it was.
    pub anchor: Option<u128>,
}

/// What is known about held sessions, beside the store that keeps it.
#[derive(Default)]
pub(crate) struct Hitl {
    state: Mutex<State>,
    observer: Mutex<Option<Observer>>,
}

#[derive(Debug, Default)]
struct State {
    paused: HashMap<i64, Pause>,
    /// What each session has not been told yet, with the order's number in the store.
    undelivered: HashMap<i64, VecDeque<(i64, Order)>>,
}

impl Hitl {
    /// More orders than this to one session, and the oldest are forgotten.
    const MAX_UNDELIVERED: usize = 64;

    pub(crate) fn observe(&self, observer: Observer) {
        *self.observer.lock().unwrap_or_else(PoisonError::into_inner) = Some(observer);
    }

    pub(crate) fn pause_of(&self, session: i64) -> Option<Pause> {
        self.lock().paused.get(&session).cloned()
    }

    /// Whether no session is held and nobody has anything to say.
    pub(crate) fn is_quiet(&self) -> bool {
        let state = self.lock();
        state.paused.is_empty() && state.undelivered.is_empty()
    }

    pub(crate) fn set_pause(&self, session: i64, pause: Option<Pause>) {
        let mut state = self.lock();
        match pause {
            Some(pause) => state.paused.insert(session, pause),
            None => state.paused.remove(&session),
        };
    }

    /// Sessions that nobody has decided about since this moment.
    pub(crate) fn paused_before(&self, moment: i64) -> Vec<i64> {
        let state = self.lock();
        state.paused.iter().filter(|(_, pause)| pause.since <= moment).map(|(session, _)| *session).collect()
    }

    pub(crate) fn queue(&self, session: i64, number: i64, order: Order) {
        let mut state = self.lock();
        let queue = state.undelivered.entry(session).or_default();
        if queue.len() >= Self::MAX_UNDELIVERED {
            queue.pop_front();
        }
        queue.push_back((number, order));
    }

    /// The first order that a session has not been told and that fits.
    pub(crate) fn find_order(
        &self,
        session: i64,
        fits: impl Fn(i64, &Order) -> bool,
    ) -> Option<(i64, Order)> {
        self.lock().undelivered.get(&session)?.iter().find(|(number, order)| fits(*number, order)).cloned()
    }

    /// Takes over what the store says, after another process has written to it.
    pub(crate) fn replace(&self, pauses: HashMap<i64, Pause>, orders: Vec<(i64, i64, Order)>) {
        {
            let mut state = self.lock();
            state.paused = pauses;
            state.undelivered.clear();
        }
        for (session, number, order) in orders {
            self.queue(session, number, order);
        }
    }

    /// The order has been told.
    pub(crate) fn delivered(&self, session: i64, number: i64) {
        let mut state = self.lock();
        if let Some(queue) = state.undelivered.get_mut(&session) {
            queue.retain(|(queued, _)| *queued != number);
            if queue.is_empty() {
                state.undelivered.remove(&session);
            }
        }
    }

    /// One session has become part of another.
    pub(crate) fn merge(&self, from: i64, into: i64) {
        let mut state = self.lock();
        if let Some(pause) = state.paused.remove(&from) {
            state.paused.entry(into).or_insert(pause);
        }
        if let Some(orders) = state.undelivered.remove(&from) {
            state.undelivered.entry(into).or_default().extend(orders);
        }
    }

    /// Tells whoever listens.
    pub(crate) fn tell(&self, given: &OrderGiven) {
        let observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(observer) = observer {
            // A listener that panics must not take the writer with it.
            drop(catch_unwind(AssertUnwindSafe(|| observer(given))));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an agent must obey now: the `control` of the answer to its log.
pub(crate) fn control(pause: Option<&Pause>, order: Option<&Order>, is_terminal: bool) -> Value {
    let mut control = json!({
        "hitl_required": pause.is_some(),
        "interrupt_signal": null,
        "is_terminal": is_terminal,
    });
    let (signal, message, tool_input) = match (pause, order) {
        (Some(pause), _) => ("pause", Some(pause.reason.clone()).filter(|reason| !reason.is_empty()), None),
        (None, Some(Order::Inject { message } | Order::Reject { message })) => {
            ("inject", Some(message.clone()), None)
        }
        (None, Some(Order::Rewrite { content, tool_input, trace_id, .. })) => {
            control["trace_id"] = trace_id.to_string().into();
            ("rewrite", content.clone(), tool_input.clone())
        }
        (None, _) => return control,
    };
    control["interrupt_signal"] = signal.into();
    if let Some(message) = message {
        control["message"] = message.into();
    }
    if let Some(tool_input) = tool_input {
        control["tool_input"] = tool_input.into();
    }
    control
}

impl std::fmt::Debug for Hitl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hitl").field("state", &self.state).finish_non_exhaustive()
    }
}
