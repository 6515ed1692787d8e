"""python3 -m unittest discover quality"""
from __future__ import annotations

import json
import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import added
import baselines
import dressed
import scoring
import semantic
import ship
from data import Run, Step, canonical, parse


def run_of(*steps: Step, loop: bool = True, onset: int = 0, name: str = "r", family: str = "f") -> Run:
    return Run(name, family, "the task", steps, loop, "exact" if loop else "none", onset, False, 1.0)


def call(args: Any, result: str = "ok", tool: str = "bash") -> Step:
    return Step("assistant", "", tool, args, result)


def say(words: str, role: str = "assistant") -> Step:
    return Step(role, words, None, None, None)


A, B, C = call("a"), call("b"), call("c")


class Baselines(unittest.TestCase):
    def check(self, baseline: baselines.Baseline, steps: list[Step], expected: int | None) -> None:
        self.assertEqual(baseline(run_of(*steps)), expected)

    def test_same_call_counts_the_third_in_ten(self) -> None:
        self.check(baselines.same_call_3_in_10, [A, B, A, C, A], 4)
        others = [call(str(i)) for i in range(9)]
        self.check(baselines.same_call_3_in_10, [A, A, *others, A], None)

    def test_sentinel_blocks_the_fourth(self) -> None:
        self.check(baselines.sentinel, [A, A, A, B, A], 4)
        self.check(baselines.sentinel, [A, A, A, B], None)

    def test_in_a_row_is_broken_by_another_call_but_not_by_text(self) -> None:
        self.check(baselines.three_in_a_row, [A, say("hm"), A, A], 3)
        self.check(baselines.three_in_a_row, [A, A, B, A], None)
        self.check(baselines.gemini_cli, [A] * 5, 4)
        self.check(baselines.gemini_cli, [A] * 4, None)

    def test_literal_entropy_takes_five_reads_for_a_loop_and_the_input_heals_it(self) -> None:
        reads = [call(f"file {i}") for i in range(5)]
        self.check(baselines.entropy_literal, reads, 4)
        self.check(baselines.entropy_with_input, reads, None)
        self.check(baselines.entropy_with_input, [A] * 5, 4)

    def test_openhands_rules(self) -> None:
        self.check(baselines.openhands, [A] * 4, 3)
        self.check(baselines.openhands, [A] * 3, None)
        changing = [call("a", f"result {i}") for i in range(5)]
        self.check(baselines.openhands, changing, None)
        errors = [call("a", f"error {i}") for i in range(3)]
        self.check(baselines.openhands, [B, *errors], 3)
        self.check(baselines.openhands, [say("done")] * 3, 2)
        self.check(baselines.openhands, [say("done"), say("no", "user"), say("done"), say("done")], 3)
        self.check(baselines.openhands, [A, B, A, B, A, B], 5)

    def test_cycles_need_three_copies_with_equal_results(self) -> None:
        self.check(baselines.exact_and_cycle, [A, B, C] * 3, 8)
        self.check(baselines.exact_and_cycle, [A, B, C] * 2, None)
        moving = [call("a", str(i)) for i in range(9)]
        self.check(baselines.exact_and_cycle, moving, None)

    def test_a_growing_request_never_repeats(self) -> None:
        self.check(baselines.whole_request_crc, [A] * 50, None)

    def test_near_duplicates_need_alike_results_too(self) -> None:
        near = [call(f"grep -rn parser src lib tests docs --max {i}", "no match found") for i in range(3)]
        self.check(baselines.near_duplicate, near, 2)
        different = [call("grep -rn parser src", f"{i} {i + 10} {i + 20}") for i in range(3)]
        self.check(baselines.near_duplicate, different, None)

    def test_order_of_keys_does_not_count(self) -> None:
        self.assertEqual(canonical('{"a":1,"b":2}'), canonical({"b": 2, "a": 1}))

    def test_long_prompts_keep_head_and_tail(self) -> None:
        self.assertEqual(semantic.cut(list(range(300))), [*range(64), *range(236, 300)])
        self.assertEqual(semantic.cut([1, 2]), [1, 2])


