"""One agent per dialect, written as a user of that SDK would write it."""

import json
from dataclasses import dataclass, field

import anthropic
import openai
from google import genai
from google.genai import types

TOOLS = ("bash", "read_file", "write_file", "edit_file", "list_items", "search", "job_status")
PARAMETERS = {"type": "object", "properties": {"input": {"type": "string"}}}
SYSTEM = "You are a careful engineer."


@dataclass
class Call:
    id: str
    tool: str
    args: dict


@dataclass
class Answer:
    text: str
    calls: list = field(default_factory=list)


class Agent:
    """A conversation with a model. `said` is the same conversation in chat form, for replay."""

    #: The path that the gateway must know this dialect by.
    path = ""

    def __init__(self, url, key="key-of-the-tests", stream=False, headers=None, system=SYSTEM):
        self.url, self.key, self.stream, self.system = url, key, stream, system
        self.headers = headers or {}
        self.said = [{"role": "system", "content": system}] if system else []
        self.client = self.connect()

    def user(self, text):
        self.said.append({"role": "user", "content": text})
        self.add_user(text)

    def ask(self):
        """One model call. What is given to the tools afterwards goes out with the next one."""
        answer = self.request()
        message = {"role": "assistant", "content": answer.text or None}
        if answer.calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": json.dumps(call.args)}}
                for call in answer.calls
            ]
        self.said.append(message)
        return answer

    def give(self, results):
        """The results of a round, one per call."""
        self.said += [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in results]
        self.add_results(results)

    def with_retries(self, retries):
        """The same agent with another number of retries."""
        self.client = self.client.with_options(max_retries=retries)
        return self


class Chat(Agent):
    path = "/v1/chat/completions"
    rate_limited = openai.RateLimitError

    def connect(self):
        self.messages = [{"role": "system", "content": self.system}] if self.system else []
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=self.key, default_headers=self.headers)

    def add_user(self, text):
        self.messages.append({"role": "user", "content": text})

    def request(self):
        tools = [{"type": "function", "function": {"name": name, "parameters": PARAMETERS}} for name in TOOLS]
        asked = {"model": "gpt-4o-mini", "messages": self.messages, "tools": tools}
        if self.stream:
            with self.client.chat.completions.stream(**asked) as stream:
                for _ in stream:
                    pass
                message = stream.get_final_completion().choices[0].message
        else:
            message = self.client.chat.completions.create(**asked).choices[0].message
        calls = message.tool_calls or []
        reply = {"role": "assistant", "content": message.content}
        if calls:
            kept = {"id": True, "type": True, "function": {"name", "arguments"}}
            reply["tool_calls"] = [call.model_dump(include=kept) for call in calls]
        self.messages.append(reply)
        return Answer(
            message.content or "",
            [Call(call.id, call.function.name, json.loads(call.function.arguments)) for call in calls],
        )

    def add_results(self, results):
        self.messages += [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in results]


class Responses(Agent):
    """Sends its whole history each time."""

    path = "/v1/responses"
    rate_limited = openai.RateLimitError

    def connect(self):
        self.input = []
        self.previous = None
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=self.key, default_headers=self.headers)

    def add_user(self, text):
        self.input.append({"role": "user", "content": text})

    def request(self):
        tools = [{"type": "function", "name": name, "parameters": PARAMETERS, "strict": False} for name in TOOLS]
        asked = {"model": "gpt-4o-mini", "input": self.input, "tools": tools}
        if self.system:
            asked["instructions"] = self.system
        if self.previous:
            asked["previous_response_id"] = self.previous
        if self.stream:
            with self.client.responses.stream(**asked) as stream:
                for _ in stream:
                    pass
                response = stream.get_final_response()
        else:
            response = self.client.responses.create(**asked)
        self.keep(response)
        calls = [item for item in response.output if item.type == "function_call"]
        return Answer(
            response.output_text, [Call(call.call_id, call.name, json.loads(call.arguments)) for call in calls]
        )

    def keep(self, response):
        for item in response.output:
            if item.type == "function_call":
                self.input.append(
                    {"type": "function_call", "call_id": item.call_id, "name": item.name, "arguments": item.arguments}
                )
            elif item.type == "message":
                self.input.append({"role": "assistant", "content": response.output_text})

    def add_results(self, results):
        self.input += [
            {"type": "function_call_output", "call_id": call.id, "output": text} for call, text in results
        ]


class Chained(Responses):
    """Sends only what is new and names the answer that it continues."""

    def keep(self, response):
        self.input = []
        self.previous = response.id


class Anthropic(Agent):
    path = "/v1/messages"
    rate_limited = anthropic.RateLimitError

    def connect(self):
        self.messages = []
        return anthropic.Anthropic(base_url=self.url, api_key=self.key, default_headers=self.headers)

    def add_user(self, text):
        self.messages.append({"role": "user", "content": text})

    def request(self):
        tools = [{"name": name, "input_schema": PARAMETERS} for name in TOOLS]
        asked = {"model": "claude-sonnet-5", "max_tokens": 1000, "messages": self.messages, "tools": tools}
        if self.system:
            asked["system"] = self.system
        if self.stream:
            with self.client.messages.stream(**asked) as stream:
                message = stream.get_final_message()
        else:
            message = self.client.messages.create(**asked)
        content = []
        for block in message.content:
            if block.type == "text":
                content.append({"type": "text", "text": block.text})
            elif block.type == "tool_use":
                content.append({"type": "tool_use", "id": block.id, "name": block.name, "input": block.input})
        self.messages.append({"role": "assistant", "content": content})
        return Answer(
            "".join(block.text for block in message.content if block.type == "text"),
            [Call(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"],
        )

    def add_results(self, results):
        blocks = [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in results]
        self.messages.append({"role": "user", "content": blocks})


class Gemini(Agent):
    path = "/v1beta/models/gemini-2.5-flash:generateContent"
    rate_limited = genai.errors.ClientError

    def connect(self):
        self.contents = []
        options = types.HttpOptions(base_url=self.url, api_version="v1beta", headers=self.headers)
        return genai.Client(api_key=self.key, http_options=options)

    def with_retries(self, retries):
        return self  # It makes one attempt anyway.

    def add_user(self, text):
        self.contents.append(types.Content(role="user", parts=[types.Part(text=text)]))

    def request(self):
        declared = [types.FunctionDeclaration(name=name, parameters_json_schema=PARAMETERS) for name in TOOLS]
        config = types.GenerateContentConfig(
            tools=[types.Tool(function_declarations=declared)], system_instruction=self.system or None
        )
        asked = {"model": "gemini-2.5-flash", "contents": self.contents, "config": config}
        if self.stream:
            chunks = list(self.client.models.generate_content_stream(**asked))
            assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP
            parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or []]
        else:
            parts = self.client.models.generate_content(**asked).candidates[0].content.parts
        text = "".join(part.text for part in parts if part.text)
        called = [part.function_call for part in parts if part.function_call]
        kept = [types.Part(text=text)] if text else []
        kept += [part for part in parts if part.function_call]
        self.contents.append(types.Content(role="model", parts=kept))
        return Answer(text, [Call(f"{len(self.said)}-{at}", call.name, call.args) for at, call in enumerate(called)])

    def add_results(self, results):
        parts = [types.Part.from_function_response(name=call.tool, response={"output": text}) for call, text in results]
        self.contents.append(types.Content(role="user", parts=parts))


AGENTS = (Chat, Responses, Chained, Anthropic, Gemini)
