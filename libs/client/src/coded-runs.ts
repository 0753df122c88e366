import type { Client } from "./client.ts";
import type { Pages } from "./pages.ts";
import { ProblemError } from "./problem-error.ts";
import { runOf, type RunCodec } from "./run-codec.ts";

type Runs = Client["runs"];

/** Returns the calls of runs, whose values are encoded before they are sent, and decoded in responses. */
export function codedRuns(runs: Runs, codec: RunCodec): Runs {
  const decode = <T>(id: string, response: T) => codec.decode(response, runOf(id));
  const encode = async <T extends { readonly payload?: unknown }>(
    id: string,
    message: T,
    scope: string | undefined,
  ) => {
    const { workflow } = runOf(id);
    return await withPayload(codec, workflow, message, scope);
  };
  return {
    async start(body, write) {
      const { workflow, input } = body;
      const scope = body.id ?? write?.idempotencyKey;
      const encoded = await codec.encode(input, { workflow, kind: "input" }, scope);
      return await runs.start(input === undefined ? body : { ...body, input: encoded }, write);
    },
    list: (query, read) => decodedPages(runs.list(query, read), (run) => decode(run.id, run)),
    get: async (id, read) => await decode(id, await runs.get(id, read)),
    logs: async (id, read) => await codec.decodeLog(await runs.logs(id, read), runOf(id)),
    wait: async (id, wait) => await decode(id, await runs.wait(id, wait)),
    async *watch(id, wait) {
      for await (const run of runs.watch(id, wait)) yield await decode(id, run);
    },
    signal: async (id, signal, write) =>
      await decode(
        id,
        await runs.signal(id, await encode(id, signal, write?.idempotencyKey), write),
      ),
    update: async (id, update, wait) =>
      await decode(id, await runs.update(id, await encode(id, update, undefined), wait)),
    cancel: async (id, action, write) => await decode(id, await runs.cancel(id, action, write)),
    pause: async (id, action, write) => await decode(id, await runs.pause(id, action, write)),
    resume: async (id, action, write) => await decode(id, await runs.resume(id, action, write)),
    raise: async (id, action, write) => await decode(id, await runs.raise(id, action, write)),
    async act(action, write) {
      const { signal, filter } = action;
      if (signal?.payload === undefined) return await runs.act(action, write);
      const { workflow } = filter ?? {};
      if (workflow === undefined) throw withoutWorkflow();
      const encoded = await withPayload(codec, workflow, signal, write?.idempotencyKey);
      return await runs.act({ ...action, signal: encoded }, write);
    },
    terminate: async (id, action, write) =>
      await decode(id, await runs.terminate(id, action, write)),
    retry: async (id, action, write) => await decode(id, await runs.retry(id, action, write)),
    history: async (id, read) => await decode(id, await runs.history(id, read)),
    histories: (query, read) =>
      decodedPages(runs.histories(query, read), (history) => {
        const { workflow, id } = history;
        return codec.decode(history, { workflow, run: id });
      }),
  };
}

/** Returns the calls of schedules, whose inputs are decoded in responses. */
export function codedSchedules(plain: Client["schedules"], codec: RunCodec): Client["schedules"] {
  const decode = <T extends { readonly workflow: string }>(schedule: T) =>
    codec.decode(schedule, { workflow: schedule.workflow });
  return {
    ...plain,
    async list(query, read) {
      const list = await plain.list(query, read);
      return { ...list, items: await Promise.all(list.items.map(decode)) };
    },
    get: async (schedule, read) => await decode(await plain.get(schedule, read)),
    pause: async (schedule, action, write) =>
      await decode(await plain.pause(schedule, action, write)),
    resume: async (schedule, action, write) =>
      await decode(await plain.resume(schedule, action, write)),
  };
}

async function withPayload<T extends { readonly payload?: unknown }>(
  codec: RunCodec,
  workflow: string,
  message: T,
  scope: string | undefined,
): Promise<T> {
  if (message.payload === undefined) return message;
  return {
    ...message,
    payload: await codec.encode(message.payload, { workflow, kind: "payload" }, scope),
  };
}

function decodedPages<Item, Answer extends { readonly items: readonly Item[] }>(
  pages: Pages<Item, Answer>,
  decode: (item: Item) => Promise<Item>,
): Pages<Item, Answer> {
  return {
    async page() {
      const answer = await pages.page();
      return { ...answer, items: await Promise.all(answer.items.map(decode)) };
    },
    async *[Symbol.asyncIterator]() {
      for await (const item of pages) yield await decode(item);
    },
  };
}

function withoutWorkflow(): ProblemError {
  const detail =
    "filter.workflow is required, because the payload of a signal is encoded for one workflow";
  return new ProblemError({
    code: "invalid_request",
    status: 0,
    title: "The request is invalid",
    detail,
    errors: [{ pointer: "/filter/workflow", detail }],
  });
}
