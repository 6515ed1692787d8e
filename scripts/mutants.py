#!/usr/bin/env python3
"""Breaks the detection library on purpose, one way at a time, and wants a test to turn red each time.

    scripts/mutants.py                    every mutation
    scripts/mutants.py --only chant       one part; a part's name, or any piece of a mutation's description
    scripts/mutants.py --list             what there is, without running anything

Each mutation is a piece of source that must stand in its file exactly once, and what stands there instead. It is made
in a copy of the working tree (target/mutants/tree), never in place. A mutation is

    killed     a test turned red, or ran for ever;
    survived   every test stayed green: nobody would notice this mistake;
    stale      its text is no longer found exactly once: the table has to follow the code;
    broken     it does not compile, so it proves nothing.

Anything but `killed` fails the run. A mutation that changes nothing a user could see does not belong here.
"""
from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A target folder of its own: cargo takes the crates of two copies of one workspace for the same ones.
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute() / "mutants"
TREE = TARGET / "tree"
SOURCE = Path("crates/detect/src")
PACKAGE = ["-p", "loopbreaker"]
TIMEOUT = 300
"""Seconds for one run of tests: a mutation that never ends is as dead as one that fails."""


@dataclass(frozen=True)
class Mutation:
    part: str
    file: str
    old: str
    new: str
    breaks: str

    def __str__(self) -> str:
        return f"{self.part}: {self.breaks}"


MUTATIONS: list[Mutation] = []


class part:
    """A detector or a part of one: `with part(name, file) as breaks` adds its mutations."""

    def __init__(self, name: str, file: str) -> None:
        self.name, self.file = name, file

    def __enter__(self):
        def breaks(what: str, old: str, new: str, file: str | None = None) -> None:
            MUTATIONS.append(Mutation(self.name, file or self.file, old, new, what))

        return breaks

    def __exit__(self, *_) -> None:
        pass


# ── The detectors of the design documents ────────────────────────────────────────────────────────────────────────────

with part("sentinel", "sentinel.rs") as breaks:
    breaks("one call too many is let through",
           "if count < place.limit.threshold() {", "if count <= place.limit.threshold() {")
    breaks("a blocked call is recorded and feeds its own alarm",
           "Err(block) => Err(SentinelBlock { strikes: self.strike(call), ..block }),",
           "Err(block) => {\n                self.admit(config, tool, call);\n"
           "                Err(SentinelBlock { strikes: self.strike(call), ..block })\n            }")
    breaks("bypass is ignored",
           "if config.bypass.iter().any(|pattern| pattern.matches(tool)) {",
           "if config.bypass.iter().any(|pattern| pattern.matches(tool) && tool.is_empty()) {")
    breaks("a tool's own window has the default's size",
           "ring.push(call, place.limit.window_size());", "ring.push(call, config.default.window_size());")
    breaks("the ring does not go round",
           "self.next = (self.next + 1) % window_size;", "self.next = (self.next + 1).min(window_size - 1);")
    breaks("peek counts one strike less than check",
           "strikes: strikes + 1,", "strikes,")
    breaks("a scope that is used again gets another one's ring",
           "self.scopes[at..].rotate_left(1);", "self.scopes[at..].rotate_left(0);")
    breaks("the scope that was used last is forgotten first",
           "self.scopes.remove(0);", "self.scopes.pop();")
    breaks("reset leaves the scopes",
           "self.whole = Rings::default();\n        self.scopes.clear();", "self.whole = Rings::default();")
    breaks("a glob wins over a plain name",
           "entries.iter().filter(|entry| !entry.0.is_glob()).find(fitting)",
           "entries.iter().filter(|entry| entry.0.is_glob()).find(fitting)", "config.rs")
    breaks("a limit's reason is not told to the model",
           "reason: place.limit.reason().map(str::to_owned),", "reason: None,")

with part("identical_request", "identical_request.rs") as breaks:
    breaks("the window is a moment longer", "now.millis_since(*time) >= window", "now.millis_since(*time) > window")
    breaks("fires one request late", "self.forget_oldest();\n        }\n        RequestCount { count, fires: count >= config.threshold() }",
           "self.forget_oldest();\n        }\n        RequestCount { count, fires: count > config.threshold() }")
    breaks("takes back the newest attempt, whichever was meant",
           ".rposition(|time| *time == at)", ".rposition(|time| *time >= at || *time <= at)")
    breaks("nothing is taken back", "times.remove(position);", "times.get(position);")
    breaks("attempts of one request grow without bound",
           "if times.len() >= config.most() as usize {", "if times.len() == usize::MAX {")
    breaks("different requests grow without bound", "self.attempts.pop_lru()", "self.attempts.peek_lru()")
    breaks("a known request pushes another one out",
           "if !self.attempts.contains(&key) && self.attempts.len() >= self.max_requests {",
           "if self.attempts.len() >= self.max_requests {")
    breaks("attempts of all requests together grow without bound",
           "while self.total > max_total &&", "while self.total > max_total.saturating_mul(9) &&")
    breaks("what was taken back fills the memory", "            self.total -= 1;\n", "")
    breaks("a large threshold is never reached",
           "if self.threshold > Self::MAX_COUNT { self.threshold } else { Self::MAX_COUNT }", "Self::MAX_COUNT",
           "config.rs")
    breaks("the delay has no limit", ".min(Self::MAX_DELAY_MILLIS)", ".max(0)")
    breaks("a threshold of 1 is accepted", "if !(2..=Self::MAX_THRESHOLD)", "if !(1..=Self::MAX_THRESHOLD)",
           "config.rs")

with part("entropy", "entropy.rs") as breaks:
    breaks("0.25 is a loop", "if score < config.loop_below {", "if score <= config.loop_below {")
    breaks("0.50 is no warning", "} else if score <= config.warn_up_to {", "} else if score < config.warn_up_to {")
    breaks("one decision too few is looked at",
           "while self.window.len() > config.window_size.max(1) as usize {",
           "while self.window.len() >= config.window_size.max(2) as usize {")
    breaks("the input always counts",
           "decision.tool_input.filter(|_| config.include_input)", "decision.tool_input.filter(|_| true)")
    breaks("the intent does not count",
           "Fingerprint::of_bytes(b\"intent\", decision.intent.as_bytes())",
           "Fingerprint::of_bytes(b\"intent\", b\"\")")
    breaks("the status does not count",
           "decision.status.as_str().as_bytes()].concat()", "b\"\".as_slice()].concat()")
    breaks("a difference of just 0.3 is doubted", "> Self::DISCREPANCY", ">= Self::DISCREPANCY")
    breaks("an agent's own score that is too low is believed",
           "four_decimals((reported - score).abs())", "four_decimals(reported - score)")
    breaks("the alert names the rarest decision",
           "self.window.iter().max_by_key(|entry| count(entry))?",
           "self.window.iter().min_by_key(|entry| count(entry))?")
    breaks("one alert per message", "(false, Some(alert)) =>", "(_, Some(alert)) =>")
    breaks("recovery is not announced", "(true, None) => Some(EntropyEvent::Recovered(score)),", "")
    breaks("two decimals", "(number * 10_000.0).round() / 10_000.0", "(number * 100.0).round() / 100.0")
    breaks("a warning threshold below the loop's is accepted",
           "if warn_up_to < loop_below {", "if warn_up_to < loop_below && loop_below > 1.0 {", "config.rs")

with part("semantic", "semantic.rs") as breaks:
    breaks("a similarity just at the threshold fires",
           "if similarity > config.threshold {", "if similarity >= config.threshold {")
    breaks("an hour is not yet too old",
           "now.millis_since(heard.at) >= config.ttl_millis", "now.millis_since(heard.at) > config.ttl_millis")
    breaks("one similar predecessor is a loop",
           "(_, 2..) => Some(Severity::Loop),",
           "(_, 1..) => Some(Severity::Loop),")
    breaks("changed results do not matter",
           "usize::from(heard.results == delta.results)", "usize::from(heard.results | 1 != 0)")
    breaks("page 3 is page 4", "if heard.names == names {", "if heard.names.len() == names.len() {")
    breaks("one delta too many is kept",
           "while self.history.len() >= config.size.max(1) as usize {",
           "while self.history.len() > config.size as usize {")
    breaks("the distance counts in full", "(1.0 - distance / 2.0)", "(1.0 - distance)")
    breaks("the last similarity is told, not the largest",
           "reading.max_similarity = reading.max_similarity.max(similarity);", "reading.max_similarity = similarity;")
    breaks("vectors of different lengths are compared",
           "if a.len() != b.len() {\n        return 0.0;\n    }", "")
    breaks("a threshold of 0 is accepted",
           "if !(threshold > 0.0 && threshold <= 1.0) {", "if !(threshold >= 0.0 && threshold <= 1.0) {", "config.rs")

