// The clients that `clients_with_and_without.py` asks with in Node, each in one shape.
//
//     node clients_in_node.mjs CLIENT URL FOLDER
//
// FOLDER has the packages. Every line of the input is {"number": …, "fault": …, "stream": …}; every
// line of the output is {"number": …} with {"calls": [[name, arguments], …]} or {"error": …}. The
// first line, {"number": 0}, says that everything is loaded.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [client, url, folder] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/package.json`));
const load = async (name) => {
  const found = await import(pathToFileURL(require.resolve(name)));
  return found.default && typeof found.default === "object" ? { ...found.default, ...found } : found;
};

const NAME = "save_note";
const ABOUT = "Save a note.";
const ARGUMENTS = { title: "Trip\nto Oslo", tags: ["travel"], stars: 4, draft: true };
const PROMPT = `call ${NAME} with ${JSON.stringify(ARGUMENTS)}`;
const SCHEMA = {
  type: "object",
  properties: {
    title: { type: "string" },
    tags: { type: "array", items: { type: "string" } },
    stars: { type: "integer" },
    draft: { type: "boolean" },
  },
  required: ["title", "tags", "stars", "draft"],
  additionalProperties: false,
};
const FUNCTION = { name: NAME, description: ABOUT, parameters: SCHEMA };

// Arguments as any application decodes them.
const decode = (text) => {
  const decoded = JSON.parse(text);
  if (decoded === null || typeof decoded !== "object" || Array.isArray(decoded)) {
    throw new SyntaxError(`unreadable: ${text}`);
  }
  return decoded;
};

// A run that fails after its tool has run has delivered that call.
const settle = async (run, ran) => {
  try {
    await run();
  } catch (error) {
    if (!ran.length) throw error;
  }
  return ran;
};

