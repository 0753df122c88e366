import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createClient } from "./create-client.ts";
import { streamEvents } from "./event-stream.ts";

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown;

/** A real server whose connections answer one after the other. */
async function serve(...answers: readonly Answer[]) {
  const asked: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    asked.push(request);
    answers[Math.min(asked.length, answers.length) - 1]?.(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const slept: number[] = [];
  const client = createClient({
    server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: "secret-token",
    random: () => 0.5,
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      slept.push(ms);
    },
  });
  return { client, asked, slept };
}
const stream =
  (...pieces: readonly string[]) =>
  async (_request: IncomingMessage, response: ServerResponse): Promise<void> => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const piece of pieces) {
      await new Promise<void>((resolve) => response.write(piece, () => resolve()));
    }
  };
const cut =
  (...pieces: readonly string[]): Answer =>
  async (request, response) => {
    await stream(...pieces)(request, response);
    response.socket?.resetAndDestroy();
  };

test("reconnects after silence, also of a server that accepts a connection and does not answer", async () => {
  const opened: string[] = [];
  const silent = async ({ signal }: { readonly signal?: AbortSignal | undefined }) =>
    await new Promise<Response>((_resolve, reject) => {
      signal?.addEventListener("abort", () => reject(new Error("aborted")));
    });
  const answers = [silent, async () => new Response(new ReadableStream()), silent];
  const events = streamEvents({
    sender: {
      open: async (call: { readonly signal?: AbortSignal | undefined }) => {
        opened.push("opened");
        const answer = answers[opened.length - 1];
        return answer === undefined ? new Response("data: 1\n\n") : await answer(call);
      },
    },
    call: { method: "GET", path: "/v1/events" },
    retry: { baseMs: 1, capMs: 1, retries: 1 },
    lastEventId: undefined,
    silenceMs: 5,
    random: () => 0,
    sleep: async () => undefined,
  });
  const { value } = await events.next();
  expect([value?.data, opened.length]).toEqual([1, 4]);
  await events.return(undefined as never);
});

test("parses events with any chunks and line ends, and ignores comments", async () => {
  const { client } = await serve(
    stream(
      ": beat\n\nid: 1\nevent: att",
      'empt\ndata: {"a":\ndata: 1}\n\n',
      'id:2\r\ndata:"x"\r\n\r\n',
    ),
  );
  const found: unknown[] = [];
  for await (const event of client.events()) {
    found.push(event);
    if (found.length === 2) break;
  }
  expect(found).toEqual([
    { id: "1", type: "attempt", data: { a: 1 } },
    { id: "2", type: "message", data: "x" },
  ]);
});

test("resumes after the last event with token and query, after the delay of the server", async () => {
  const { client, asked, slept } = await serve(
    cut("retry: 40\n\n", 'id: 7\ndata: 1\n\nid: 8\ndata: "lost half'),
    (_request, response) => response.writeHead(503, { "retry-after": "1" }).end("{}"),
    stream("id: 8\ndata: 2\n\n"),
  );
  const found: unknown[] = [];
  for await (const { id, data } of client.events({ controller: "a" })) {
    found.push([id, data]);
    if (found.length === 2) break;
  }
  expect(found).toEqual([
    ["7", 1],
    ["8", 2],
  ]);
  expect(asked.map(({ headers }) => headers["last-event-id"])).toEqual([undefined, "7", "7"]);
  expect(asked.map(({ url }) => url)).toEqual(asked.map(() => "/v1/events?controller=a"));
  expect(asked.map(({ headers }) => headers.authorization)).toEqual(
    asked.map(() => "Bearer secret-token"),
  );
  expect(slept).toEqual([20, 40]);
});

test("ends on a permanent problem", async () => {
  const { client, asked } = await serve((_request, response) =>
    response
      .writeHead(401, { "content-type": "application/problem+json" })
      .end(JSON.stringify({ code: "unauthorized", detail: "send a token", status: 401 })),
  );
  const read = async () => {
    for await (const event of client.events()) expect.unreachable(String(event));
  };
  await expect(read()).rejects.toMatchObject({ code: "unauthorized", status: 401 });
  expect(asked).toHaveLength(1);
});

test("closes the connection on abort, with the caller's reason, and on break", async () => {
  const { client, asked } = await serve(stream("id: 1\ndata: 1\n\n"));
  const stop = new AbortController();
  const read = async () => {
    for await (const { id } of client.events({}, { signal: stop.signal })) {
      expect(id).toBe("1");
      stop.abort(new Error("enough"));
    }
  };
  await expect(read()).rejects.toThrow("enough");
  for await (const { id } of client.events()) {
    expect(id).toBe("1");
    break;
  }
  await Promise.all(
    asked.map(async ({ socket }) => {
      if (!socket.destroyed) await once(socket, "close");
    }),
  );
});