with part("names", "names.rs") as breaks:
    breaks("quoted names tell nothing apart", "(None, '\"' | '`') =>", "(None, '`') =>")
    breaks("ids tell nothing apart", "word.contains(['/', '_', '#', '@', '\\\\'])", "word.contains(['/', '\\\\'])")
    breaks("people tell nothing apart", "if is_proper || turns_round(&lower) {", "if turns_round(&lower) {")
    breaks("on is off", "if is_proper || turns_round(&lower) {", "if is_proper {")
    breaks("don't is do", 'word.ends_with("n\'t") || TURNS.contains(&word)', "TURNS.contains(&word)")
    breaks("the first word of a sentence is a name", "let is_proper = !starts && ", "let is_proper = ")
    breaks("to ask about more is to ask the same",
           "has_all(self, other) && has_all(other, self)", "has_all(self, other)")

# ── Redundancy, kind by kind ─────────────────────────────────────────────────────────────────────────────────────────

with part("repeat", "redundancy/repeat.rs") as breaks:
    breaks("fires at the fourth", '"repeat", Kind::Repeat, 2, 3)', '"repeat", Kind::Repeat, 2, 4)')
    breaks("warns at the third", '"repeat", Kind::Repeat, 2, 3)', '"repeat", Kind::Repeat, 3, 3)')
    breaks("moving about is a repeat at once", '"move", Kind::Repeat, 4, 6)', '"move", Kind::Repeat, 2, 3)')
    breaks("moving on the spot is never a repeat", '"move", Kind::Repeat, 4, 6)', '"move", Kind::Repeat, 4, 60)')
    breaks("the same write with another answer is news",
           "Sight::Other if leaves_the_same(window, now) => Sight::Same,", "")
    breaks("any call with another answer is a repeat",
           "Sight::Other if leaves_the_same(window, now) => Sight::Same,",
           "Sight::Other if !now.outcome.facts.failed => Sight::Same,")
    breaks("a write that fails in another way is a repeat",
           "&& puts_a_text && !now.outcome.facts.failed", "&& puts_a_text")
    breaks("a move that shows the same long page again may go on",
           "} else if now.does.moves && facts.brief {", "} else if now.does.moves {")
    breaks("a passing failure in between restarts the count",
           "() if print.call != now.call || print.outcome.facts.transient => Sight::Unrelated,\n"
           "        () if print.outcome.answers_as",
           "() if print.call != now.call => Sight::Unrelated,\n        () if print.outcome.answers_as")
    breaks("another result is the same result",
           "() if print.outcome.answers_as(&now.outcome) => Sight::Same,",
           "() if print.outcome.class == now.outcome.class => Sight::Same,")
    breaks("the same lines in another order are another answer",
           "self.result == other.result || (self.lines != 0 && self.lines == other.lines)",
           "self.result == other.result", "outcome.rs")
    breaks("lines are the same whatever they say",
           "sum = sum.wrapping_add(hash_of_a_line(hash_bytes(&text[start..end])));", "sum = sum.wrapping_add(1);",
           "outcome/lines.rs")
    breaks("another way to ask excuses asking again",
           "(print.may_change(now) && !print.is_variation_of(now))", "print.may_change(now)")
    breaks("whatever the same tool did excuses nothing",
           "            && self.tool == other.tool\n            && self.outcome.answers_as(&other.outcome)\n",
           "            && self.tool == other.tool\n", "redundancy/print.rs")
    breaks("a look that changes says nothing about an action",
           " || (acts && window.shows_a_change(print))", "")
    breaks("a look that shows the same says that an action did something",
           "            && !before().any(|print| print.equals(look))\n", "", "redundancy/window.rs")
    breaks("who is asked the same again may not look again", " || window.is_asked_again(print);", ";", "redundancy.rs")
    breaks("who reports without a look was asked again",
           "reported && turn.any(|print| print.form == Form::Call)", "reported", "redundancy/window.rs")
    breaks("who looks without a report was asked again",
           "let reported = turn.next().is_some_and(|print| print.form == Form::Text);", "let reported = true;",
           "redundancy/window.rs")

with part("failing_repeat", "redundancy/repeat.rs") as breaks:
    breaks("fires at the fourth", 'FailingRepeat, 2, 3)', 'FailingRepeat, 2, 4)')
    breaks("words from outside excuse a failure",
           "window.earlier_despite_words(now).filter(", "window.earlier(now).filter(")
    breaks("every failure is the same failure",
           "() if print.outcome.facts.failed && print.outcome.class == now.outcome.class =>",
           "() if print.outcome.facts.failed =>")
    breaks("a success in between does not restart the count",
           "print.outcome.class == now.outcome.class => Sight::Same,\n            () => Sight::Other,",
           "print.outcome.class == now.outcome.class => Sight::Same,\n            () => Sight::Unrelated,")
    breaks("a passing failure in between restarts the count",
           "() if print.call != now.call || print.outcome.facts.transient => Sight::Unrelated,\n"
           "            () if print.outcome.facts.failed",
           "() if print.call != now.call => Sight::Unrelated,\n            () if print.outcome.facts.failed")
    breaks("changes excuse a failure for ever", 'FailingRepeat, 4, 5)', 'FailingRepeat, 4, 50)')
    breaks("four test runs with an edit before each are a loop", 'FailingRepeat, 4, 5)', 'FailingRepeat, 3, 4)')
    breaks("a poll that fails for good goes on waiting",
           "waits && !self.failed_for_good()", "waits", "redundancy/print.rs")
    breaks("an edit mends a missing command",
           "!now.outcome.facts.environmental && !failed_edit && print.may_change(now)",
           "!failed_edit && print.may_change(now)")
    breaks("an edit that fails is helped by other edits",
           "!now.outcome.facts.environmental && !failed_edit && print.may_change(now)",
           "!now.outcome.facts.environmental && print.may_change(now)")
    breaks("a commit that fails is not helped by edits",
           "let failed_edit = now.is_write() && !now.does.command;", "let failed_edit = now.is_write();")
    breaks("a bisection is stagnation",
           "|print: &Print| print.again && print.fresh_write && print.does.command;", "|_: &Print| false;")
    breaks("a command that is answered anew has changed nothing", "        || (print.again && goes_on())\n", "",
           "redundancy.rs")
    breaks("a command that is answered as before has changed something",
           "!facts.acknowledged && !window.has_step(print)", "!facts.acknowledged", "redundancy.rs")

with part("stale_poll", "redundancy/repeat.rs") as breaks:
    breaks("warns one early", "StalePoll, 10, 20)", "StalePoll, 9, 20)")
    breaks("fires one late", "StalePoll, 10, 20)", "StalePoll, 10, 21)")
    breaks("fires one late after a final answer", "StalePoll, 3, 5)", "StalePoll, 3, 6)")
    breaks("fires one early after a final answer", "StalePoll, 3, 5)", "StalePoll, 3, 4)")
    breaks("a final answer is waited on", "if ended { FINAL_POLL } else { POLL }", "if ended { POLL } else { FINAL_POLL }")
    breaks("a poll is not known by its name",
           "self.does.effect == Some(Effect::Poll) || self.outcome.facts.in_progress",
           "self.outcome.facts.in_progress", "redundancy/print.rs")
    breaks("a poll is not known by its answer",
           "self.does.effect == Some(Effect::Poll) || self.outcome.facts.in_progress",
           "self.does.effect == Some(Effect::Poll)", "redundancy/print.rs")
    breaks("waiting and asking in turns is a cycle",
           "() if unit.clone().any(Print::is_waiting) && !unit.clone().any(does_something) => WAITING_CYCLE,", "",
           "redundancy/cycle.rs")
    breaks("what has not come yet is final",
           "no new (?:output|messages?|e?mails?|events?|", "no new (?:output|events?|", "outcome.rs")

with part("unknown_tool", "redundancy/repeat.rs") as breaks:
    breaks("fires at the fourth", "UnknownTool, 2, 3)", "UnknownTool, 2, 4)")
    breaks("warns at the third", "UnknownTool, 2, 3)", "UnknownTool, 3, 3)")
    breaks("one missing tool counts for another",
           "() if print.form != Form::Call || print.tool != now.tool =>", "() if print.form != Form::Call =>")
    breaks("the arguments matter",
           "print.tool != now.tool => Sight::Unrelated,\n            () if print.outcome.facts.unknown_tool =>",
           "print.call != now.call => Sight::Unrelated,\n            () if print.outcome.facts.unknown_tool =>")
    breaks("an answer in between does not restart the count",
           "print.tool != now.tool => Sight::Unrelated,\n"
           "            () if print.outcome.facts.unknown_tool => Sight::Same,\n            () => Sight::Other,",
           "print.tool != now.tool => Sight::Unrelated,\n"
           "            () if print.outcome.facts.unknown_tool => Sight::Same,\n            () => Sight::Unrelated,")
    breaks("each call is a loop of its own",
           'b"unknown tool", &now.tool.to_le_bytes()', 'b"unknown tool", &now.index.to_le_bytes()')
    breaks("a tool that may not be used is not seen",
           "(?:denied|disabled)\",\n    ),\n    (\n        Signal::Prevented,",
           "(?:disabled)\",\n    ),\n    (\n        Signal::Prevented,", "outcome.rs")

