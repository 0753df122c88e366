import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach } from "vitest";

interface ReceivedMessage {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Parsed. */
  readonly body: unknown;
  readonly text: string;
}

/** The answer of a receiver. `never`: none until the connection ends. */
type ReceiverAnswer =
  | "never"
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
    };

/** A real HTTP server that receives notifications. */
export interface Receiver {
  readonly url: string;
  readonly messages: readonly ReceivedMessage[];
  /** Decides the answers from now on. Default: 200. */
  answer: (message: ReceivedMessage) => ReceiverAnswer | Promise<ReceiverAnswer>;
  close(): Promise<void>;
}

/** Starts receivers, which are closed after each test. */
export function useReceivers(): (path?: string) => Promise<Receiver> {
  const open = new Set<Server>();
  const end = async (server: Server) => {
    open.delete(server);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  afterEach(async () => {
    await Promise.all([...open].map(end));
  });
  return async (path = "/") => {
    const messages: ReceivedMessage[] = [];
    const server = createServer((request, response) => {
      void (async () => {
        const chunks: Buffer[] = [];
        for await (const chunk of request) chunks.push(chunk as Buffer);
        const text = Buffer.concat(chunks).toString("utf8");
        const { url = "", headers } = request;
        const message = { path: url, headers, text, body: JSON.parse(text) as unknown };
        messages.push(message);
        const answer = await receiver.answer(message);
        if (answer === "never") return;
        response.writeHead(answer.status, answer.headers).end(answer.body);
      })();
    });
    open.add(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const receiver: Receiver = {
      url: `http://127.0.0.1:${port}${path}`,
      messages,
      answer: () => ({ status: 200, body: "ok" }),
      close: () => end(server),
    };
    return receiver;
  };
}
