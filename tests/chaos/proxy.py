"""A TCP link that can be made bad while it carries traffic. It is a process of its own: its delays are the ones that it
was told, not those of a busy test.

usage: proxy.py PORT TARGET_PORT    reads faults from stdin, one a line: pass, delay SECONDS, stall, cut, drop
"""

import asyncio
import contextlib
import subprocess
import sys
from pathlib import Path


class Link:
    """Both directions of every connection, and what is wrong with them now."""

    def __init__(self, target):
        self.target = target
        self.fault, self.seconds = "pass", 0.0
        self.healed = asyncio.Event()
        self.healed.set()

    def set(self, line):
        fault, *seconds = line.split()
        self.fault, self.seconds = fault, float(seconds[0]) if seconds else 0.0
        if fault == "stall":
            self.healed.clear()
        else:
            self.healed.set()

    async def connected(self, reader, writer):
        try:
            # Nobody is behind a stalled link, though it can be reached.
            await self.healed.wait()
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        ways = [self.carry(reader, far_writer, False), self.carry(far_reader, writer, True)]
        ways = [asyncio.ensure_future(way) for way in ways]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for end in (writer, far_writer):
            end.close()

    async def carry(self, reader, writer, is_answer):
        """Carries one direction. What is wrong with the link is wrong with the answers."""
        waiting = asyncio.Queue(maxsize=10_000)

        async def deliver():
            while True:
                due, piece = await waiting.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                writer.write(piece)
                with contextlib.suppress(ConnectionError):
                    await writer.drain()

        loop = asyncio.get_running_loop()
        delivering = asyncio.ensure_future(deliver())
        try:
            while piece := await reader.read(65_536):
                # What a stalled link has swallowed never arrives: its ends only learn by waiting.
                if self.fault == "stall":
                    continue
                delay = self.seconds if self.fault == "delay" and is_answer else 0.0
                if is_answer and self.fault == "drop" and len(piece) > 2:
                    piece = piece[: len(piece) // 2] + piece[len(piece) // 2 + 1 :]
                if is_answer and self.fault == "cut":
                    writer.write(piece[: len(piece) // 2])
                    await writer.drain()
                    return
                await waiting.put((loop.time() + delay, piece))
        except ConnectionError:
            pass
        finally:
            delivering.cancel()


async def serve(port, target):
    link = Link(target)
    server = await asyncio.start_server(link.connected, "127.0.0.1", port)
    print("listening", flush=True)
    loop = asyncio.get_running_loop()
    faults = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(faults), sys.stdin)
    while line := await faults.readline():
        link.set(line.decode())
        print("done", flush=True)
    server.close()


class Proxy:
    """The process, from outside. It ends when its input does."""

    def __init__(self, port, target):
        self.port = port
        command = [sys.executable, str(Path(__file__).resolve()), str(port), str(target)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answered()

    def set(self, fault):
        self.process.stdin.write(f"{fault}\n")
        self.process.stdin.flush()
        self.answered()

    def answered(self):
        if not self.process.stdout.readline():
            raise RuntimeError("the proxy has ended")

    def end(self):
        self.process.kill()
        self.process.communicate()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2])))