with part("retry", "redundancy/repeat.rs") as breaks:
    breaks("back-off becomes a loop", "Kind::Retry, 3, usize::MAX)", "Kind::Retry, 3, 8)")
    breaks("reported at the second", "Kind::Retry, 3, usize::MAX)", "Kind::Retry, 2, usize::MAX)")
    breaks("reported at the fourth", "Kind::Retry, 3, usize::MAX)", "Kind::Retry, 4, usize::MAX)")
    breaks("other calls count too",
           "() if print.call != now.call => Sight::Unrelated,\n            () if print.outcome.facts.transient",
           "() if print.form != Form::Call => Sight::Unrelated,\n            () if print.outcome.facts.transient")
    breaks("an answer in between does not restart the count",
           "() if print.outcome.facts.transient => Sight::Same,\n            () => Sight::Other,",
           "() if print.outcome.facts.transient => Sight::Same,\n            () => Sight::Unrelated,")
    breaks("a passing failure is one for good",
           "self.outcome.facts.failed && !self.outcome.facts.transient && self.outcome.class != 0",
           "self.outcome.facts.failed && self.outcome.class != 0", "redundancy/print.rs")
    breaks("a cycle round a passing failure is a loop",
           "if transient || !acts {", "if !acts {", "redundancy/cycle.rs")

with part("cycle", "redundancy/cycle.rs") as breaks:
    breaks("fires at the fourth copy", "Kind::Cycle, 2, 3)", "Kind::Cycle, 2, 4)")
    breaks("warns at the third copy", "Kind::Cycle, 2, 3)", "Kind::Cycle, 3, 3)")
    breaks("eight steps are too many", "const MAX_PERIOD: usize = 8;", "const MAX_PERIOD: usize = 7;")
    breaks("each copy is found once for every step",
           "if matching % period != 0 && copies < CYCLE.looping {", "if matching % period > period {")
    breaks("a long one is told only at its end",
           "if matching % period != 0 && copies < CYCLE.looping {", "if matching % period != 0 {")
    breaks("one step again and again is a cycle", "(run + 1..=MAX_PERIOD).find_map(", "(2..=MAX_PERIOD).find_map(")
    breaks("one step again and again may become a cycle", "(run + 1..=MAX_PERIOD).any(", "(2..=MAX_PERIOD).any(")
    breaks("moves that are only acknowledged are a cycle",
           "() if unit.clone().any(tells_something) => CYCLE,", "() if acts => CYCLE,")
    breaks("words alone are a cycle", "if transient || !acts {", "if transient {")
    breaks("results do not matter",
           "self.call == other.call && self.outcome.answers_as(&other.outcome)", "self.call == other.call",
           "redundancy/print.rs")
    breaks("its single steps are loops of their own",
           "seen.retain(|finding| !is_told_once(finding));", "", "redundancy.rs")
    breaks("its repeat is told again and again",
           "strongest.filter(|finding| Some(finding.severity) > self.told)",
           "strongest.filter(|finding| Some(finding.severity) > None)", "redundancy.rs")
    breaks("a repeat that was worth a word never becomes a loop",
           "strongest.filter(|finding| Some(finding.severity) > self.told)",
           "strongest.filter(|_| self.told.is_none())", "redundancy.rs")
    breaks("its repeat waits until it is complete",
           "            seen.extend(news);\n", "", "redundancy.rs")
    breaks("of several repeats the weakest is told",
           "is_told_once(finding)).max_by_key(weight)", "is_told_once(finding)).min_by_key(weight)", "redundancy.rs")
    breaks("the repeat of a second one is not told",
           "} else {\n            self.told = None;\n        }\n        findings.append",
           "}\n        findings.append", "redundancy.rs")
    breaks("its repeat is not told again after words from outside",
           "Form::Outside => {\n                self.told = None;\n", "Form::Outside => {\n", "redundancy.rs")
    breaks("a detector that was carried tells its repeat once more",
           "told.save(out);", "told.filter(|_| false).save(out);", "redundancy/carried.rs")
    breaks("a call that fails is told only once",
           "matches!(finding.kind, Kind::Repeat | Kind::Churn)",
           "matches!(finding.kind, Kind::Repeat | Kind::FailingRepeat | Kind::Churn)", "redundancy.rs")
    breaks("a step of a cycle is reported beside the cycle",
           "seen.retain(|finding| !may_be_part_of_cycle(finding) || finding.severity > cycle.severity);", "",
           "redundancy.rs")

with part("sweep", "redundancy/cycle.rs") as breaks:
    breaks("two pages again are a sweep", "const MIN_PAGES: usize = 3;", "const MIN_PAGES: usize = 2;")
    breaks("three pages again are none", "const MIN_PAGES: usize = 3;", "const MIN_PAGES: usize = 4;")
    breaks("only upwards", "later > sooner) || pairs().all(|(later, sooner)| later < sooner)", "later > sooner)")
    breaks("pages in no order are a sweep",
           "if !moves_one_way(&passage[..back.min(passage.len())]) {", "if passage.is_empty() {")
    breaks("a write in between excuses nothing",
           "if print.may_change(now) {\n            break;\n        }\n        if is_page", "if is_page")
    breaks("pages of another list are pages of this one",
           "print.tool == now.tool && print.shape == now.shape", "print.tool == now.tool")
    breaks("polls sweep", "|| now.outcome.facts.failed\n        || now.is_waiting()\n", "|| now.outcome.facts.failed\n")
    breaks("the first number alone tells the order", "(0..4).any(|place|", "(0..1).any(|place|")

