// An agent on the official Node SDKs: runs for some rounds, prints what it got as one JSON object.
// Its one argument is JSON: url, api (chat, responses, chained, messages), rounds, stream, retries, hurry, and result,
// which is what every tool gives, with the number of the round for `{n}`.
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

const {
  url,
  api,
  rounds = 1,
  stream = false,
  result = 'ok',
  retries = 2,
  hurry = 1,
} = JSON.parse(process.argv[2]);

// The SDK waits for as long as it is told, only `hurry` times faster.
const { setTimeout: patiently } = globalThis;
if (hurry > 1) globalThis.setTimeout = (callback, ms, ...rest) => patiently(callback, ms / hurry, ...rest);

const names = ['bash', 'read_file', 'edit_file'];
const parameters = { type: 'object', properties: { input: { type: 'string' } } };
const settings = { apiKey: 'key-of-the-tests', maxRetries: retries };
const task = { role: 'user', content: 'Find out why the build fails, and fix it.' };

class Chat {
  client = new OpenAI({ baseURL: `${url}/v1`, ...settings });
  messages = [task];

  async ask() {
    const tools = names.map((name) => ({ type: 'function', function: { name, parameters } }));
    const asked = { model: 'gpt-4o-mini', messages: this.messages, tools };
    const completion = stream
      ? await this.client.chat.completions.stream(asked).finalChatCompletion()
      : await this.client.chat.completions.create(asked);
    const { content, tool_calls: calls = [] } = completion.choices[0].message;
    const kept = calls.map(({ id, type, function: { name, arguments: args } }) => ({
      id,
      type,
      function: { name, arguments: args },
    }));
    this.messages.push({ role: 'assistant', content, ...(kept.length && { tool_calls: kept }) });
    return {
      text: content ?? '',
      calls: kept.map((call) => ({ id: call.id, tool: call.function.name, args: JSON.parse(call.function.arguments) })),
    };
  }

  give(calls, text) {
    this.messages.push(...calls.map((call) => ({ role: 'tool', tool_call_id: call.id, content: text })));
  }
}

class Responses {
  client = new OpenAI({ baseURL: `${url}/v1`, ...settings });
  input = [task];

  async ask() {
    const tools = names.map((name) => ({ type: 'function', name, parameters, strict: false }));
    const asked = { model: 'gpt-4o-mini', input: this.input, tools };
    if (this.previous) asked.previous_response_id = this.previous;
    const response = stream
      ? await this.client.responses.stream(asked).finalResponse()
      : await this.client.responses.create(asked);
    const calls = response.output.filter((item) => item.type === 'function_call');
    this.keep(response, calls);
    return {
      text: response.output_text,
      calls: calls.map((call) => ({ id: call.call_id, tool: call.name, args: JSON.parse(call.arguments) })),
    };
  }

  keep(response, calls) {
    const kept = calls.map(({ type, call_id, name, arguments: args }) => ({ type, call_id, name, arguments: args }));
    this.input.push(...kept);
  }

  give(calls, text) {
    this.input.push(...calls.map((call) => ({ type: 'function_call_output', call_id: call.id, output: text })));
  }
}

// Sends only what is new and names the answer that it continues.
class Chained extends Responses {
  keep(response) {
    this.input = [];
    this.previous = response.id;
  }
}

class Messages {
  client = new Anthropic({ baseURL: url, ...settings });
  messages = [task];

  async ask() {
    const tools = names.map((name) => ({ name, input_schema: parameters }));
    const asked = { model: 'claude-sonnet-5', max_tokens: 1000, messages: this.messages, tools };
    const message = stream
      ? await this.client.messages.stream(asked).finalMessage()
      : await this.client.messages.create(asked);
    const calls = message.content.filter((block) => block.type === 'tool_use');
    const content = calls.map(({ type, id, name, input }) => ({ type, id, name, input }));
    this.messages.push({ role: 'assistant', content });
    return {
      text: message.content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
      calls: calls.map((call) => ({ id: call.id, tool: call.name, args: call.input })),
    };
  }

  give(calls, text) {
    const content = calls.map((call) => ({ type: 'tool_result', tool_use_id: call.id, content: text }));
    this.messages.push({ role: 'user', content });
  }
}

const agent = new { chat: Chat, responses: Responses, chained: Chained, messages: Messages }[api]();
const answers = [];
let error = null;
try {
  for (let round = 0; round < rounds; round += 1) {
    const answer = await agent.ask();
    answers.push(answer);
    agent.give(answer.calls, result.replaceAll('{n}', round));
  }
} catch (raised) {
  error = { name: raised.constructor.name, status: raised.status, code: raised.code, message: raised.message };
}
console.log(JSON.stringify({ answers, error }));
