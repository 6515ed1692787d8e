//! Findings in words, for the model and for the person on call.

use crate::finding::Kind;
use crate::redundancy::sighting::{Rule, Sighting};
use crate::step::Step;

/// What repeated, how often, and why that is no progress.
pub(super) fn of(sighting: &Sighting, step: &Step<'_>) -> String {
    let tool = step.tool.map_or("the agent", |tool| if tool.is_empty() { "(no name)" } else { tool });
    let count = sighting.count;
    let mut text = match sighting.rule.kind {
        Kind::Repeat if sighting.rule.name == "standstill" => {
            format!("the last {count} steps only asked what had been asked before, and were told the same")
        }
        Kind::Repeat => format!(
            "`{tool}` was called {count} times with the same arguments and gave the same result each time; nothing that it reads was changed in between"
        ),
        Kind::FailingRepeat => {
            format!(
                "`{tool}` was called {count} times with the same arguments and failed in the same way each time"
            )
        }
        Kind::Cycle => {
            format!(
                "the same {} steps (`{tool}`) were gone through {count} times, with the same results",
                sighting.period
            )
        }
        Kind::Churn => match sighting.rule.name {
            "same_question" => format!("`{tool}` was asked nearly the same {count} times in other words"),
            "one_answer" => {
                format!("`{tool}` gave the same answer {count} times, however its arguments were varied")
            }
            "whatever_asked" => {
                format!("`{tool}` gave one answer {count} times in a row, whatever it was asked")
            }
            "same_change" => {
                format!(
                    "`{tool}` made nearly the same change {count} times, and nothing looked at it in between"
                )
            }
            "plans_only" => {
                format!("`{tool}` wrote the whole plan {count} times in a row, and nothing of it was done")
            }
            "put_aside" => format!("nearly the same command was put aside {count} times before it answered"),
            "aside_row" | "all_aside" => {
                format!("{count} commands close together were put aside before they answered")
            }
            "tool_down" => {
                format!(
                    "`{tool}` refused {count} calls in the very same words, whatever it was asked: it lacks something that other arguments do not bring"
                )
            }
            "nothing_found" => format!("`{tool}` found nothing {count} times in a row"),
            "failing_everywhere" => format!("the same failure came back {count} times, whatever was called"),
            _ => format!("`{tool}` failed in the same way {count} times, however its arguments were varied"),
        },
        Kind::Oscillation => {
            format!("`{tool}` brought back a content that had stood there before, {count} times")
        }
        Kind::Sweep => {
            format!("`{tool}` started again over {} pages that it had already read", sighting.period)
        }
        Kind::StalePoll => format!("`{tool}` was asked {count} times and its answer no longer moves"),
        Kind::Monologue => match sighting.rule.name {
            "talks_on" => {
                format!(
                    "the same was said again and again, and what followed, {count} answers in a row, did nothing either"
                )
            }
            "canned_reply" => format!("{count} answers without a tool call all got the same reply"),
            _ => format!("nearly the same answer was given {count} times without doing anything"),
        },
        Kind::Chant => format!("one answer repeats the same words {count} times"),
        Kind::UnknownTool => {
            format!("`{tool}` does not exist or may not be used, and was called {count} times")
        }
        Kind::Retry => format!("`{tool}` failed {count} times for a passing reason, such as a rate limit"),
        Kind::IdenticalRequest | Kind::Semantic => format!("the same request was made {count} times"),
    };
    if sighting.rule.kind != Kind::Chant {
        text.push_str(" (steps ");
        push_steps(&mut text, &sighting.evidence);
        text.push(')');
    }
    text
}

/// The nearest thing that would have kept a finding of this rule from being made.
pub(super) fn prevented_by(rule: Rule) -> &'static str {
    match rule.kind {
        Kind::Repeat if rule.name == "standstill" => {
            "a step that has not been there before, or another answer to one"
        }
        Kind::Repeat => "another result, or a successful change to something the call reads",
        Kind::FailingRepeat => "another error, a success, or a successful change to something the call reads",
        Kind::Cycle => "another call or another result inside the cycle, or new words from the user",
        Kind::Churn => match rule.name {
            "same_question" => "an order that names something new, or a change in between",
            "one_answer" => "another answer, or a question that names something else",
            "whatever_asked" => "another answer",
            "same_change" => "another content, or a look at what was written",
            "plans_only" => "a step of the plan",
            "put_aside" | "aside_row" | "all_aside" => {
                "a command that answers, or a successful change in between"
            }
            "tool_down" => "another answer of the tool",
            "nothing_found" => "a search that finds something",
            _ => "another error, a success, or a successful change in between",
        },
        Kind::Oscillation => "a content that has not stood there before",
        Kind::Sweep => "a new page, or a page whose content had changed",
        Kind::StalePoll => "an answer that moves",
        Kind::Monologue if rule.name == "talks_on" => "a tool call, code, or new words from the user",
        Kind::Monologue => "a tool call, a new thought, or new words from the user",
        Kind::Chant => "an answer that ends",
        Kind::UnknownTool => "a tool that exists",
        Kind::Retry => "a longer back-off",
        Kind::IdenticalRequest => "another request, or more time between them",
        Kind::Semantic => "a new intent, or another result",
    }
}

/// `3, 5, 7`, and of a long list the first and the last ones.
fn push_steps(text: &mut String, steps: &[usize]) {
    const SHOWN: usize = 8;
    let (head, tail) =
        if steps.len() > SHOWN { (&steps[..4], &steps[steps.len() - 3..]) } else { (steps, &[][..]) };
    let mut separator = "";
    for step in head {
        text.push_str(separator);
        text.push_str(&step.to_string());
        separator = ", ";
    }
    if !tail.is_empty() {
        text.push_str(", …");
        for step in tail {
            text.push_str(", ");
            text.push_str(&step.to_string());
        }
    }
}