with part("churn", "redundancy/churn.rs") as breaks:
    breaks("variations that fail fire one late", "Churn, 2, 3)", "Churn, 2, 4)")
    breaks("a tool that only fails fires one late",
           '"failing_row", Kind::Churn, 3, 4)',
           '"failing_row", Kind::Churn, 3, 5)')
    breaks("a tool that only fails fires one early",
           '"failing_row", Kind::Churn, 3, 4)',
           '"failing_row", Kind::Churn, 2, 3)')
    breaks("one failure from every tool fires one late",
           '"failing_everywhere", Kind::Churn, 4, 5)',
           '"failing_everywhere", Kind::Churn, 4, 6)')
    breaks("one failure from every tool fires one early",
           '"failing_everywhere", Kind::Churn, 4, 5)',
           '"failing_everywhere", Kind::Churn, 3, 4)')
    breaks("one answer fires one late",
           '"one_answer", Kind::Churn, 3, 4)',
           '"one_answer", Kind::Churn, 3, 5)')
    breaks("one answer fires one early",
           '"one_answer", Kind::Churn, 3, 4)',
           '"one_answer", Kind::Churn, 2, 3)')
    breaks("the same change fires one late",
           '"same_change", Kind::Churn, 3, 4)',
           '"same_change", Kind::Churn, 3, 5)')
    breaks("the same change fires one early",
           '"same_change", Kind::Churn, 3, 4)',
           '"same_change", Kind::Churn, 2, 3)')
    breaks("the same change to many files is one change", "            && print.does.places == now.does.places\n", "")
    breaks("a change that was looked at is the same change", "|print| !again(print),", "|_| false,")
    breaks("the same question fires one late",
           '"same_question", Kind::Churn, 3, 4)',
           '"same_question", Kind::Churn, 3, 5)')
    breaks("the same question fires one early",
           '"same_question", Kind::Churn, 3, 4)',
           '"same_question", Kind::Churn, 2, 3)')
    breaks("different questions with one answer are churn",
           "likeness(&print.words, &now.words) >= 0.8",
           "likeness(&print.words, &now.words) >= 0.0")
    breaks("the names in a question do not matter",
           "likeness_of_names(&print.words, &now.words) >= 0.8",
           "likeness_of_names(&print.words, &now.words) >= 0.0")
    breaks("another tool's success ends a row of failures",
           "() if print.tool != now.tool => Sight::Unrelated,\n            () if same_failure", "() if same_failure")
    breaks("a tool's own success does not end its row of failures",
           "() if same_failure(print, now) => Sight::Same,\n            () => Sight::Other,",
           "() if same_failure(print, now) => Sight::Same,\n            () => Sight::Unrelated,")
    breaks("variations of a variation are other attempts", "near(now) || variation.get().is_some_and(near)", "near(now)")
    breaks("trouble with the environment is soon forgotten",
           "if now.outcome.facts.environmental { LONG_REACH } else { REACH }", "REACH")
    breaks("a broken tool is found one late",
           '"tool_down", Kind::Churn, 3, 3)',
           '"tool_down", Kind::Churn, 3, 4)')
    breaks("looking for commands that are not there is a broken tool",
           "() if print.outcome.answers_as(&now.outcome) => Sight::Same,\n            () => Sight::Other,",
           "() if same_failure(print, now) => Sight::Same,\n            () => Sight::Other,")
    breaks("variations are looked for too far back", "const REACH: usize = 12;", "const REACH: usize = 60;")
    breaks("a command that was put aside fires one late",
           '"put_aside", Kind::Churn, 3, 4)',
           '"put_aside", Kind::Churn, 3, 5)')
    breaks("a command that was put aside fires one early",
           '"put_aside", Kind::Churn, 3, 4)',
           '"put_aside", Kind::Churn, 2, 3)')
    breaks("any commands that were put aside fire one late",
           '"aside_row", Kind::Churn, 4, 5)',
           '"aside_row", Kind::Churn, 4, 6)')
    breaks("any commands that were put aside fire one early",
           '"aside_row", Kind::Churn, 4, 5)',
           '"aside_row", Kind::Churn, 3, 4)')
    breaks("looks that were put aside and something else fire one late",
           '"all_aside", Kind::Churn, 3, 3)',
           '"all_aside", Kind::Churn, 3, 4)')
    breaks("servers that are started are looks that hang",
           "print.tool == now.tool && looks(print)),", "print.tool == now.tool),")
    breaks("who waits longer each time does not wait",
           ".filter(|_| now.does.effect.is_none());", ";")
    breaks("looks that were put aside are looked for too far back",
           "const AT_ONCE: usize = 4;", "const AT_ONCE: usize = 5;")
    breaks("searches that find nothing fire", '"nothing_found", Kind::Churn, 6, usize::MAX)', '"nothing_found", Kind::Churn, 6, 10)')
    breaks("a search that found something does not end a row of others",
           "if finds_nothing(print) { Sight::Same } else { Sight::Other }", "Sight::same_if(finds_nothing(print))")
    breaks("what another tool found ends a row of searches",
           "if print.tool == now.tool { sight(print) } else { Sight::Unrelated }", "sight(print)")
    breaks("a search that failed found nothing",
           "if facts.failed { has_no_match } else { facts.empty }", "has_no_match || facts.empty")
    breaks("whatever answers nothing searches",
           "let searches = now.does.effect == Some(Effect::Read) && !now.does.notes;",
           "let searches = !now.does.notes;")
    breaks("a search that says what it did not find found something",
           "nothing(?: (?:was )?found(?: for .{0,80})?)?|", "nothing(?: found)?|", "outcome.rs")
    breaks("a question that was answered in another way is the same question",
           "                        && !moved_on\n", "")
    breaks("notes are questions", "|| now.is_waiting() || now.does.notes {", "|| now.is_waiting() {")
    breaks("a success of the very same call does not restart the count",
           "() if print.call == now.call && !same_failure(print, now) => Sight::Other,", "")
    breaks("who tries one number after the other varies a call", "if counts_on(window, now) {",
           "if counts_on(window, now) && now.tool == 0 {")
    breaks("who tries one number after the other may go on for ever",
           '"counting_on", Kind::Churn, 6, 10)', '"counting_on", Kind::Churn, 6, 100)')
    breaks("numbers at random are a count", "a.abs_diff(b) == 1)", "a.abs_diff(b) >= 1)")
    breaks("an edit that does not fit is an attempt at each of many",
           "&& !facts.failed_plainly && !now.is_write();", "&& !facts.failed_plainly;")
    breaks("a few words answer no more than long ones",
           "() if facts.brief && !last.is_some_and(is_one) => FEW_WORDS,", "")
    breaks("one thing that is asked about in many ways is many",
           "() if facts.brief && !last.is_some_and(is_one) => FEW_WORDS,", "() if facts.brief => FEW_WORDS,")

with part("oscillation", "redundancy/oscillation.rs") as breaks:
    breaks("fires at the third return", "Oscillation, 1, 2)", "Oscillation, 1, 3)")
    breaks("a change of mind is a loop", "Oscillation, 1, 2)", "Oscillation, 1, 1)")
    breaks("one return is not worth a word", "Oscillation, 1, 2)", "Oscillation, 2, 2)")
    breaks("the place does not matter", "&& print.does.places == now.does.places", "")
    breaks("the same content again is a return", "let back = same && between;", "let back = same;")
    breaks("an edit that goes on from the last one is a return",
           "print.does.before == now.does.after && print.does.after == now.does.before",
           "print.does.before == now.does.after || print.does.after == now.does.before")
    breaks("a write that failed brings something back",
           "print.is_write() && !print.outcome.facts.failed && print.does.after != 0",
           "print.is_write() && print.does.after != 0")
    breaks("there and back are two loops",
           "[before.min(now.does.after), before.max(now.does.after)]", "[before, now.does.after]")
    breaks("whole contents there and back are two loops",
           "0 => stood.find(|content| *content != now.does.after).unwrap_or(0),", "0 => stood.count() as u64 & 0,")
    breaks("a content that is written twice is another loop",
           "stood.find(|content| *content != now.does.after)", "stood.next()")

with part("monologue", "redundancy/monologue.rs") as breaks:
    breaks("the same words fire one late", "Monologue, 2, 3)", "Monologue, 2, 4)")
    breaks("like words fire one late", '"alike_words", Kind::Monologue, 3, 4)', '"alike_words", Kind::Monologue, 3, 5)')
    breaks("like words fire one early", '"alike_words", Kind::Monologue, 3, 4)', '"alike_words", Kind::Monologue, 2, 3)')
    breaks("the same words in another order are other words",
           "speaks_alike(window, print, now, 0.9)",
           "speaks_alike(window, print, now, 1.1)")
    breaks("an apology ends a monologue", '"talks_on", Kind::Monologue, 2, 2)', '"talks_on", Kind::Monologue, 2, 9)')
    breaks("code is more talk", "if now.carries_code { 0 } else { REACH }", "REACH")
    breaks("another speaker goes on with a monologue", "print.talks && print.speaker == speaker", "print.talks")
    breaks("a canned reply fires one late", '"canned_reply", Kind::Monologue, 3, 4)', '"canned_reply", Kind::Monologue, 3, 5)')
    breaks("a canned reply fires one early", '"canned_reply", Kind::Monologue, 3, 4)', '"canned_reply", Kind::Monologue, 2, 3)')
    breaks("any two texts are alike", "speaks_alike(window, print, now, 0.6)", "speaks_alike(window, print, now, 0.0)")
    breaks("what another agent says counts",
           "print.form == Form::Text && print.speaker == now.speaker && print.call == now.call",
           "print.form == Form::Text && print.call == now.call")
    breaks("two words are enough to be alike", "const MIN_WORDS: u32 = 4;", "const MIN_WORDS: u32 = 2;")
    breaks("an answer with code is no work", "        && !print.carries_code\n        && !now.carries_code\n", "")
    breaks("whoever has a turn is not listened to",
           "&& print.speaker == now.speaker\n        && now.answers != 0",
           "&& now.answers != 0")
    breaks("to be told nothing is to be told the same", "        && now.answers != 0\n", "")
    breaks("new results in between do not matter",
           "print.form == Form::Call && print.news",
           "print.form == Form::Call && false")
    breaks("no reply is one reply", "        && now.outcome.result != 0\n", "")
    breaks("like words about another thing are a monologue",
           "        && window.vocabulary.likeness_of_names(&print.words, &now.words) >= 0.5\n",
           "")
    breaks("a writer who is told to go on does nothing", "!last.terse && (last.outcome.facts.failed || uses_tools())", "!last.terse",
           "redundancy/window.rs")
    breaks("what an agent says to itself is a reply",
           "!last.terse && last.speaker != speaker", "!last.terse", "redundancy/window.rs")
    breaks("code that was refused is work", " || print.failed_for_good())", ")")
    breaks("the same refusal again is news", " && !self.window.is_only_refusal(&print);", ";", "redundancy.rs")
    breaks("another refusal is no news",
           "&& refusals().all(|print| print.outcome.class == text.outcome.class)", "&& refusals().count() < 99",
           "redundancy/window.rs")

with part("chant", "redundancy/chant.rs") as breaks:
    breaks("a refrain is a chant", "const MIN_COPIES: usize = 5;", "const MIN_COPIES: usize = 4;")
    breaks("five copies are none", "const MIN_COPIES: usize = 5;", "const MIN_COPIES: usize = 6;")
    breaks("a short refrain is a chant", "const MIN_LENGTH: usize = 160;", "const MIN_LENGTH: usize = 60;")
    breaks("five times one word is a chant",
           "const MIN_COPIES_OF_FEW_WORDS: usize = 12;", "const MIN_COPIES_OF_FEW_WORDS: usize = 5;")
    breaks("open code is a chant",
           'text.as_bytes(), "```").count() % 2 == 1 {',
           'text.as_bytes(), "```").count() % 2 == 2 {')
    breaks("numbers are a chant", "if words == 0 || table ||", "if table ||")
    breaks("a table is a chant", "if words == 0 || table ||", "if words == 0 ||")
    breaks("where the text was cut matters", "&least_rotation(unit))", "unit)")
    breaks("a long unit is not seen", "const TAIL: usize = 4_096;", "const TAIL: usize = 512;")
    breaks("line breaks matter", "if byte.is_ascii_whitespace() { b' ' } else { byte }", "byte")
    breaks("what stands before the chant matters",
           "best = Some((period, length));", "best = (length == text.len()).then_some((period, length));")
    breaks("chants are not looked for",
           "if let Some(chant) = step.thought.and_then(Chant::of) {",
           "if let Some(chant) = step.thought.filter(|_| step.tool.is_none()).and_then(Chant::of) {", "redundancy.rs")