const CLIENTS = {
  "node-openai-chat": async () => {
    const { OpenAI } = await load("openai");
    const made = new OpenAI({ baseURL: url, apiKey: "k" });
    return async (model, stream) => {
      const asked = {
        model,
        messages: [{ role: "user", content: PROMPT }],
        tools: [{ type: "function", function: FUNCTION }],
      };
      const reply = stream
        ? await made.chat.completions.stream(asked).finalChatCompletion()
        : await made.chat.completions.create(asked);
      const calls = reply.choices[0].message.tool_calls ?? [];
      return calls.map((call) => [call.function.name, decode(call.function.arguments)]);
    };
  },

  "node-openai-responses": async () => {
    const { OpenAI } = await load("openai");
    const made = new OpenAI({ baseURL: url, apiKey: "k" });
    return async (model, stream) => {
      const asked = { model, input: PROMPT, tools: [{ type: "function", ...FUNCTION }] };
      const reply = stream
        ? await made.responses.stream(asked).finalResponse()
        : await made.responses.create(asked);
      const calls = reply.output.filter((item) => item.type === "function_call");
      return calls.map((call) => [call.name, decode(call.arguments)]);
    };
  },

  "node-anthropic": async () => {
    const { Anthropic } = await load("@anthropic-ai/sdk");
    const made = new Anthropic({ baseURL: url.replace(/\/v1$/, ""), apiKey: "k" });
    return async (model, stream) => {
      const asked = {
        model,
        max_tokens: 500,
        messages: [{ role: "user", content: PROMPT }],
        tools: [{ name: NAME, description: ABOUT, input_schema: SCHEMA }],
      };
      const reply = stream
        ? await made.messages.stream(asked).finalMessage()
        : await made.messages.create(asked);
      const calls = reply.content.filter((part) => part.type === "tool_use");
      return calls.map((call) => [call.name, call.input]);
    };
  },

  "node-genai": async () => {
    const { GoogleGenAI } = await load("@google/genai");
    const made = new GoogleGenAI({
      apiKey: "k",
      httpOptions: { baseUrl: url.replace(/\/v1$/, "") },
    });
    return async (model, stream) => {
      const declared = { name: NAME, description: ABOUT, parametersJsonSchema: SCHEMA };
      const asked = {
        model,
        contents: PROMPT,
        config: { tools: [{ functionDeclarations: [declared] }] },
      };
      const calls = [];
      if (stream) {
        for await (const chunk of await made.models.generateContentStream(asked)) {
          calls.push(...(chunk.functionCalls ?? []));
        }
      } else {
        calls.push(...((await made.models.generateContent(asked)).functionCalls ?? []));
      }
      return calls.map((call) => [call.name, call.args]);
    };
  },

  "node-ai": async () => {
    const { generateText, streamText, tool, jsonSchema, stepCountIs } = await load("ai");
    const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
    const provider = createOpenAICompatible({ name: "weak", baseURL: url, apiKey: "k" });
    return async (model, stream) => {
      const ran = [];
      const save = tool({
        description: ABOUT,
        inputSchema: jsonSchema(SCHEMA),
        execute: async (given) => {
          ran.push([NAME, given]);
          return "saved";
        },
      });
      const asked = {
        model: provider(model),
        prompt: PROMPT,
        tools: { [NAME]: save },
        stopWhen: stepCountIs(2),
      };
      return settle(async () => {
        if (!stream) return generateText(asked);
        const failures = [];
        const result = streamText({ ...asked, onError: ({ error }) => failures.push(error) });
        await result.consumeStream();
        if (failures.length) throw failures[0];
        return result.steps;
      }, ran);
    };
  },

  "node-langchain": async () => {
    const { ChatOpenAI } = await load("@langchain/openai");
    return async (model, stream) => {
      const settings = { model, apiKey: "k", configuration: { baseURL: url } };
      const made = new ChatOpenAI(settings).bindTools([{ type: "function", function: FUNCTION }]);
      let whole;
      if (stream) {
        for await (const chunk of await made.stream(PROMPT)) {
          whole = whole === undefined ? chunk : whole.concat(chunk);
        }
      } else {
        whole = await made.invoke(PROMPT);
      }
      return (whole.tool_calls ?? []).map((call) => [call.name, call.args]);
    };
  },

  "node-agents": async () => {
    const { OpenAI } = await load("openai");
    const agents = await load("@openai/agents");
    agents.setTracingDisabled(true);
    const made = new OpenAI({ baseURL: url, apiKey: "k" });
    return async (model, stream) => {
      const ran = [];
      const save = agents.tool({
        name: NAME,
        description: ABOUT,
        parameters: SCHEMA,
        strict: false,
        errorFunction: null,
        execute: async (given) => {
          ran.push([NAME, typeof given === "string" ? decode(given) : given]);
          return "saved";
        },
      });
      const agent = new agents.Agent({
        name: "a",
        model: new agents.OpenAIResponsesModel(made, model),
        tools: [save],
      });
      return settle(async () => {
        if (!stream) return agents.run(agent, PROMPT, { maxTurns: 3 });
        const run = await agents.run(agent, PROMPT, { maxTurns: 3, stream: true });
        for await (const _ of run) {
          // until its end
        }
        return run.completed;
      }, ran);
    };
  },

  "node-mastra": async () => {
    const { Agent } = await load("@mastra/core/agent");
    const { createTool } = await load("@mastra/core/tools");
    const { z } = await load("zod");
    const { createOpenAICompatible } = await load("ai-5-compatible");
    const provider = createOpenAICompatible({ name: "weak", baseURL: url, apiKey: "k" });
    return async (model, stream) => {
      const ran = [];
      const save = createTool({
        id: NAME,
        description: ABOUT,
        inputSchema: z.object({
          title: z.string(),
          tags: z.array(z.string()),
          stars: z.number().int(),
          draft: z.boolean(),
        }),
        execute: async (given) => {
          ran.push([NAME, given.context ?? given]);
          return "saved";
        },
      });
      const agent = new Agent({
        id: "a",
        name: "a",
        instructions: "You save notes.",
        model: provider(model),
        tools: { [NAME]: save },
      });
      return settle(async () => {
        if (!stream) return agent.generate(PROMPT, { maxSteps: 2 });
        const run = await agent.stream(PROMPT, { maxSteps: 2 });
        return run.getFullOutput();
      }, ran);
    };
  },
};

console.log = console.info = console.debug = console.error;
const ask = await CLIENTS[client]();
process.on("unhandledRejection", () => {});
const answer = async (line) => {
  const { number, fault, stream } = JSON.parse(line);
  let answered;
  try {
    answered = { number, calls: await ask(`faults:${fault}`, stream) };
  } catch (error) {
    answered = { number, error: `${error?.name}: ${error?.message}`.slice(0, 300) };
  }
  process.stdout.write(`${JSON.stringify(answered)}\n`);
};
process.stdout.write('{"number": 0}\n');
// One that hangs does not hold up those behind it.
createInterface({ input: process.stdin }).on("line", answer);