class Scoring(unittest.TestCase):
    def setUp(self) -> None:
        self.records = [
            record("hit", loop=True, onset=2, steps=11, family="x"),
            record("early", loop=True, onset=5, steps=9, family="x"),
            record("missed", loop=True, onset=1, steps=5, family="y", doubtful=True),
            record("false", loop=False, onset=None, steps=20, family="x", weight=3.0),
            record("quiet", loop=False, onset=None, steps=20, family="x", weight=1.0),
            record("calm", loop=False, onset=None, steps=20, family="y"),
        ]
        self.runs = [parse(r) for r in self.records]
        self.found = {
            "hit": found("hit", ("repeat", "warning", 3), ("repeat", "loop", 6), stop=8),
            "early": found("early", ("cycle", "loop", 4)),
            "missed": found("missed", ("churn", "warning", 3)),
            "false": found("false", ("churn", "loop", 9), ("repeat", "warning", 12)),
            "quiet": found("quiet", ("repeat", "warning", 5)),
            "calm": found("calm"),
        }

    def test_counts(self) -> None:
        s = scoring.score(self.runs, scoring.alarms_of(self.found, "loop"))
        self.assertEqual((s.runs, s.loops, s.hits, s.false, s.early), (6, 3, 2, 1, 1))
        self.assertAlmostEqual(s.f1, 2 / 3)
        self.assertEqual(s.delay, 4)
        self.assertAlmostEqual(s.saved, (4 / 8 + 1 + 0) / 3)
        self.assertAlmostEqual(s.reweighted, (3 / 4 + 0) / 2)

    def test_warnings_include_loops(self) -> None:
        alarms = scoring.alarms_of(self.found, "warning")
        self.assertEqual((alarms["hit"], alarms["early"], alarms["calm"]), (3, 4, None))

    def test_early_alarms_as_misses(self) -> None:
        strict = scoring.without_early(self.runs, scoring.alarms_of(self.found, "loop"))
        self.assertEqual((strict["hit"], strict["early"], strict["false"]), (6, None, 9))

    def test_a_rule_unproved_elsewhere_does_not_count(self) -> None:
        # `churn` finds no labelled loop at all, `cycle` and `repeat` only in family x.
        alarms = scoring.leave_one_family_out(self.runs, self.found, "loop")
        self.assertEqual(set(alarms.values()), {None})
        proved = {**self.found, "missed": found("missed", ("repeat", "loop", 4))}
        alarms = scoring.leave_one_family_out(self.runs, proved, "loop")
        self.assertEqual((alarms["hit"], alarms["missed"], alarms["false"]), (6, 4, None))

    def test_false_reports_per_1000_steps_count_identities(self) -> None:
        self.assertAlmostEqual(scoring.false_per_1000_steps(self.runs, self.found, "loop"), 1000 / 60)
        self.assertAlmostEqual(scoring.false_per_1000_steps(self.runs, self.found, "warning"), 3000 / 60)

    def test_stops(self) -> None:
        self.assertEqual(scoring.stopped(self.runs, self.found), 1)

    def test_intervals_hold_the_value_and_do_not_change(self) -> None:
        alarms = scoring.alarms_of(self.found, "loop")
        s = scoring.score(self.runs, alarms, intervals=True)
        self.assertLessEqual(s.f1_interval[0], s.f1)
        self.assertGreaterEqual(s.f1_interval[1], s.f1)
        self.assertEqual(s, scoring.score(self.runs, alarms, intervals=True))



class Shipping(unittest.TestCase):
    def test_only_free_runs_without_canary_or_secret(self) -> None:
        def reason(license: str = "MIT", family: str = "f", line: str = "{}") -> str | None:
            return ship.why_not({"license": license, "meta": {"family": family}}, line)

        self.assertIsNone(reason())
        self.assertIsNone(reason("Apache-2.0"))
        self.assertEqual(reason("none stated"), "")
        self.assertEqual(reason(family="tb-mini"), "")
        self.assertTrue(reason(line="key = sk-" + "a" * 40))
        self.assertTrue(reason(line="AKIA" + "A" * 16))
        self.assertTrue(reason(line="terminal-bench-canary GUID 1"))


def record(name: str, loop: bool, onset: int | None, steps: int, family: str, doubtful: bool = False, weight: float = 1.0) -> dict[str, Any]:
    step = {"role": "assistant", "thought": None, "tool": "t", "args": "a", "result": "r", "tokens": None}
    return {
        "id": name,
        "steps": [{"i": i, **step} for i in range(steps)],
        "label": {"loop": loop, "kind": "exact" if loop else "none", "onset_step": onset, "note": ""},
        "meta": {"family": family, "doubtful": doubtful, "weight": weight},
    }


def found(name: str, *findings: tuple[str, str, int], stop: int | None = None) -> dict[str, Any]:
    return {
        "id": name,
        "findings": [
            {"step": step, "detector": "redundancy", "kind": kind, "severity": severity, "identity": kind}
            for kind, severity, step in findings
        ],
        "actions": [{"step": stop, "action": "reject"}] if stop else [],
    }





class Added(unittest.TestCase):
    def test_only_what_the_semantic_detector_found_counts_when_it_stands_alone(self) -> None:
        findings = [{"detector": "redundancy", "step": 1}, {"detector": "semantic", "step": 4}]
        alone = added.only_semantic({"r": {"id": "r", "findings": findings}})
        self.assertEqual(alone["r"]["findings"], [findings[1]])


class OtherClothes(unittest.TestCase):
    def test_what_happened_stays_what_it_was(self) -> None:
        for name, dress in dressed.CLOTHES.items():
            step = {"tool": "bash", "args": '{"command": "ls"}', "result": "a.txt"}
            dress(step, 3, "run")
            args = step["args"] if isinstance(step["args"], dict) else json.loads(step["args"])
            self.assertEqual(args["command"], "ls", name)
            self.assertIn("a.txt", step["result"], name)

    def test_text_and_empty_results_are_left_alone(self) -> None:
        for dress in dressed.CLOTHES.values():
            step = {"tool": None, "thought": "done", "args": None, "result": None}
            dress(step, 3, "run")
            self.assertEqual(step, {"tool": None, "thought": "done", "args": None, "result": None})


if __name__ == "__main__":
    unittest.main()