# ── Redundancy: counting and vetoes ──────────────────────────────────────────────────────────────────────────────────

with part("counting", "redundancy/sighting.rs") as breaks:
    breaks("loops are warnings", "if count >= self.looping {", "if count > self.looping {")
    breaks("a fan-out inside one round counts in full", "Sight::Same if print.round != round => {", "Sight::Same => {")
    breaks("a change inside the round of an occurrence depends on the order",
           "over = beside().any(&cut);", "over = false;")
    breaks("another answer does not restart a count", "Sight::Other => over = true,", "Sight::Other => {}")
    breaks("of many occurrences only the first few are evidence", "None => many.push(step),", "None => {}")
    breaks("the weakest sighting is reported",
           "if weight(&next) > weight(&best) { next }", "if weight(&next) < weight(&best) { next }")
    breaks("the first step is not where it started",
           "onset: self.evidence.first().copied()", "onset: self.evidence.last().copied()")
    breaks("the score says nothing",
           "(self.count as f64 / (2.0 * self.rule.looping.max(1) as f64)).min(1.0)", "1.0")
    breaks("the window holds one step more",
           "if self.prints.len() >= capacity\n", "if self.prints.len() > capacity\n", "redundancy/window.rs")
    breaks("a round that is played again stays",
           "self.prints.back().filter(|print| print.round >= round)",
           "self.prints.back().filter(|print| print.round > round)", "redundancy/window.rs")
    breaks("the order of parallel calls matters", "if size > 1 {", "if size > 99 {", "redundancy/window.rs")
    breaks("reset remembers", "self.window.clear();\n", "", "redundancy.rs")
    breaks("reset remembers the frame", "self.frame.clear();\n", "", "redundancy.rs")
    breaks("steps that never ran are not numbered",
           "let index = self.next;\n        self.next += 1;",
           "let index = self.next;\n        self.next += usize::from(!outcome.facts.prevented);", "redundancy.rs")

with part("vetoes", "redundancy/print.rs") as breaks:
    breaks("any step may have changed something",
           "if !self.fresh_write || self.call == reader.call {", "if self.call == reader.call {")
    breaks("a write elsewhere excuses a read",
           "|| !self.does.places.apart_from(&reader.does.places)", "|| self.does.places != reader.does.places")
    breaks("tests of one file are not touched by a write to another",
           "let narrow = !reader.does.broad && matches!", "let narrow = matches!")
    breaks("a change of folder shows in nothing",
           "self.does.moves || !narrow ||", "!narrow ||")
    breaks("a write that failed excuses",
           "facts.known && !facts.failed && !facts.maybe_failed",
           "facts.known && !facts.maybe_failed", "redundancy.rs")
    breaks("a write that may have failed excuses",
           "facts.known && !facts.failed && !facts.maybe_failed", "facts.known && !facts.failed", "redundancy.rs")
    breaks("a write that has not answered excuses",
           "facts.known && !facts.failed && !facts.maybe_failed",
           "!facts.failed && !facts.maybe_failed", "redundancy.rs")
    breaks("the same write again excuses",
           "print.news = !print.again && is_answered_well(print);", "print.news = is_answered_well(print);",
           "redundancy.rs")
    breaks("an unknown effect excuses nothing",
           "matches!(print.does.effect, Some(Effect::Write) | None)",
           "matches!(print.does.effect, Some(Effect::Write))", "redundancy.rs")
    breaks("a read excuses",
           "matches!(print.does.effect, Some(Effect::Write) | None)",
           "!matches!(print.does.effect, Some(Effect::Poll))", "redundancy.rs")
    breaks("a move that failed excuses",
           "(print.does.moves && !facts.failed && !been_there())", "(print.does.moves && !been_there())",
           "redundancy.rs")
    breaks("a page that was shown before is a new place",
           "(print.does.moves && !facts.failed && !been_there())", "(print.does.moves && !facts.failed)",
           "redundancy.rs")
    breaks("a refused call counts",
           "if outcome.facts.prevented && step.tool.is_some() {", "if outcome.facts.prevented && step.tool.is_none() {",
           "redundancy.rs")
    breaks("new words from outside excuse nothing",
           "if !heard {\n                    self.window.start_afresh(index);\n                }\n",
           "", "redundancy.rs")
    breaks("a canned message excuses", "if !heard {", "if index > 0 {", "redundancy.rs")
    breaks("a compaction excuses nothing",
           "Form::Compaction => self.window.start_afresh(index),", "Form::Compaction => {}", "redundancy.rs")
    breaks("a new reply to a text excuses nothing",
           "if heard {\n                    self.window.start_afresh(index + 1);\n                }\n",
           "", "redundancy.rs")
    breaks("a canned reply to a text excuses",
           "|reply| !self.window.has_reply(reply) && !self", "|_: u128| !self", "redundancy.rs")
    breaks("a reader that brings a tale of a failure failed",
           "((reads && !is_own) || (is_servers && !facts.transient))", "is_servers && !facts.transient")
    breaks("a reader never fails", "((reads && !is_own) ||", "(reads ||")
    breaks("what a server says is a failure of the tool that asks",
           " || (is_servers && !facts.transient)) {", ") {")
    breaks("whatever curl says is said by a server", "is_body && step.status", "step.status")
    breaks("what cannot be clicked passes", "facts.transient && !waits_for_an_element(step);", "facts.transient;")
    breaks("a debugger stands at one address", "print.does.moves && steps_on(canonical)",
           "print.does.moves && steps_on(&canonical[..0])")
    breaks("whatever is said from outside counts without its numbers",
           "if form == Form::Outside && is_of_a_harness(text) {", "if form == Form::Outside {")
    breaks("what a harness counts is news", "if form == Form::Outside && is_of_a_harness(text) {", "if false {")
    breaks("any tag is a harness's", "is_name && HARNESS.iter().any(|word| tag_says(word)) && closes()",
           "is_name && closes()")
    breaks("words behind the tag are the harness's", "HARNESS.iter().any(|word| tag_says(word)) && closes()",
           "HARNESS.iter().any(|word| tag_says(word))")

# ── What follows from a finding ──────────────────────────────────────────────────────────────────────────────────────

with part("frame", "redundancy/frame.rs") as breaks:
    breaks("two kinds of call prove a frame", "const KINDS: usize = 3;", "const KINDS: usize = 2;")
    breaks("what only deeds change is a frame", "&& self.idle_changes >= IDLE_CHANGES", "")
    breaks("what goes up and down is a frame", "if self.is_member { self.moved != [0; 2] } else { !goes_one_way }", "self.is_member && self.moved != [0; 2]")
    breaks("any number of an object is a frame", "if self.is_member { self.moved != [0; 2] } else { !goes_one_way }", "!goes_one_way")
    breaks("what some objects lack is a frame", "self.tells |= self.is_member && round", "self.tells |= false && round")
    breaks("what two calls count is a frame", "const CALLS: usize = 3;", "const CALLS: usize = 2;")
    breaks("what deeds count is a frame", "&& self.idle_changes > 0", "")
    breaks("what counts from a later answer on is a frame", "counts: is_first,", "counts: true,")
    breaks("what grows by leaps counts answers", "number > from && (number - from) as usize <= steps", "number > from && steps > 0")
    breaks("a number that was asked for counts answers", "u16::from(is_other && answer.looks && !seen.asked)", "u16::from(is_other && answer.looks)")
    breaks("a number alone is no answer", "line.is_a_counter() && line.beside >= BESIDE", "line.is_a_counter()")
    breaks("an answer that only counts is one", "edges.seen().any(is_more) || only_counts", "edges.seen().any(is_more) || only_counts && false")
    breaks("an object has no members", "Self::of_members(text).unwrap_or_else(|| Self::of_lines(text))", "Self::of_lines(text)", "redundancy/frame/spans.rs")
    breaks("what changes now and then is a frame",
           "let is_regular = self.changes > 0 && stays.saturating_mul(CHANGES_FOR_ONE) <= self.changes;",
           "let is_regular = self.changes > 0; let _ = (stays, CHANGES_FOR_ONE);")
    breaks("how a call went is a frame", "        !self.tells\n            && is_regular", "        is_regular")
    breaks("nothing is ever taken off", "seen.shape != 0 && !seen.tells && self.known(seen.shape).is_some_and(Line::changes_for_nothing)", "seen.shape == 1")
    breaks("what was answered before the frame was known does not count", "            if is_wiser {", "            if is_wiser && false {")
    breaks("a frame alone is no answer", "        if self.leaves_something(&edges) {", "        if edges.count > 0 {")

