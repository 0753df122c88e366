import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  defineController,
  githubSignature,
  inbound,
  poll,
  stream,
  type Controller,
} from "@konverge/engine";
import { ConfigMap } from "@konverge/kube/kinds";

export const SOURCED = "sourced";
const WORLD_NAMESPACE = "world";
const PAGE = 20;

/** The systems that a controller reads: a list, a change feed and a stream of events. */
export interface World extends AsyncDisposable {
  readonly url: string;
  /** Changes an item of the list, which keeps only its last version. */
  changeItem(name: string): void;
  /** Adds an entry to the change feed. */
  addChange(name: string): void;
  /** Adds an event to the stream. */
  emit(name: string): void;
  version(name: string): number;
}

export async function startWorld(): Promise<World> {
  const items = new Map<string, number>();
  const changes: string[] = [];
  const events: string[] = [];
  const readers = new Set<{ readonly response: ServerResponse; at: number }>();
  const feed = (reader: { readonly response: ServerResponse; at: number }) => {
    for (; reader.at < events.length; reader.at += 1) {
      reader.response.write(`${JSON.stringify({ name: events[reader.at], id: reader.at + 1 })}\n`);
    }
  };
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://world");
    const after = Number(searchParams.get("after") ?? 0);
    if (pathname === "/items") {
      response.end(JSON.stringify([...items].map(([name, version]) => ({ name, version }))));
    } else if (pathname === "/changes") {
      response.end(JSON.stringify(changes.slice(after, after + PAGE)));
    } else {
      const reader = { response, at: after };
      readers.add(reader);
      response.on("close", () => readers.delete(reader));
      response.flushHeaders();
      feed(reader);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    changeItem: (name) => void items.set(name, (items.get(name) ?? 0) + 1),
    addChange: (name) => void changes.push(name),
    emit(name) {
      events.push(name);
      for (const reader of readers) feed(reader);
    },
    version: (name) => items.get(name) ?? 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const named = (name: string) => ({ namespace: WORLD_NAMESPACE, name });

/** A controller with each kind of source. */
export function sourcedController(url: string): Controller {
  const get = async (path: string, signal: AbortSignal) => await fetch(`${url}${path}`, { signal });
  return defineController({
    name: SOURCED,
    for: ConfigMap,
    sources: [
      poll({
        name: "items",
        every: 100,
        list: async ({ signal }) =>
          (await (await get("/items", signal)).json()) as { name: string; version: number }[],
        key: ({ name }) => named(name),
        version: ({ version }) => String(version),
      }),
      poll({
        name: "changes",
        every: 100,
        async list({ cursor = "0", signal }) {
          const items = (await (await get(`/changes?after=${cursor}`, signal)).json()) as string[];
          return {
            items,
            cursor: String(Number(cursor) + items.length),
            more: items.length === PAGE,
          };
        },
        key: named,
      }),
      stream("events", async function* (cursor = "0", signal) {
        const { body } = await get(`/events?after=${cursor}`, signal);
        let rest = "";
        for await (const text of body?.pipeThrough(new TextDecoderStream()) ?? []) {
          const lines = (rest + text).split("\n");
          rest = lines.pop() ?? "";
          for (const line of lines) {
            const { name, id } = JSON.parse(line) as { name: string; id: number };
            yield { key: named(name), cursor: String(id) };
          }
        }
      }),
      inbound("hook", {
        verify: githubSignature(),
        map: ({ data }) => named((data as { name: string }).name),
      }),
    ],
    reconcile: async () => undefined,
  });
}
