"""Agents in a terminal: puzzles, logs, git, jobs in the background, a prompt that waits for a quote."""
from __future__ import annotations

from recorder import Session, scenario
from tools import Terminal, shell

AGENT = "scripted terminal agent"


def run(s: Session, command: str, thought: str = "") -> str:
    return s.call("execute_bash", {"command": command}, shell(s.folder, command), thought)


def guess(s: Session, flag: str, right: str, thought: str = "") -> None:
    s.call("check_flag", {"flag": flag}, "Correct!" if flag == right else "Incorrect flag. Try again.", thought)


@scenario("terminal", AGENT, "none", "Which client makes most of the failing requests in access.log?", "each command asks something else")
def reads_a_log(s: Session) -> None:
    log = s.folder / "access.log"
    log.write_text("".join(f"10.0.0.{i % 7} GET /page/{i % 13} {500 if i % 7 == 3 and i % 2 else 200}\n" for i in range(400)))
    run(s, "ls", "Let me see what is here.")
    run(s, "wc -l access.log")
    run(s, "head -n 3 access.log")
    run(s, "grep -c ' 500$' access.log")
    run(s, "grep -c ' 404$' access.log")
    run(s, "grep -c ' 403$' access.log")
    run(s, "grep -c ' 502$' access.log")
    run(s, "grep ' 500$' access.log | awk '{print $1}' | sort | uniq -c | sort -rn")
    run(s, "grep ' 500$' access.log | grep 10.0.0.3 | awk '{print $3}' | sort | uniq -c | sort -rn | head -n 5")
    s.say("10.0.0.3 makes all of the failing requests.")


@scenario("terminal", AGENT, "polling_legit", "Start the import and tell me when it is through.", "the progress moves")
def waits_for_a_job(s: Session) -> None:
    run(s, "(for i in $(seq 1 8); do echo \"imported $((i * 125)) of 1000 rows\" >> import.log; sleep 0.25; done; echo finished >> import.log) >/dev/null 2>&1 & echo started")
    for _ in range(40):
        if "finished" in run(s, "sleep 0.25; tail -n 1 import.log"):
            break
    s.say("The import is through: 1000 rows.")


@scenario("terminal", AGENT, "retry_legit", "Find the flag in secret.txt.", "wrong guesses with new reading in between")
def decodes_in_layers(s: Session) -> None:
    run(s, "printf 'flag{onion}' | base64 | rev | base64 > secret.txt; ls -l")
    run(s, "cat secret.txt")
    run(s, "base64 -d secret.txt", "Looks like base64.")
    guess(s, shell(s.folder, "base64 -d secret.txt").strip(), "flag{onion}", "Perhaps that is it already.")
    run(s, "base64 -d secret.txt | base64 -d | xxd | head -n 2", "Once more?")
    run(s, "base64 -d secret.txt | tr 'A-Za-z' 'N-ZA-Mn-za-m'", "Perhaps it was rotated.")
    guess(s, "flag{tabs}", "flag{onion}")
    run(s, "base64 -d secret.txt | rev", "Padding stands at the front: it is reversed.")
    run(s, "base64 -d secret.txt | rev | base64 -d")
    guess(s, "flag{onion}", "flag{onion}")


@scenario("terminal", AGENT, "none", "Make a small history with three commits.", "the same status after each commit")
def commits_in_steps(s: Session) -> None:
    run(s, "git init -q -b main . && git status --short | wc -l")
    for name in ("readme", "licence", "notes", "todo"):
        run(s, f"echo {name} > {name}.md")
        run(s, "git status --short")
        run(s, f"git add {name}.md && git commit -q -m 'Add {name}'")
        run(s, "git status")
    run(s, "git log --oneline | cut -d' ' -f2-")
    s.say("Four commits are made.")