with part("remark", "remark.rs") as breaks:
    breaks("an explanation is part of the call", "Part::Reason => self.has_target,", "Part::Reason => false,")
    breaks("a verdict has no reasons", "Part::Reason => self.has_target,", "Part::Reason => self.has_deed,")
    breaks("a description is part of the command", "Part::BesideCommand => self.has_command,", "Part::BesideCommand => false,")
    breaks("a ticket has no description", "Part::BesideCommand => self.has_command,", "Part::BesideCommand => self.has_deed,")
    breaks("a name for what is clicked is part of the click", "Part::BesideSpot => self.has_spot,", "Part::BesideSpot => false,")
    breaks("the call's own id is part of it", "Part::Label => self.has_deed,", "Part::Label => false,")

with part("heading", "outcome/heading.rs") as breaks:
    breaks("any heading introduces what the tool says", "LABELS.iter().any(|label| is_as(label))", "!name.is_empty() || LABELS.iter().any(|label| is_as(label))")
    breaks("a label hides a failure", "LABELS.iter().any(|label| is_label(label)) { rest }", "LABELS.iter().any(|label| is_label(label)) && rest.is_empty() { rest }")

with part("strikes", "strikes.rs") as breaks:
    breaks("the same count again is progress", "finding.count < face.count", "finding.count <= face.count")
    breaks("one common step makes two loops one", ".take(2).count() == 2", ".take(1).count() == 1")
    breaks("rules that see the same steps see two loops",
           "|| finding.evidence.iter().filter(|step| self.evidence.contains(step)).take(2).count() == 2", "")
    breaks("repeats that go on at a time are two loops",
           "            || overlap(&self.evidence, &finding.evidence)\n", "")
    breaks("a count that lost its oldest steps is progress", "let progress = !goes_on && face", "let progress = face")
    breaks("progress forgives everything",
           "self.strikes = self.strikes.saturating_sub(1);", "self.strikes = 0;")
    breaks("the first finding is a strike already", "} else if is_loop && self.found &&", "} else if is_loop &&")
    breaks("a warning is a strike", "} else if is_loop && self.found &&", "} else if self.found &&")
    breaks("the newest loop is forgotten first", "self.loops.pop_front();", "self.loops.pop_back();")
    breaks("every finding is new", "finding.severity > face.worst", "finding.severity >= face.worst")
    breaks("a warning is treated as a loop",
           "if finding.severity < Severity::Loop || is_between {", "if is_between {", "ladder.rs")
    breaks("a step between two copies is a strike",
           "is_loop && self.found && !finding.is_between_copies() {", "is_loop && self.found {")

with part("ladder", "ladder.rs") as breaks:
    breaks("the last rung does not stay", "self.0[top.min(strikes as usize)]", "self.0[strikes as usize % (top + 1)]")
    breaks("one hint less",
           "Self(vec![Action::Hint, Action::Hint, Action::Throttle",
           "Self(vec![Action::Hint, Action::Throttle")
    breaks("an empty ladder is accepted", "(!rungs.is_empty()).then_some(Self(rungs))", "Some(Self(rungs))")
    breaks("pause has no name", "Self::Throttle, Self::Pause, Self::Reject]\n", "Self::Throttle, Self::Reject]\n")
    breaks("pause is stricter than reject",
           "    Pause,\n    /// Refuse.\n    Reject,",
           "    Reject,\n    /// Refuse.\n    Pause,")

with part("guard", "guard.rs") as breaks:
    breaks("a tool's own limit gives way to progress",
           "(Some(block), _) if block.own_limit => GuardVerdict::blocked_by_sentinel(&block, tool),\n", "")
    breaks("outcomes of the session decide inside of a scope",
           "self.outcomes.as_ref().filter(|_| scope.is_none())", "self.outcomes.as_ref()")
    breaks("a repeat that makes progress is blocked",
           "(None, Some(block)) => GuardVerdict {\n                        allowed: true,",
           "(None, Some(block)) => GuardVerdict {\n                        allowed: false,")
    breaks("a call that was let through is not recorded",
           "rings.admit(tool, call);\n            return verdict;",
           "return verdict;")
    breaks("reset leaves the outcomes",
           "state.sentinel.reset();\n                state.outcomes = None;",
           "state.sentinel.reset();")
    breaks("the reset of one batch item resets the session",
           "state.sentinel.reset_scope(scope);",
           "state.sentinel.reset_scope(scope);\n                state.outcomes = None;")
    breaks("the first hint comes without words", "(action >= Action::Hint)", "(action > Action::Hint)")
    breaks("a warning comes with a hint", "(action >= Action::Hint)", "(action >= Action::Warn)")
    breaks("a scope is ignored",
           "state.check(tool, args, call, self.scope.as_deref())", "state.check(tool, args, call, None)")
    breaks("a known session pushes another one out",
           "if !sessions.contains(&self.key) && sessions.len() >= self.shared.max_sessions_per_shard {",
           "if sessions.len() >= self.shared.max_sessions_per_shard {")
    breaks("sessions grow without bound", "sessions.pop_lru();", "sessions.peek_lru();")
    breaks("a blocked call is not counted",
           "GuardVerdict { strikes: rings.strike(call), ..verdict }", "verdict")
    breaks("a loop key is not looked at before the call",
           "let keep = what_counts(self.rules.profile(tool));", "let keep = what_counts(None);", "redundancy.rs")
    breaks("a failing call is not foreseen",
           "repeat::failing_repeat(&self.window, last), next_in_cycle()]", "next_in_cycle()]", "redundancy.rs")
    breaks("any call continues a cycle", "(next.call == *call).then_some(cycle)", "(next.index > 0).then_some(cycle)",
           "redundancy.rs")
    breaks("a warning blocks",
           "filter(|sighting| sighting.severity == Severity::Loop);", "filter(|sighting| sighting.count > 1);",
           "redundancy.rs")
    breaks("a tool with a loop key is asked for by its whole call",
           "if keyed || has_remarks { self.foresee(tool, args) } else",
           "if has_remarks { self.foresee(tool, args) } else", "redundancy.rs")
    breaks("a call that explains itself is asked for by its whole call",
           "if keyed || has_remarks { self.foresee(tool, args) } else",
           "if keyed { self.foresee(tool, args) } else", "redundancy.rs")

# ── What detectors stand on ──────────────────────────────────────────────────────────────────────────────────────────

with part("canonical", "canonical.rs") as breaks:
    breaks("of duplicate keys the first counts too",
           "members.get(index + 1).is_some_and(|next| key(next) == key(member))", "members.get(index).is_none()")
    breaks("keys are sorted by bytes", "_ => Units::of(key(a)).cmp(Units::of(key(b))),", "_ => key(a).cmp(key(b)),")
    breaks("what stands behind a short key counts",
           "if len < 8 { first & !(u64::MAX >> (8 * len)) } else { first }", "if len < 1 { 0 } else { first }")
    breaks("keys stay as they came", "if !in_order || !members.iter().all(is_kept) {", "if !members.iter().all(is_kept) {")
    breaks("a loop key reaches into inner objects",
           "self.sort_members(first, self.open.len() == 1, keep);", "self.sort_members(first, self.open.len() <= 2, keep);")
    breaks("raw control characters pass",
           "would give one value two forms.\n                _ => return Err(NotJson),",
           "would give one value two forms.\n                _ => out.extend_from_slice(&rest[..=plain]),")
    breaks("a surrogate pair is two characters",
           "Some(low).filter(|low| (0xDC00..=0xDFFF).contains(low))",
           "Some(low).filter(|low| (0xDC01..=0xDFFF).contains(low) && *low < 0xDC02)")
    breaks("text behind the value is accepted",
           "return if input.peek().is_none() { Ok(true) } else { Err(NotJson) };", "return Ok(true);")
    breaks("an escaped slash is not a slash", "b'/' => out.push(b'/'),", "b'/' => out.extend_from_slice(b\"\\\\/\"),")

with part("number", "number.rs") as breaks:
    breaks("minus zero is not zero", "if parts.integer == b\"0\" { b\"0\" } else { text }", "text")
    breaks("large integers lose digits", "if scale < 0\n", "if scale <= 0\n")
    breaks("numbers too small for a double are zero", "&& double != 0.0", "&& double.is_finite()")
    breaks("a leading zero is accepted", "&& (integer.len() == 1 || integer[0] != b'0')", "")
    breaks("numbers beyond 1e16 are written with an exponent",
           "const PLAIN_DIGITS: usize = 21;",
           "const PLAIN_DIGITS: usize = 16;")
    breaks("trailing zeros count",
           "exponent.checked_add(signed(trailing))?",
           "exponent.checked_add(signed(trailing.min(1)))?")
    breaks("the sign is lost", "if parts.negative {\n        out.push(b'-');\n    }", "")

