//! Other arguments for a call that has not run: which step may still get them, and which check hands them out.

use loopbreaker::Fingerprint;
use loopbreaker_record::{DecisionLog, Status, TraceId};
use loopbreaker_telemetry::mask;

use crate::error::Stored;
use crate::hitl::{HandedOutBy, Order};
use crate::observatory::Observatory;
use crate::orders::OrderRefused;
use crate::redact::redact_text;
use crate::store::Session;
use crate::writer::Scribe;

/// A call that an agent asks about, as the log would keep it: what was masked there is masked here.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    tool: String,
    call: String,
}

impl Asked {
    pub(crate) fn new(tool: &str, args: Option<&str>, keep_prompts: bool) -> Self {
        let tool = mask(tool).into_owned();
        let args = args.map(|args| redact_text(args, keep_prompts));
        Self { call: name_of(&tool, args.as_deref()), tool }
    }

    /// Whether an order is for whoever asks about this call.
    pub(crate) fn fits(&self, order: &Order) -> bool {
        matches!(order, Order::Reject { .. })
            || (order.is_handed_out_by(HandedOutBy::Guard) && self.is_meant_by(order))
    }

    fn is_meant_by(&self, order: &Order) -> bool {
        let Order::Rewrite { tool_input: Some(_), tool, call, .. } = order else { return false };
        match call {
            Some(call) => *call == self.call,
            None => tool.as_ref().is_none_or(|tool| *tool == self.tool),
        }
    }

    /// Whether this is what an order wanted to be called.
    fn is_ordered_by(&self, order: &Order, keep_prompts: bool) -> bool {
        let Order::Rewrite { tool_input: Some(input), tool, .. } = order else { return false };
        tool.as_ref().is_none_or(|tool| *tool == self.tool)
            && Self::new(&self.tool, Some(input), keep_prompts).call == self.call
    }
}

impl Order {
    /// What is kept of it: another input is handed out by the guard and by the answer to a log, once by each.
    pub(crate) fn shares(&self) -> Vec<Self> {
        let mut shares = vec![self.clone()];
        if let Self::Rewrite { tool_input: Some(_), by, .. } = &mut shares[0] {
            *by = Some(HandedOutBy::Log);
            let mut for_guard = self.clone();
            if let Self::Rewrite { content, by, .. } = &mut for_guard {
                // What a result is to be is not for whoever asks before a call.
                (*content, *by) = (None, Some(HandedOutBy::Guard));
            }
            shares.push(for_guard);
        }
        shares
    }
}

/// Names a call by its tool and its arguments, however they are written.
fn name_of(tool: &str, args: Option<&str>) -> String {
    format!("{:032x}", Fingerprint::of_call(tool, args).short())
}

impl Observatory {
    /// An order that waits for whoever asks about this call.
    pub(crate) fn order_for(&self, session: i64, asked: &Asked) -> Option<Order> {
        self.shared.hitl.find_order(session, |_, order| asked.fits(order)).map(|(_, order)| order)
    }

    /// Hands that order out, once.
    pub(crate) async fn hand_out(&self, session: i64, asked: Asked) -> Stored<Option<Order>> {
        self.write(move |scribe| scribe.next_order(session, |order| asked.fits(order))).await
    }

    /// The call has run, as it was meant or as it was ordered: nobody needs to be told of other arguments any more.
    pub(crate) async fn has_run(&self, session: i64, asked: &Asked) -> Stored<()> {
        let keep_prompts = self.shared.keep_prompts;
        let is_it = |order: &Order| asked.is_meant_by(order) || asked.is_ordered_by(order, keep_prompts);
        let found = self.shared.hitl.find_order(session, |_, order| is_it(order));
        let Some((_, Order::Rewrite { trace_id, .. })) = found else { return Ok(()) };
        self.write(move |scribe| scribe.withdraw_input(session, trace_id)).await
    }
}

impl Scribe<'_> {
    /// Writes into a rewrite which call it is about, or says why it can have no effect. Other orders stay as they are.
    pub(crate) fn aim(&mut self, session: &Session, order: &mut Order) -> Stored<Result<(), OrderRefused>> {
        let Order::Rewrite { trace_id, content, tool_input, tool, call, .. } = order else {
            return Ok(Ok(()));
        };
        let step = self.store.step(session.tenant, *trace_id)?;
        let Some(step) = step.filter(|step| step.session == session.id) else {
            return Ok(Err(OrderRefused::Unknown));
        };
        let said = self.store.said(&step)?;
        let Ok(log) = serde_json::from_str::<DecisionLog>(&said.log) else {
            return Ok(Err(OrderRefused::Unknown));
        };
        if content.is_some() && self.live(session.id)?.row.marks.history_elsewhere {
            return Ok(Err(OrderRefused::HistoryElsewhere));
        }
        if tool_input.is_some() && log.action.status != Status::Pending {
            return Ok(Err(OrderRefused::AlreadyRun));
        }
        let named = log.action.tool_call.as_deref().unwrap_or_default();
        *call = log.action.tool_input.as_deref().map(|input| name_of(named, Some(input)));
        *tool = log.action.tool_call;
        Ok(Ok(()))
    }

    /// Takes back what a step was to get and has not been handed out: the newer rewrite of it takes over what it does not
    /// replace. Other orders stay as they are.
    pub(crate) fn supersede(&mut self, session: i64, mut newer: Order) -> Stored<Order> {
        let Order::Rewrite { trace_id, content, tool_input, .. } = &mut newer else { return Ok(newer) };
        while let Some((number, older)) = self.undelivered_rewrite(session, *trace_id) {
            if let Order::Rewrite { content: words, tool_input: input, .. } = older {
                *content = content.take().or(words);
                *tool_input = tool_input.take().or(input);
            }
            self.take_order(session, number)?;
        }
        Ok(newer)
    }

    /// The call has run: other arguments for it come too late. What its result is to be is still of use.
    pub(crate) fn withdraw_input(&mut self, session: i64, step: TraceId) -> Stored<()> {
        while let Some((number, mut order)) = self.undelivered_rewrite(session, step) {
            let Order::Rewrite { content, tool_input, by, .. } = &mut order else { return Ok(()) };
            if tool_input.take().is_none() {
                return Ok(());
            }
            *by = None;
            let is_of_use = content.is_some();
            self.take_order(session, number)?;
            if is_of_use {
                self.queue(session, &order)?;
            }
        }
        Ok(())
    }

    fn undelivered_rewrite(&self, session: i64, step: TraceId) -> Option<(i64, Order)> {
        let is_of_step =
            |order: &Order| matches!(order, Order::Rewrite { trace_id, .. } if *trace_id == step);
        let told = &self.told;
        self.shared.hitl.find_order(session, |number, order| is_of_step(order) && !told.contains(&number))
    }
}
