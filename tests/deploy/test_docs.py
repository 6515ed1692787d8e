"""Pages say what is true: their links lead somewhere, their configs are sound, and what was generated is up to date."""

import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

from shipped import LOOPBREAKER, ROOT, blocks, check, pages

sys.path.insert(0, str(ROOT / "scripts"))
import reference  # noqa: E402

# Keys that are accepted only to be refused by name: they come from other products' files.
FOREIGN = {"policies[].spec": {"circuit_breaker"}}


def anchors(page):
    """The names under which the headings of a page can be linked to, as GitHub and MkDocs make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r" ", "-", re.sub(r"[^\w\- ]", "", plain)))
    return found


def links(page):
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "", text)
    return re.findall(r"\]\(([^)\s]+)\)", text)


class Links(unittest.TestCase):
    def test_every_relative_link_leads_somewhere(self):
        seen = 0
        for page in pages():
            for link in links(page):
                if re.match(r"[a-z]+:", link):
                    continue
                seen += 1
                file, _, anchor = link.partition("#")
                target = (page.parent / file).resolve() if file else page
                with self.subTest(page=page.relative_to(ROOT), link=link):
                    self.assertTrue(target.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(target))
        self.assertGreater(seen, 50)

    def test_every_page_of_the_docs_is_in_the_menu_and_the_menu_has_no_other(self):
        menu = set(re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
        there = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
        self.assertEqual(menu, there)


class Configs(unittest.TestCase):
    def test_every_yaml_block_is_a_config_that_the_binary_accepts(self):
        """Blocks in another format than our config are marked `yml`, `json` or `text`."""
        seen = 0
        for page in pages():
            for line, text in blocks(page, "yaml"):
                seen += 1
                with self.subTest(page=page.relative_to(ROOT), line=line):
                    code, words = check(text, ROOT / "docs" / "examples" / "policies")
                    self.assertEqual(code, 0, words)
        self.assertGreater(seen, 20)

    def test_every_json_block_is_json(self):
        for page in pages():
            for line, text in blocks(page, "json"):
                with self.subTest(page=page.relative_to(ROOT), line=line):
                    json.loads(text)

    def test_every_policy_file_that_is_shown_loads(self):
        files = sorted((ROOT / "docs" / "examples" / "policies").iterdir())
        self.assertGreaterEqual(len(files), 2)
        for file in files:
            code, words = check(f"policy_files: [{file.name}]", file.parent)
            self.assertEqual(code, 0, words)


class Reference(unittest.TestCase):
    def explained(self, text):
        command = [LOOPBREAKER, "check", "--json", "-c", "-"]
        run = subprocess.run(command, input=text.encode(), capture_output=True, timeout=30)
        found = json.loads(run.stdout)
        self.assertTrue(found["ok"], found["problems"])
        return found["explain"]

    def test_what_is_generated_is_up_to_date(self):
        for name, text in reference.made().items():
            with self.subTest(page=name):
                self.assertEqual((reference.FOLDER / name).read_text(), text, "run `make docs-reference`")

    def test_defaults_are_those_of_an_empty_config(self):
        written = (reference.FOLDER / "defaults.yaml").read_text()
        self.assertEqual(self.explained(written), self.explained("{}"))

    def test_examples_are_sound(self):
        text = (reference.FOLDER / "examples.yaml").read_text()
        # The certificate is read, and there is none here.
        without, sections = re.subn(r"^tls:\n(?:  .*\n)+", "", text, flags=re.MULTILINE)
        self.assertEqual(sections, 1)
        self.explained(without)

    def test_every_key_that_the_binary_accepts_is_described_and_no_other(self):
        described = {}
        known = {}
        for name in ("defaults.yaml", "examples.yaml"):
            text = (reference.FOLDER / name).read_text()
            for key in reference.keys_of(text):
                described.setdefault(".".join(key.path[:-1]), set()).add(key.path[-1])
            known.update(reference.accepted(text))
        self.assertGreater(len(known), 25)
        for place, keys in known.items():
            with self.subTest(section=place or "the file"):
                self.assertEqual(described[place], set(keys) - FOREIGN.get(place, set()))


if __name__ == "__main__":
    unittest.main()