with part("fingerprint", "fingerprint.rs") as breaks:
    breaks("fields run together",
           "self.0.update((field.len() as u64).to_le_bytes());\n        self.0.update(field);",
           "self.0.update(field);")
    breaks("null is not absent", 'b"null" | b"{}"', 'b"{}"')
    breaks("a string that holds an object is a string",
           "&& inner.trim_start().starts_with('{')",
           "&& inner.trim_start().starts_with('#')")
    breaks("the method does not matter", "frames.add(request.method.as_bytes());\n", "")
    breaks("the path does not matter", "frames.add(request.path.as_bytes());\n", "")
    breaks("two API keys share a counter",
           "frames.add_sorted(request.descriptors);",
           "frames.add_sorted(&request.descriptors[..0]);")
    breaks("the order of the query matters", "sorted.sort_unstable();", "sorted.truncate(sorted.len());")
    breaks("a JSON body counts byte by byte", "Some(canonical) => self.add_tagged(b'j', canonical),",
           "Some(_) => self.add_tagged(b'j', document),")
    breaks("a set depends on its order", "members.sort_unstable();\n", "")

with part("normalise", "normalise.rs") as breaks:
    breaks("colours count", r'rule(r"\x1b\[[0-?]*[ -/]*[@-~]", b""),', r'rule(r"\x1b\[[0-?]*[ -/]*[@-~]", b" "),')
    breaks("small hex numbers are addresses", "0x[0-9A-Fa-f]{6,16}", "0x[0-9A-Fa-f]{1,16}")
    breaks("line and column are a time", r"\b\d{1,2}:\d{2} ?[AaPp][Mm]\b", r"\b\d{1,2}:\d{2}(?: ?[AaPp][Mm])?\b")
    breaks("git hashes are folded", "rule(r\"\\b0x[0-9A-Fa-f]{6,16}\\b\"", "rule(r\"\\b(?:0x)?[0-9A-Fa-f]{6,16}\\b\"")
    breaks("every path under /tmp is temporary",
           "[^\\s/'\":,;()<>]*[0-9][^\\s/'\":,;()<>]*|tmp",
           "[^\\s/'\":,;()<>]*|tmp")
    breaks("the tail of a long result is not looked at", "self.fold(&bytes[bytes.len() - LOOK_AT..], out);", "")
    breaks("white space at the end of a line counts",
           "matches!(out.last(), Some(b' ' | b'\\t' | b'\\r'))",
           "matches!(out.last(), Some(b'\\r'))")
    breaks("a tool's own patterns are ignored",
           "own.iter().map(String::as_str)",
           "own.iter().skip(9).map(String::as_str)")
    breaks("a pattern that fits everywhere is accepted",
           'if regex.is_match("") {',
           'if regex.is_match("") && pattern.is_empty() {')
    breaks("a duration in words counts",
           "(?:seconds?|secs?|minutes?|mins?|hours?|hrs?)\\b|",
           "(?:minutes?|mins?|hours?|hrs?)\\b|")
    breaks("the clock in a status line counts", r"\b\d{2}:\d{2} \d{2}-[A-Z][a-z]{2}-\d{2}\b", r"\x00\x00\x00")
    breaks("the name of a request counts", r"(?:(?:[Rr]equest|[Tt]race", "(?:(?:[Tt]race")
    breaks("what was used of a budget counts", r"|\b[Tt]okens used: ?\d[\d.,]*k?", "")

with part("outcome", "outcome.rs") as breaks:
    breaks("the words count more than the status", "Some(Status::Success) => (false, false),\n", "")
    breaks("an exit code of zero does not count",
           "_ if has(Signal::ExitZero) && !has(Signal::ExitNonZero) => (false, false),\n", "")
    breaks("a long text that talks about errors is a failure",
           "const SHORT: usize = 600;",
           "const SHORT: usize = 600_000;")
    breaks("a failure at the head of a long text is none",
           "_ => (signals.error_first && error_line.is_some(), error_line.is_some()),",
           "_ => (false, error_line.is_some()),")
    breaks("only the head of a long result is read", "signals.read(tail, stems(tail), None);", "")
    breaks("the names in an error tell classes apart",
           "b'\\'' if !(last as char).is_ascii_alphanumeric() => Some(b'\\''),",
           "", "outcome/class.rs")
    breaks("the numbers in an error tell classes apart", "fold = b'0';\n", "", "outcome/class.rs")
    breaks("the paths in an error tell classes apart",
           "} else if *byte == b'/' || *byte == b'~' {",
           "} else if *byte == b'~' {", "outcome/class.rs")
    breaks("every missing command is a class of its own",
           '&["command not found", "No such container"', '&["No such container"', "outcome/class.rs")
    breaks("the name that was asked for tells classes apart",
           "let named = if part_starts { name_out_of(asked, rest) } else { 0 };",
           "let named = if part_starts { name_out_of(&asked[..0], rest) } else { 0 };", "outcome/class.rs")
    breaks("a bare exit code says how a call failed",
           "unexplained: failed && error_line.is_none() && (has(Signal::ExitNonZero) || answers_no),",
           "unexplained: false,")
    breaks("what is not completed is final",
           "terminal: short && has(Signal::Terminal) && !has(Signal::InProgress)",
           "terminal: short && has(Signal::Terminal)")
    breaks("a page about rate limits is transient",
           "&& short\n                && (has(Signal::Transient)", "&& (has(Signal::Transient)")
    breaks("a count is a status of HTTP", '&& asked.contains("http")', "")
    breaks("a success that talks about a time-out is transient",
           "transient: (failed || (status.is_none() && text.len() <= BRIEF))",
           "transient: (failed || text.len() <= BRIEF)")
    breaks("a pending call has answered", "known: status != Some(Status::Pending)", "known: true")
    breaks("a newline inside of JSON ends no line",
           "if text.get(at + 1) == Some(&b'n') {",
           "if text.get(at + 1) == Some(&b'\\n') {", "outcome/lines.rs")
    breaks("an error that is only a status has no class",
           "let class = if failed { EMPTY } else { 0 };",
           "let class = 0;")
    breaks("an error in the wrapping of a harness is none", '    (Signal::Error, r"^<tool_use_error>"),\n', "")
    breaks("a line of a long result is left out", '"fail", ', "", "outcome/stems.rs")
    breaks("what is written in capitals is left out", "text.iter().map(u8::to_ascii_lowercase)", "text.iter().copied()",
           "outcome/stems.rs")
    breaks("lines of a short result are left out",
           "if is_short { None } else { Stems::of", "if normal.is_empty() { None } else { Stems::of")

with part("effect", "effect.rs") as breaks:
    breaks("a guess wins over what is declared", "declared.or(guess.effect)", "guess.effect.or(declared)")
    breaks("every editor command writes", 'matches!(subcommand, b"view" | b"read"', 'matches!(subcommand, b"read"')
    breaks("an insert is no verb of SQL",
           'b"insert", b"update", b"delete", b"create", b"drop", b"alter", b"replace", b"truncate", b"use"',
           'b"update", b"delete", b"create", b"drop", b"alter", b"replace", b"truncate", b"use"')
    breaks("the server's name says what a call does",
           'name.strip_prefix("mcp__").and_then(', 'name.strip_prefix("mcp##").and_then(', "tool_name.rs")
    breaks("getJobStatus is one word",
           "byte.is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase()",
           "byte.is_ascii_uppercase() && bytes[at - 1].is_ascii_digit()", "tool_name.rs")
    breaks("a status is asked for, not waited for",
           'b"poll" | b"wait" | b"status"',
           'b"poll" | b"wait"', "tool_name.rs")
    breaks("an old text is not kept", 'b"old" | b"old_str"', 'b"old_str"')
    breaks("to-do lists are writes", "if says.has(Word::Notes) {", "if says.has(Word::Notes) && tool.is_empty() {")
    breaks("what gets updates writes", "if says.starts_with(Word::Read) && !says.has(Word::Change) {", "if says.starts_with(Word::Run) {")
    breaks("a declared tool still moves", "moves: guess.moves && declared.is_none(),", "moves: guess.moves,")
    breaks("an argument vector is no command", "b'[' | b']' | b'\"' | b','", "b'[' | b']'")
    breaks("commands are prose", "prose: !guess.command && !guess.shell && is_prose(canonical)", "prose: is_prose(canonical)")
    breaks("a wait is a wait by its tool's name only", "if action.starts_with(Word::Poll) {",
           "if action.starts_with(Word::Poll) && tool.is_empty() {")
    breaks("who is told where to go does not move", "DIRECTIONS.contains(&action)", "STEPS.contains(&action)")
    breaks("what is moved is a file", "|| is_step || goes_somewhere(tool, canonical) {", "|| is_step {")
    breaks("what is done in a world is done to files", '| b"jump" | b"forward" | b"backward" | b"dig" |',
           '| b"jump" | b"forward" | b"backward" |', "tool_name.rs")

