import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from "node:https";
import { KubeConfig } from "@kubernetes/client-node";

/** One raw response of an API server. */
interface RawResponse {
  readonly code: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The body before it is read as text. */
  readonly bytes: Buffer;
}

interface RawRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly body?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An open stream of watch events. */
export interface EventStream {
  /** Returns the next events, at most `count`; fewer if the stream ends or `withinMs` passes. */
  take(count: number, withinMs: number): Promise<string[]>;
  readonly code: number;
  close(): void;
}

/** Plain HTTP to one API server, so that the suite does not depend on Konverge's own client. */
export interface ApiConnection {
  send(request: RawRequest): Promise<RawResponse>;
  stream(request: RawRequest): Promise<EventStream>;
  close(): void;
}

/** User agent of every request, from which field managers are derived. */
const USER_AGENT = "conformance/1.0 (konverge)";

/**
 * Longer than any wait of the server itself: 3 s for a future version, 2 s for the first create on a new definition.
 */
const ANSWER_LIMIT_MS = 30_000;

/** Connects by a kubeconfig in YAML: over plain HTTP, or with a client certificate. */
export async function connect(kubeconfigText: string): Promise<ApiConnection> {
  const config = new KubeConfig();
  config.loadFromString(kubeconfigText);
  const server = config.getCurrentCluster()?.server;
  if (server === undefined) throw new Error("the kubeconfig has no current cluster");
  const credentials: RequestOptions = {};
  const isTls = server.startsWith("https:");
  // The embedded server has no credentials to apply, and the library rejects plain HTTP.
  if (isTls) await config.applyToHTTPSOptions(credentials);
  const { ca, cert, key, headers: authorization } = credentials;
  const agent = isTls
    ? new HttpsAgent({ keepAlive: true, ca, cert, key })
    : new HttpAgent({ keepAlive: true });
  const open = ({ method, path, body, headers }: RawRequest) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const send = isTls ? httpsRequest : httpRequest;
      const options = {
        method,
        agent,
        headers: {
          "User-Agent": USER_AGENT,
          // Node sends a DELETE body without framing unless its length is set.
          ...(body === undefined ? {} : { "Content-Length": String(Buffer.byteLength(body)) }),
          ...authorization,
          ...headers,
        },
      };
      const request = send(`${server}${path}`, options, resolve);
      // Limits only the time without data: a watch is read with its own limits.
      const silence = setTimeout(
        () =>
          request.destroy(new Error(`${method} ${path}: no response within ${ANSWER_LIMIT_MS} ms`)),
        ANSWER_LIMIT_MS,
      );
      request.once("error", reject);
      request.once("close", () => clearTimeout(silence));
      request.once("response", () => clearTimeout(silence));
      request.end(body);
    });
  return {
    async send(request) {
      const response = await open(request);
      const chunks: Buffer[] = [];
      for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
      const bytes = Buffer.concat(chunks);
      const { statusCode: code = 0, headers } = response;
      return { code, headers, text: bytes.toString(), bytes };
    },
    async stream(request) {
      return readEvents(await open(request));
    },
    close: () => agent.destroy(),
  };
}

function readEvents(response: IncomingMessage): EventStream {
  const lines: string[] = [];
  let rest = "";
  let isOver = false;
  let wake = () => {};
  response.setEncoding("utf8");
  response.on("data", (chunk: string) => {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts.filter((line) => line !== ""));
    wake();
  });
  for (const event of ["close", "end", "error"]) {
    response.on(event, () => {
      isOver = true;
      wake();
    });
  }
  return {
    code: response.statusCode ?? 0,
    async take(count, withinMs) {
      const deadline = Date.now() + withinMs;
      while (lines.length < count && !isOver && Date.now() < deadline) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, deadline - Date.now());
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      return lines.splice(0, count);
    },
    close: () => response.destroy(),
  };
}