@scenario("terminal", AGENT, "retry_legit", "Make the report.", "each failure is another one, and the last one is mended")
def mends_a_script(s: Session) -> None:
    run(s, "printf 'import jsn\\nprint(len(json.load(open(\"data.json\"))))\\n' > report.py; ls")
    run(s, "python3 report.py")
    run(s, "sed -i 's/import jsn/import json/' report.py")
    run(s, "python3 report.py", "Now it should load.")
    run(s, "find . -name '*.json'")
    run(s, "echo '[1, 2, 3' > data.json")
    run(s, "python3 report.py")
    run(s, "echo '[1, 2, 3]' > data.json")
    run(s, "python3 report.py")
    s.say("The report says 3.")


@scenario("terminal", AGENT, "near_duplicate", "What is hidden in photo.jpg?", "a program that is not installed, with ever new options")
def calls_a_missing_program(s: Session) -> None:
    run(s, "head -c 200 /dev/urandom | base64 > photo.jpg; ls")
    run(s, "file photo.jpg || wc -c photo.jpg")
    s.loop_starts()
    run(s, "steghide extract -sf photo.jpg", "Something may be hidden in the picture.")
    run(s, "steghide extract -sf photo.jpg -p ''", "Perhaps an empty passphrase.")
    run(s, "steghide info photo.jpg", "Let me look at its properties first.")
    run(s, "steghide extract -sf ./photo.jpg -p password")
    run(s, "steghide extract -sf photo.jpg -xf out.txt -p secret", "Another passphrase.")
    run(s, "steghide --extract -sf photo.jpg -f")
    run(s, "steghide extract -sf photo.jpg -p admin")


@scenario("terminal", AGENT, "exact", "Find the password in this folder.", "the same file again, with looks elsewhere in between")
def reads_the_same_note(s: Session) -> None:
    (s.folder / "notes.txt").write_text("Remember: the password is not here.\n")
    (s.folder / "old.txt").write_text("Nothing of interest.\n")
    run(s, "ls")
    s.loop_starts()
    run(s, "cat notes.txt", "The notes may tell.")
    run(s, "cat old.txt")
    run(s, "cat notes.txt", "I should read the notes carefully.")
    run(s, "ls -a")
    run(s, "cat notes.txt", "Maybe I overlooked something.")
    run(s, "cat notes.txt | head -n 20")
    run(s, "cat notes.txt", "Let me check the notes for the password.")
    run(s, "cat notes.txt", "The password must be in the notes.")
    run(s, "cat notes.txt", "Reading the notes.")


@scenario("terminal", AGENT, "stagnation", "List the biggest files.", "the shell waits for a closing quote, whatever is typed")
def types_into_an_open_quote(s: Session) -> None:
    terminal = Terminal(s.folder)

    def keys(text: str, thought: str = "") -> None:
        s.call("terminal", {"keystrokes": text}, terminal.type(text), thought)

    keys("mkdir -p data && echo hello > data/a.txt\n")
    s.loop_starts()
    keys("echo 'it is done > log.txt\n", "I note that it is done.")
    for text in ("ls -la\n", "pwd\n", "ls data\n", "du -a data\n", "clear\n", "ls\n", "echo hello\n", "ls -la\n"):
        keys(text, "There is no output. Let me try again.")
    terminal.close()


@scenario("terminal", AGENT, "near_duplicate", "Submit the flag.", "one guess in ever new spellings")
def guesses_one_flag(s: Session) -> None:
    run(s, "echo 'the cat sat on the mat' > hint.txt; cat hint.txt")
    s.loop_starts()
    for flag in ("flag{cat}", "flag{CAT}", "flag{the_cat}", "FLAG{cat}", "flag{Cat}", "flag{cat_mat}", "flag{cat!}"):
        guess(s, flag, "flag{blue_horse}", "This should be the flag.")


@scenario("terminal", AGENT, "cycle", "Explain what the binary does.", "three looks in turns, nothing changes")
def looks_in_turns(s: Session) -> None:
    (s.folder / "tool.bin").write_bytes(bytes(range(256)))
    s.loop_starts()
    for _ in range(5):
        run(s, "ls", "Let me list the files.")
        run(s, "xxd tool.bin | head -n 4", "I look at its bytes.")
        run(s, "strings tool.bin | head -n 5", "Perhaps it has strings.")