with part("shell", "shell.rs") as breaks:
    breaks("what is quoted is a command",
           "(None, b'\\'' | b'\"' | b'`') => quote = Some(*byte),",
           "(None, b'`') => quote = Some(*byte),")
    breaks("a here-document is commands",
           "at = behind_heredoc(command, at, mark);",
           "at += behind_heredoc(command, at, mark) & mark.len() & 0;")
    breaks("output to nowhere is a write", '&& !target.starts_with(b"/dev/")', "")
    breaks("output into a file is no write",
           "segment.redirected |= !duplicate && ",
           "segment.redirected |= duplicate && ")
    breaks("sed never writes", 'b"sed" | b"perl" | b"ruby" if self.in_place', 'b"perl" | b"ruby" if self.in_place')
    breaks("sudo is a verb", 'b"sudo", b"time", b"env"', 'b"time", b"env"')
    breaks("uv run hides what it runs", 'word == b"run" && RUNNERS', 'word == b"runs" && RUNNERS')
    breaks("variables are verbs", "|| is_assignment(word)\n", "|| (is_assignment(word) && word.is_empty())\n")
    breaks("git only reads",
           "| b\"tag\" => Verb::Read,\n        _ => Verb::Write,",
           "| b\"tag\" => Verb::Read,\n        _ => Verb::Read,")
    breaks("a read beside a write hides it",
           "let effect = if self.write {",
           "let effect = if self.write && !self.read {")
    breaks("a cd before a command moves",
           "let moves = self.moved && effect.is_none() && !unknown;",
           "let moves = self.moved;")
    breaks("tests read one file", "broad: self.test || unknown, programs", "broad: unknown, programs")
    breaks("docker run waits", 'if verb != b"docker" || next != b"run" =>', "if !verb.is_empty() =>")
    breaks("comments are commands",
           "b'#' => at = memchr::memchr(b'\\n', &command[at..]).map_or(command.len(), |end| at + end),",
           "b'#' => at += 1,")
    breaks("who asks after a wait only asks", "(self.ask && !self.wait)", "self.ask")

with part("args", "args.rs") as breaks:
    breaks("digits of a name are numbers", "if named {", "if named && digits > 9 {")
    breaks("a file in a folder is not in it", "if !written || folder.is_empty() {", "if written || folder.is_empty() {")
    breaks("a file is known by its whole path only", "self.add(&path[slash + 1..]);", "self.add(&path[..slash]);")
    breaks("what names nothing is apart from everything",
           "!mine.is_empty()\n            && ", "")
    breaks("more places than are kept are forgotten", "None => self.overflow = true,", "None => {}")
    breaks("a line number is part of a file's name", "path.split(|byte| *byte == b':').next().unwrap_or(path)", "path")
    breaks("an address is a file", 'word.starts_with(b"http") || ', "")
    breaks("a string's braces count", "b'\"' => at += 1 + end_of_string(&value[at + 1..]),", "b'\"' => {}")

with part("words", "words.rs") as breaks:
    breaks("case matters", "letters[at] = byte.to_ascii_lowercase();", "letters[at] = byte;")
    breaks("field names are words", "if behind.first() != Some(&b':') {", "if behind.first() != Some(&b'#') {")
    breaks("an escape's letter is a letter", "skip = escaped && !skip && *byte == b'\\\\';", "skip = false;")
    breaks("numbers are no names",
           "if word.digits || word.quoted || (word.capital && word.letters > 1) {",
           "if word.quoted || (word.capital && word.letters > 1) {")
    breaks("the first word of a sentence is a name",
           "byte.is_ascii_uppercase() && !sentence_starts;", "byte.is_ascii_uppercase();")
    breaks("capitalised words are no names",
           "if word.digits || word.quoted || (word.capital && word.letters > 1) {",
           "if word.digits || word.quoted {")
    breaks("quoted words are no names",
           "if word.digits || word.quoted || (word.capital && word.letters > 1) {",
           "if word.digits || (word.capital && word.letters > 1) {")
    breaks("an apostrophe opens a quotation", "(None, b'\\'' | b'\"' | b'`') if word.is_empty() =>",
           "(None, b'\\'' | b'\"' | b'`') =>")
    breaks("each convention of writing makes another name", "if letter != b'_' {", "if letter != 0 {")
    breaks("I am somebody", "(word.capital && word.letters > 1)", "word.capital")
    breaks("runs of digits stay apart",
           "rest.iter().take_while(|byte| byte.is_ascii_digit()).count()..];", "1..];")
    breaks("all words share a few bits",
           ".wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54)",
           ".wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 62)")


# ── Running them ─────────────────────────────────────────────────────────────────────────────────────────────────────

def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", metavar="NAME", help="a part's name, or a piece of a description")
    options.add_argument("--list", action="store_true", help="only list the mutations")
    options = options.parse_args()
    sys.stdout.reconfigure(line_buffering=True)

    chosen = [mutation for mutation in MUTATIONS if is_chosen(mutation, options.only)]
    if options.list or not chosen:
        print(*chosen or [f"no mutation is called {options.only!r}"], sep="\n")
        return 0 if chosen else 2
    copy_tree()
    if (failed := run_tests([])) is not None:
        print(f"the tests are red before anything is broken:\n{failed}")
        return 2

    verdicts: dict[Mutation, str] = {}
    for number, mutation in enumerate(chosen, 1):
        start = time.monotonic()
        verdict, why = judge(mutation)
        verdicts[mutation] = verdict
        seconds = time.monotonic() - start
        print(f"[{number}/{len(chosen)}] {verdict:8} {mutation}  ({seconds:.0f} s; {why})")
    return summary(verdicts)


def is_chosen(mutation: Mutation, only: str | None) -> bool:
    parts = {other.part for other in MUTATIONS}
    return only is None or (mutation.part == only if only in parts else only in str(mutation))


def judge(mutation: Mutation) -> tuple[str, str]:
    """Makes the mutation in the copy, runs the tests, and takes it back."""
    path = TREE / SOURCE / mutation.file
    original = path.read_text()
    if original.count(mutation.old) != 1:
        return "stale", f"found {original.count(mutation.old)} times in {mutation.file}"
    path.write_text(original.replace(mutation.old, mutation.new))
    try:
        failed = run_tests(quickest(mutation))
    finally:
        path.write_text(original)
    if failed is None:
        return "survived", mutation.file
    if "could not compile" in failed or "failed to run custom build" in failed:
        print(failed)
        return "broken", "does not compile"
    return "killed", first_red(failed)


def quickest(mutation: Mutation) -> list[str]:
    """The tests that most likely see it: building them alone takes half the time."""
    seen_from_outside = mutation.file.startswith("redundancy") and mutation.part not in ("chant", "guard")
    return ["--test", "redundancy"] if seen_from_outside else ["--lib"]


def run_tests(first: list[str]) -> str | None:
    """The output of the first run that fails, or `None`. Doc tests are slow and come last."""
    for targets in ([first] if first else []) + [["--lib", "--tests"], ["--doc"]]:
        status, output = cargo(["test", "--quiet", *PACKAGE, *targets])
        if status != 0:
            return output
    return None


def cargo(arguments: list[str]) -> tuple[int, str]:
    # The same random cases each time, and no time lost on making a failure small.
    fixed = {"PROPTEST_RNG_SEED": "17", "PROPTEST_MAX_SHRINK_ITERS": "0", "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1"}
    environment = {**os.environ, **fixed, "CARGO_TARGET_DIR": str(TARGET), "CARGO_TERM_COLOR": "never"}
    process = subprocess.Popen(
        ["cargo", *arguments], cwd=TREE, env=environment, text=True, errors="replace", start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    try:
        output, _ = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return 1, "---- it ran for ever ----"
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return process.returncode, output


def first_red(output: str) -> str:
    """The name of the first test that failed."""
    names = [line.split()[1] for line in output.splitlines() if line.startswith("---- ") and len(line.split()) > 1]
    return names[0] if names else "a test ended early"


def copy_tree() -> None:
    """Brings the copy up to date; files that are equal keep their time, so that little is compiled again."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )
    wanted = {Path(name) for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}
    if TREE.exists():
        for path in [path for path in TREE.rglob("*") if path.is_file()]:
            if path.relative_to(TREE) not in wanted:
                path.unlink()
    for name in wanted:
        source, copy = ROOT / name, TREE / name
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)


def summary(verdicts: dict[Mutation, str]) -> int:
    kinds = ["killed", "survived", "stale", "broken"]
    print(f"\n{'part':<20}{'all':>6}" + "".join(f"{kind:>10}" for kind in kinds))
    for name in [*dict.fromkeys(mutation.part for mutation in verdicts), None]:
        found = [verdict for mutation, verdict in verdicts.items() if name in (mutation.part, None)]
        print(f"{name or 'all':<20}{len(found):>6}" + "".join(f"{found.count(kind) or '–':>10}" for kind in kinds))
    left = [(mutation, verdict) for mutation, verdict in verdicts.items() if verdict != "killed"]
    for mutation, verdict in left:
        print(f"{verdict}: {mutation}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
